"""Layered loading, as AgentJet's files ask for it: a ``defaults`` list, ``_self_``, and ``hydra.searchpath``."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from pathlib import Path
from typing import Any

from ajet.utils.config_tree import ConfigError, ConfigTree
from ajet.utils.config_yaml import Document, read_document

PACKAGED = Path(__file__).resolve().parent.parent / "default_config"
"""Where the defaults that ship with the package lie."""

DEFAULTS = {"swarm": "ajet_swarm_default", "classic": "ajet_default"}
"""The default file of each mode."""

EXTERNAL = frozenset({"verl_default", "trinity_default", "ppo_trainer", "ppo_megatron_trainer"})
"""verl's and trinity's own defaults, which only a released AgentJet needs; a chain is read without them."""


def is_packaged(path: Path) -> bool:
    """Tell whether a file is one of the defaults that ship with the package."""
    return path.resolve().parent == PACKAGED


def open_document(path: Path, *, below: bool = False) -> Document:
    """Read a YAML file; a packaged default is parsed once per process.

    ``below`` says that a ``defaults`` list named the file: then AgentJet's own copy of a default
    file, found in a checkout, counts as a default too.
    """
    if is_packaged(path):
        return _packaged_document(path.resolve())
    return read_document(path, "default" if below and path.stem in DEFAULTS.values() else "file")


@functools.cache
def _packaged_document(path: Path) -> Document:
    return read_document(path, "default")


def resolve(document: Document, folder: Path | None) -> list[Document]:
    """Return the layers that ``document`` (from ``folder``; None if it is text) is composed of, lowest first.

    The order is Hydra's: entries of ``defaults`` from low to high, the document itself where
    ``_self_`` stands, at the top if it stands nowhere. Raises ConfigError if a file is missing,
    if the chain runs in a circle or if an entry is of an unknown form.
    """
    layers: list[Document] = []
    _walk(document, _search_folders(document, folder), layers, [document.name])
    return layers


def compose(layers: list[ConfigTree]) -> ConfigTree:
    """Return the layers merged; ``defaults`` and ``hydra`` are left out, they belong to one file, not to the result."""
    tree = ConfigTree()
    for layer in layers:
        tree.merge(layer)
    for key in ("defaults", "hydra"):
        if key in tree:
            del tree[key]
    return tree


def _walk(document: Document, search: list[Path], layers: list[Document], path: list[str], package: str = "") -> None:
    entries = document.tree.get("defaults")
    if entries is None:
        entries = []
    if not isinstance(entries, list):
        raise ConfigError(
            f"{document.name}: `defaults` is {entries!r}; expected a list such as [verl_default, ajet_default, _self_]",
            key="defaults",
            value=entries,
        )
    placed = False
    for item in entries:
        if item == "_self_":
            layers.append(_below(document, package))
            placed = True
            continue
        entry = _read_entry(item, document)
        file = _locate(entry, document, search)
        if file is None:
            continue
        if str(file) in path:
            circle = " -> ".join([*path[path.index(str(file)) :], str(file)])
            raise ConfigError(f"{document.name}: `defaults` runs in a circle: {circle}", key="defaults", value=item)
        lower = open_document(file, below=True)
        own = next((one for one in (entry.package, lower.package, entry.group) if one is not None), "")
        inner = "" if own == "_global_" else ".".join(filter(None, (package, own if own != "_here_" else "")))
        _walk(lower, [file.parent, *search], layers, [*path, str(file)], inner)
    if not placed:
        layers.append(_below(document, package))


def _below(document: Document, package: str) -> Document:
    """Return a document with its content placed below a dotted key."""
    if not package:
        return document
    tree = document.tree.copy()
    for key in ("defaults", "hydra"):
        tree.pop(key, None)
    for name in reversed(package.split(".")):
        outer = ConfigTree()
        outer.put(name, tree, next((origin for _, _, origin in tree.leaves() if origin), None))
        tree = outer
    return dataclasses.replace(document, tree=tree)


@dataclasses.dataclass
class _Entry:
    """An entry of a ``defaults`` list. ``package`` is the key after ``@``, ``group`` the key of its folder."""

    name: str
    package: str | None = None
    group: str = ""
    optional: bool = False


def _locate(entry: _Entry, document: Document, search: list[Path]) -> Path | None:
    """Return the file that an entry of ``defaults`` names; None to pass it over. Raises ConfigError."""
    if not entry.name or entry.name.rsplit("/", 1)[-1] in EXTERNAL:
        return None
    for folder in search if ".." not in Path(entry.name).parts else ():
        for suffix in (".yaml", ".yml"):
            file = folder / f"{entry.name}{suffix}"
            if file.is_file():
                return file.resolve()
    if entry.optional or search == [PACKAGED]:
        return None
    folders = ", ".join(map(str, search))
    raise ConfigError(
        f"{document.name}: `defaults` names {entry.name!r}, but {entry.name}.yaml is in none of: {folders}; "
        "add its folder to hydra.searchpath (file:///folder) or correct the name",
        key="defaults",
        value=entry.name,
    )


def _read_entry(item: Any, document: Document) -> _Entry:
    """Read ``group/name@key`` or ``{[optional] group[@key]: option}``; an entry without a name is to be passed over."""
    if isinstance(item, dict) and len(item) == 1:
        group, option = next(iter(item.items()))
        words = str(group).split() or [""]
        if words[0] == "override" or option is None:
            return _Entry("")
        group, at, package = words[-1].lstrip("/").partition("@")
        return _Entry(f"{group}/{option}", package if at else None, group.replace("/", "."), words[0] == "optional")
    if isinstance(item, str) and item:
        name, at, package = item.lstrip("/").partition("@")
        name = name.removesuffix(".yaml").removesuffix(".yml")
        return _Entry(name, package if at else None, name.rpartition("/")[0].replace("/", "."))
    raise ConfigError(
        f"{document.name}: `defaults` has the entry {item!r}; expected a file name, _self_ or {{group: name}}",
        key="defaults",
        value=item,
    )


def _search_folders(document: Document, folder: Path | None) -> list[Path]:
    """Return where the files of ``defaults`` are looked for: beside the file, ``hydra.searchpath``, the package.

    Text without a file (``folder`` None) may come from anybody: only the package's own files are
    open to it, and other names are passed over. What clients sync is a dump, which has every value.
    """
    entries = document.tree.get("hydra.searchpath") or []
    if not isinstance(entries, list):
        raise ConfigError(
            f"{document.name}: hydra.searchpath is {entries!r}; expected a list of file:// and pkg:// entries",
            key="hydra.searchpath",
            value=entries,
        )
    if folder is None:
        return [PACKAGED]
    folders = [folder]
    for entry in entries:
        found = _search_entry(str(entry))
        if found is not None and found not in folders:
            folders.append(found)
    return [*folders, PACKAGED]


def _search_entry(entry: str) -> Path | None:
    """Return the folder of a search path entry, or None if there is no such on this machine."""
    scheme, separator, rest = entry.partition("://")
    if separator and scheme == "pkg":
        top, *parts = rest.replace("/", ".").split(".")
        try:
            spec = importlib.util.find_spec(top) if top else None
        except (ImportError, ValueError):
            spec = None
        roots = [Path(root) for root in spec.submodule_search_locations or ()] if spec else []
        candidates = [root.joinpath(*parts) for root in roots]
    else:
        path = Path(rest if separator else entry).expanduser()
        candidates = [path] if path.is_absolute() else [Path.cwd() / path, PACKAGED.parent.parent / path]
    return next((candidate.resolve() for candidate in candidates if candidate.is_dir()), None)
