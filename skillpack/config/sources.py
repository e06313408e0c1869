"""A configuration file of either kind, YAML or client script, as the values that hold and who set each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ajet.copilot.job import ADDED
from ajet.default_config import kwarg_table
from ajet.utils.config_loading import (
    compose_document,
    default_path,
    layers_of,
    load_config,
    open_source,
    require_ajet,
)
from ajet.utils.config_tree import ConfigError, ConfigTree, Origin
from ajet.utils.config_yaml import Document, parse_bytes
from skillpack.config.job_call import JobCall, Reading, Unknown
from skillpack.config.jobs import choose_job, read_jobs
from skillpack.script import BadInput

STDIN = "-"

FOLDERS_UP = 8
"""Folders above a script in which a relative ``base_yaml_config`` is looked for."""

T = TypeVar("T")


@dataclass
class Source:
    """What a file configures.

    ``config`` maps dotted keys to the values that hold, ``provenance`` the same keys to who set
    them; a key that cannot be known is in neither, ``unknown`` says why. ``layers`` are what it is
    composed of, lowest first; ``document`` is the user's YAML (the base file of a script), ``job``
    the AgentJetJob call.
    """

    path: Path
    tree: ConfigTree
    layers: list[ConfigTree] = field(default_factory=list)
    document: Document | None = None
    job: JobCall | None = None
    unknown: list[Unknown] = field(default_factory=list)

    @cached_property
    def config(self) -> dict[str, Any]:
        """Dotted key to effective value."""
        return self.tree.flat()

    @cached_property
    def provenance(self) -> dict[str, Origin]:
        """Dotted key to who set it."""
        return {key: origin for key, _, origin in self.tree.leaves() if origin is not None}

    @property
    def mode(self) -> str:
        """``swarm`` or ``classic``, as the configuration says, or ``unknown``."""
        if self.unknown_reason("ajet.enable_swarm_mode") is not None:
            return "unknown"
        return "swarm" if self.tree.get("ajet.enable_swarm_mode") else "classic"

    @property
    def label(self) -> str:
        """The file, and the job of it where it has several."""
        return f"{self.path}#{self.job.name}" if self.job else str(self.path)

    def origin(self, key: str) -> Origin | None:
        """Return who set a key or named a section last, None if nobody did."""
        try:
            return self.tree.provenance(key)
        except KeyError:
            return None

    def is_users(self, key: str) -> bool:
        """Tell whether a user, not a default file, set a key."""
        origin = self.origin(key)
        return origin is not None and origin.layer not in ("default", "rule")

    def history(self, key: str) -> list[tuple[Origin, Any]]:
        """Return (origin, value) of every layer that sets a key, lowest first."""
        found = []
        for layer in self.layers:
            for name, value, origin in layer.leaves():
                if name == key and origin is not None:
                    found.append((origin, value))
        return found

    def unknown_reason(self, key: str) -> Unknown | None:
        """Return why a key is not known, or None if it is."""
        if key in self.config:
            return None
        mapped = any(row["key"] == key for row in kwarg_table().values())
        named = (item for item in self.unknown if item.key and f"{key}.".startswith(f"{item.key}."))
        return next(named, None) or next((item for item in self.unknown if item.key is None and mapped), None)


def read_source(path: str | Path, job: str | None = None) -> Source:
    """Return the configuration of a YAML file or of an AgentJetJob call in a client script, which is read, not run.

    A script with several calls needs ``job`` (a number, variable or experiment name), which may
    also stand behind the path: ``train.py#2``. ``-`` is YAML on standard input, ``default:swarm``
    and ``default:classic`` are the packaged defaults. Raises BadInput.
    """
    name, job = _split(path, job)
    if _is_script(name):
        return _from_job(Path(name), choose_job(read_jobs(name), job, name))
    return told(lambda: _from_yaml(name))


def read_sources(path: str | Path, job: str | None = None) -> list[Source]:
    """Return every configuration of a file: one per AgentJetJob call, one of a YAML file. Raises BadInput."""
    name, job = _split(path, job)
    if not _is_script(name):
        return [read_source(name)]
    calls = read_jobs(name)
    return [_from_job(Path(name), call) for call in (calls if job is None else [choose_job(calls, job, name)])]


def told(action: Callable[[], T]) -> T:
    """Return what ``action`` returns; a ConfigError becomes the BadInput that a command line shows."""
    try:
        return action()
    except ConfigError as error:
        message, _, hint = error.message.partition("\ntry: ")
        raise BadInput(message, hint=hint) from None


def _split(path: str | Path, job: str | None) -> tuple[str, str | None]:
    """Return the file and the job of ``FILE#JOB``."""
    name, _, chosen = str(path).partition("#")
    if not chosen or Path(path).exists():
        return str(path), job
    return name, job or chosen


def _is_script(name: str) -> bool:
    suffix = Path(name).suffix.lower()
    if suffix in (".py", ".pyw"):
        return True
    if suffix in (".yaml", ".yml") or name == STDIN or name.startswith("default:"):
        return False
    if not Path(name).exists():
        raise BadInput(f"{name}: there is no such file", expected="a .yaml file or a .py client script")
    raise BadInput(f"{name}: is neither YAML nor a script by its name", expected="a file ending in .yaml, .yml or .py")


