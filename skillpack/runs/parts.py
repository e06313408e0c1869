"""The parts of a run: one training command, or a swarm's server and clients."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from skillpack.runs.rundir import RUN_VARIABLE


class Part:
    """One command of a run, and how it went. Made from its entry in ``run.json``."""

    def __init__(self, entry: dict[str, Any], log: Path) -> None:
        self.name: str = entry["name"]
        self.role: str = entry["role"]
        self.command: str = entry["command"]
        self.log = log
        self.pid: int | None = None
        self.identity: dict[str, Any] | None = None
        self.code: int | None = None
        self.signal: str | None = None
        self.seconds: float | None = None
        self.ended_monotonic: float | None = None
        self._began = 0.0

    @property
    def ended(self) -> bool:
        """Whether the part's command has ended."""
        return self.code is not None

    @property
    def how(self) -> str:
        """How it ended, in words: ``exit code 1`` or ``SIGKILL``."""
        return self.signal or f"exit code {self.code}"

    def begin(self, pid: int, identity: dict[str, Any] | None) -> None:
        """Note that the command runs as ``pid``."""
        self.pid, self.identity, self._began = pid, identity, time.monotonic()

    def end(self, status: int) -> None:
        """Note the wait status of the command. A shell's 128 + n is told as signal n too."""
        self.ended_monotonic = round(time.monotonic(), 3)
        self.seconds = round(self.ended_monotonic - self._began, 3)
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        self.code = 128 + number if number else os.WEXITSTATUS(status)
        if not number and 128 < self.code < 128 + signal.NSIG:
            number = self.code - 128
        if number in set(signal.Signals):
            self.signal = signal.Signals(number).name

    def as_json(self) -> dict[str, Any]:
        """Return the part's entry in ``run.json``."""
        return {
            "name": self.name,
            "role": self.role,
            "command": self.command,
            "log": str(self.log),
            "process": self.identity,
            "exit_code": self.code,
            "signal": self.signal,
            "seconds": self.seconds,
            "ended_monotonic": self.ended_monotonic,
        }


def child_environment(environment: dict[str, str], record: dict[str, Any]) -> dict[str, str]:
    """Return the environment of a run's commands: the caller's, the blueprint's variables, the run's id.

    Python writes unbuffered, so that the log has each line when it is printed; the blueprint's
    interpreter comes first on PATH, so that ``python`` and ``ajet`` mean that environment.
    """
    spec = record["spec"]
    child = {**environment, **spec["variables"], RUN_VARIABLE: record["id"], "PYTHONUNBUFFERED": "1"}
    for name in ("TMUX", "TMUX_PANE"):
        child.pop(name, None)
    if spec.get("venv_exe") and record["backend"]["kind"] == "local":
        folder = str(Path(spec["venv_exe"]).parent)
        child["PATH"] = os.pathsep.join([folder, child.get("PATH", os.defpath)])
    return child
