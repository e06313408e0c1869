"""Checks of the files that a blueprint names."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from skillpack.blueprint.lint import FAIL, OK, WARN, Check
from skillpack.blueprint.model import Blueprint
from skillpack.blueprint.paths import FILE, FOLDER, is_there, kind
from skillpack.script import ScriptError

PYTHON_SECONDS = 30
PROBE = """
import importlib.metadata as metadata, importlib.util, json, platform
found = importlib.util.find_spec("ajet")
versions = {}
for name in ("agentjet", "verl", "vllm", "torch", "ray"):
    try:
        versions[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps({"python": platform.python_version(), "ajet": found.origin if found else None, "versions": versions}))
"""


def codebase(blueprint: Blueprint) -> Iterator[Check]:
    """The codebase is a directory that can be read; its git state is told."""
    where = blueprint.codebase_dir
    if where is None:
        return
    if kind(where) != FOLDER:
        yield Check("codebase", FAIL, f"exp_codebase_dir {where} {kind(where)}", "name the directory of the checkout")
        return
    if not os.access(where, os.R_OK | os.X_OK):
        yield Check("codebase", FAIL, f"exp_codebase_dir {where} may not be read", "ls -ld the directory")
        return
    yield Check("codebase", OK, f"{where} ({git_state(where) or 'not under git'})")


def git_state(where: Path) -> str | None:
    """Return commit and cleanliness of a checkout, as ``1a2b3c4, 2 files changed``; None if it is none."""
    try:
        commit, changed = (
            subprocess.run(
                ["git", "-C", str(where), *command], capture_output=True, text=True, timeout=20, check=True
            ).stdout
            for command in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    files = len(changed.splitlines())
    return commit.strip() + (f", {files} files changed" if files else ", clean")


def interpreter(blueprint: Blueprint) -> Iterator[Check]:
    """The interpreter runs; which ``ajet`` it has is told, and found without importing it."""
    python = blueprint.venv_exe
    if python is None:
        return
    if kind(python) == FOLDER:
        inside = python / "bin" / "python"
        mend = f"write {inside}" if is_there(inside) else "name the python executable of the environment"
        yield Check("venv", FAIL, f"exp_venv_exe {python} is a directory", mend)
        return
    if kind(python) != FILE or not os.access(python, os.X_OK):
        what = "is not executable" if kind(python) == FILE else kind(python)
        yield Check("venv", FAIL, f"exp_venv_exe {python} {what}", "name the python executable of the environment")
        return
    told = probe_python(python, blueprint.codebase_dir)
    if told is None:
        yield Check("venv", FAIL, f"{python} does not run Python code", f"try: {python} -c 'print(1)'")
        return
    versions = ", ".join(f"{name} {version}" for name, version in told["versions"].items())
    about = f"Python {told['python']}{', ' + versions if versions else ''}"
    if told["ajet"] is None:
        mend = "install AgentJet there (skills install-conda, install-client), or name the right environment"
        yield Check("venv", WARN, f"{python}: {about}; it has no ajet", mend)
    elif is_reference(told):
        yield Check(
            "venv", OK, f"{python}: {about}; its ajet is this pack's reference engine: a rehearsal, no GPUs are used"
        )
    else:
        yield Check("venv", OK, f"{python}: {about}; ajet in {Path(told['ajet']).parent}")


def is_reference(told: dict[str, Any] | None) -> bool:
    """Tell whether what ``probe_python`` said means this pack's reference engine."""
    return told is not None and told["ajet"] is not None and Path(told["ajet"]).with_name("older_names.py").exists()


@cache
def probe_python(python: Path, folder: Path | None) -> dict[str, Any] | None:
    """Ask an interpreter for its version and packages, in ``folder``; None if it does not run."""
    try:
        done = subprocess.run(
            [str(python), "-c", PROBE],
            capture_output=True,
            text=True,
            timeout=PYTHON_SECONDS,
            cwd=folder if folder and kind(folder) == FOLDER else None,
            stdin=subprocess.DEVNULL,
            check=True,
        )
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
    return told


def configuration(blueprint: Blueprint) -> Iterator[Check]:
    """The configuration is a file and passes ``config.py lint``."""
    path = blueprint.yaml_path
    if path is None:
        return
    if kind(path) != FILE:
        yield Check("yaml", FAIL, f"exp_yaml_path {path} {kind(path)}", "name the YAML that the run trains with")
        return
    from skillpack.config.lint import lint
    from skillpack.config.sources import read_sources

    try:
        sources = read_sources(path)
    except ScriptError as error:
        yield Check("yaml", FAIL, error.message, error.hint or error.expected)
        return
    except OSError as error:
        yield Check("yaml", FAIL, f"exp_yaml_path {path} cannot be read: {error.strerror}", "ls -l the file")
        return
    told = [finding for source in sources for finding in lint(source)]
    for finding in told:
        if finding.severity in ("error", "warning"):
            where = f"{finding.file}:{finding.line}: " if finding.file and finding.line else ""
            yield Check("yaml", FAIL if finding.severity == "error" else WARN, where + finding.message, finding.mend)
    if not any(finding.severity in ("error", "warning") for finding in told):
        yield Check("yaml", OK, f"{path} is well formed")


def _takes_files(folder: Path) -> bool:
    """Tell whether a file can be made in a folder, by making one without a name: permissions do not tell all."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def result(blueprint: Blueprint) -> Iterator[Check]:
    """The result directory can be written and is not in use by another run."""
    from skillpack.runs.rundir import RunDir
    from skillpack.runs.status import observe

    where = blueprint.result_dir
    if where is None:
        return
    if kind(where / "run.json") == FILE:
        try:
            status = observe(RunDir(where))
        except ScriptError as error:
            yield Check("result", FAIL, error.message, "take another exp_result_dir")
            return
        if status.alive:
            yield Check(
                "result",
                FAIL,
                f"{where} is in use: its run is {status.state}",
                "watch that run, or take another directory",
            )
        else:
            yield Check(
                "result",
                WARN,
                f"{where} holds a run that is {status.state}",
                "scripts/run.py attempt DIR tries it again",
            )
        return
    if kind(where) == FILE:
        yield Check("result", FAIL, f"exp_result_dir {where} is a file", "name a directory")
        return
    parent = next(folder for folder in (where, *where.parents) if is_there(folder))
    if not _takes_files(parent):
        yield Check("result", FAIL, f"{parent} may not be written", "take another exp_result_dir")
    elif kind(where) == FOLDER and any(where.iterdir()):
        yield Check("result", WARN, f"{where} is not empty", "a directory of its own keeps the run's files apart")
    else:
        yield Check("result", OK, f"{where} is free")
