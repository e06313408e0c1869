"""The directory of a run, and the record ``run.json`` in it.

Files: ``blueprint.md``, ``config.yaml`` (``config.py`` where a client script is the configuration),
``run.json``, ``console.log``, ``logs/`` (one log per part of a swarm run), ``exit_code``,
``attempts.md``, ``attempts/`` (what earlier attempts left), ``report.md``, ``report.json``,
``metrics.csv``, ``curves.png``, and last ``finish.flag``.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillpack.files import write_atomically
from skillpack.script import BadInput

RECORD_VERSION = 1
_RECORD = {"version": int, "id": str, "attempt": int, "phase": str, "spec": dict, "parts": list, "backend": dict}
"""What a record of a run holds, among other things, and what a ``run.json`` of another program does not."""
SUPERVISOR_LOCK, START_LOCK = ".supervisor.lock", ".start.lock"
LOOKS_END_WITHIN = 1.0
"""Seconds; a lock that is held for longer has a holder."""
RUN_VARIABLE = "AJET_RUN_ID"
"""Every process of a run carries its id in this environment variable."""


@dataclass(frozen=True)
class RunDir:
    """Names the files of a run, reads and writes its record."""

    path: Path

    @classmethod
    def existing(cls, path: str | Path) -> RunDir:
        """Return the run at ``path`` (its directory, or a file in it). Raises BadInput if there is none."""
        path = Path(path).expanduser().absolute()
        run = cls(path.parent if path.is_file() else path)
        if not run.record.is_file():
            raise BadInput(
                f"{path} is not the directory of a run",
                expected="an exp_result_dir with a run.json in it",
                hint="scripts/run.py status FOLDER lists the runs below a folder",
            )
        return run

    @property
    def quoted(self) -> str:
        """The run's directory as a word of a shell command."""
        return shlex.quote(str(self.path))

    @property
    def record(self) -> Path:
        """``run.json``."""
        return self.path / "run.json"

    @property
    def heartbeat(self) -> Path:
        """``heartbeat.json``: the supervisor's last sign of life."""
        return self.path / "heartbeat.json"

    @property
    def console(self) -> Path:
        """``console.log``: everything that the run has printed."""
        return self.path / "console.log"

    @property
    def blueprint(self) -> Path:
        """``blueprint.md``: the copy that the run was started from."""
        return self.path / "blueprint.md"

    @property
    def attempts(self) -> Path:
        """``attempts.md``: what was tried and why."""
        return self.path / "attempts.md"

    @property
    def finish_flag(self) -> Path:
        """``finish.flag``: written last, when everything else is there."""
        return self.path / "finish.flag"

    def log_of(self, part: str, parts: int) -> Path:
        """Return the log that a part writes: ``console.log`` itself if it is the only part."""
        return self.console if parts == 1 else self.path / "logs" / f"{part}.log"

    def keep_configuration(self, original: Path) -> None:
        """Copy the configuration that a run starts with, YAML or client script. Raises OSError."""
        shutil.copyfile(original, self._configuration_copy(original))

    def configuration(self, record: dict[str, Any]) -> Path | None:
        """Return the file with the configuration that the run started with, None if it was not there then.

        That is the original as long as it is the same as the run's copy: what it names relative to
        itself is found beside it alone.
        """
        original = Path(record["spec"].get("yaml_path") or "")
        copy = self._configuration_copy(original)
        if not copy.is_file():
            return None
        with suppress(OSError):
            if original.read_bytes() == copy.read_bytes():
                return original
        return copy

    def _configuration_copy(self, original: Path) -> Path:
        return self.path / ("config.py" if original.suffix.lower() in (".py", ".pyw") else "config.yaml")

    def read(self) -> dict[str, Any]:
        """Return the record. Raises BadInput if it is missing, damaged, or not one that ``run.py`` wrote."""
        record = read_json(self.record, required=True)
        if not is_record(record):
            raise BadInput(f"{self.record} is not the record of a run", expected="the run.json that run.py writes")
        return record

    def write(self, record: dict[str, Any]) -> None:
        """Replace the record atomically. Raises OSError."""
        write_atomically(self.record, json.dumps(record, ensure_ascii=False, indent=1) + "\n")

    def update(self, **changes: Any) -> dict[str, Any]:
        """Read the record, change some of its entries, write it; return the new one."""
        record = {**self.read(), **changes}
        self.write(record)
        return record


def read_json(path: Path, *, required: bool = False) -> dict[str, Any]:
    """Return a JSON object from a file; {} if it is missing or damaged and not ``required``, else BadInput."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(data, dict):
            return data
        problem = "is not a JSON object"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    except ValueError as error:
        problem = f"is damaged: {error}"
    if required:
        raise BadInput(f"{path} {problem}", expected="the record that run.py writes")
    return {}


def is_record(data: dict[str, Any]) -> bool:
    """Tell whether JSON data is a record of a run: other programs write a ``run.json``, too."""
    return all(isinstance(data.get(name), kind) for name, kind in _RECORD.items())


@contextmanager
def locked(path: Path) -> Iterator[int | None]:
    """Hold an exclusive lock on a file while the block runs; yields None if somebody else holds it.

    The kernel drops the lock when its holder dies, however it dies.
    """
    handle = take_lock(path)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def take_lock(path: Path) -> int | None:
    """Take an exclusive lock on a file for the life of this process; None if somebody keeps it.

    Who only looks (``is_held``) is waited for. The descriptor is not inherited by children. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    deadline = time.monotonic() + LOOKS_END_WITHIN
    try:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return handle
            if time.monotonic() >= deadline:
                os.close(handle)
                return None
            time.sleep(0.01)
    except OSError:
        os.close(handle)
        raise


def is_held(path: Path) -> bool:
    """Tell whether somebody holds the lock on a file. Raises OSError.

    ``flock(2)`` can only be asked by taking: for a moment a look holds the lock, shared, so that
    looks do not mistake each other for a holder.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(handle)


def is_run(folder: Path) -> bool:
    """Tell whether a folder's ``run.json`` is a run's; a damaged one is, if a blueprint lies beside it."""
    record = read_json(folder / "run.json")
    return is_record(record) or (not record and (folder / "blueprint.md").is_file())


def runs_below(folder: Path) -> list[RunDir]:
    """Return the runs in ``folder`` and up to four levels below, sorted by path; links are not followed.

    A ``run.json`` of another program makes no run.
    """
    found = []
    start = len(folder.parts)
    for where, folders, files in os.walk(folder):
        here = Path(where)
        if "run.json" in files and is_run(here):
            found.append(RunDir(here))
            folders.clear()
        elif len(here.parts) - start >= 4:
            folders.clear()
        else:
            folders[:] = [name for name in folders if not name.startswith(".")]
    return sorted(found, key=lambda run: run.path)