def _from_yaml(name: str) -> Source:
    if name.startswith("default:"):
        mode = name.removeprefix("default:")
        if mode not in ("swarm", "classic"):
            raise BadInput(f"{name}: there are two sets of defaults", expected="default:swarm or default:classic")
        document, folder = open_source(default_path(mode))
        return Source(Path(name), load_config(mode=mode), layers_of(document, folder))
    if name == STDIN:
        document, folder = parse_bytes(sys.stdin.buffer.read(), "standard input"), None
    else:
        document, folder = open_source(Path(name))
    require_ajet(document)
    return Source(Path(name), compose_document(document, folder), layers_of(document, folder), document)


def _from_job(path: Path, job: JobCall) -> Source:
    document, folder, unknown = _base(path, job)
    tree = ConfigTree()
    layers: list[ConfigTree] = []
    if document is not None:
        base = document
        tree, layers = told(lambda: (compose_document(base, folder), layers_of(base, folder)))
        for key, value in ADDED.items():
            if tree.get(key) is None:
                tree.set(key, value, Origin("default", note="added by AgentJetJob"))
    source = Source(
        path,
        tree,
        [*layers, *(ConfigTree() for _ in ("kwargs", "writes"))],
        document if "base_yaml_config" in job.kwargs else None,
        job,
        unknown,
    )
    kwargs, writes = source.layers[-2:]
    for name, reading in job.kwargs.items():
        key = kwarg_table()[name]["key"]
        if key is not None:
            kwargs.set(key, reading.value, Origin("kwarg", str(path), reading.line, name, reading.note))
    tree.merge(kwargs)
    _apply_rules(tree, path, job)
    for item in job.unknown:
        _forget(tree, item, job)
    for change in job.changes:
        if isinstance(change, Unknown):
            _forget(tree, change, job)
            continue
        key, reading = change
        _write(tree, key, reading, path)
        writes.set(key, reading.value, Origin("write", str(path), reading.line, note=reading.note))
    left = [*job.unknown, *(change for change in job.changes if isinstance(change, Unknown))]
    source.unknown += [item for item in left if item.key is None or tree.get(item.key, left) is left]
    return source


def _base(path: Path, job: JobCall) -> tuple[Document | None, Path | None, list[Unknown]]:
    """Return the job's base YAML, its folder, and what is unknown where it cannot be read."""
    if any(item.key == "kwarg base_yaml_config" for item in job.unknown):
        return None, None, [Unknown("ajet", job.line, "the base YAML is not known")]
    reading = job.kwargs.get("base_yaml_config")
    if reading is None:
        document, folder = open_source(default_path("swarm"))
        return document, folder, []
    file = find_beside(path, str(reading.value))
    if file is None:
        return None, None, [Unknown("ajet", reading.line, f"the base YAML {reading.value} is not found from here")]

    def read() -> tuple[Document, Path | None]:
        document, folder = open_source(file)
        require_ajet(document)
        return document, folder

    return (*told(read), [])


def find_beside(script: Path, name: str) -> Path | None:
    """Return the file that a relative path in a script means: from here, or from a folder above the script."""
    if Path(name).is_absolute():
        return Path(name) if Path(name).is_file() else None
    here = script.resolve().parent
    for folder in (Path.cwd(), here, *list(here.parents)[:FOLDERS_UP]):
        if (folder / name).is_file():
            found = folder / name
            return Path(os.path.relpath(found)) if found.is_relative_to(Path.cwd()) else found
    return None


def _apply_rules(tree: ConfigTree, path: Path, job: JobCall) -> None:
    """Do what AgentJetJob does of itself: a new name for a new experiment, tcp between nodes."""
    new = job.kwargs.get("ensure_new_experiment")
    name = tree.get("ajet.experiment_name")
    if new is not None and new.value and name not in (None, "read_yaml_name"):
        note = "a timestamp is appended"
        origin = Origin("kwarg", str(path), new.line, "ensure_new_experiment", note)
        tree.set("ajet.experiment_name", f"{name}_<timestamp>", origin)
    nodes = tree.get("ajet.trainer_common.nnodes")
    if isinstance(nodes, int) and nodes > 1 and tree.get("ajet.enable_swarm_mode"):
        origin = Origin("rule", note="more than one node in swarm mode")
        tree.set("ajet.interchange_server.interchange_method", "tcp", origin)


def _write(tree: ConfigTree, key: str, reading: Reading, path: Path) -> None:
    """Apply an attribute write. A section that is replaced gets the defaults for what is missing, as in the engine."""
    origin = Origin("write", str(path), reading.line, note=reading.note)
    if reading.value == {}:
        default = load_config().get(key)
        tree.set(key, default.copy() if isinstance(default, ConfigTree) else {}, origin)
        section = tree.get(key)
        if isinstance(default, ConfigTree) and isinstance(section, ConfigTree):
            section.merge(default)  # for the origins
        return
    tree.set(key, reading.value, origin)


def _forget(tree: ConfigTree, item: Unknown, job: JobCall) -> None:
    """Remove what is not known from the tree."""
    if item.key is not None:
        keys = [item.key]
    else:
        keys = [row["key"] for name, row in kwarg_table().items() if row["key"] and name not in job.kwargs]
    for key in keys:
        parent, _, last = key.rpartition(".")
        section = tree.get(parent) if parent else tree
        if isinstance(section, ConfigTree) and last in section:
            del section[last]
