"""Turn a part's shell command into what is started on this side, by where it shall run."""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from skillpack.runs.ports import is_here

SSH_OPTIONS = ["-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=8"]
SSH_LOST = 255
"""ssh's own exit code when the connection failed: the fate of the remote command is not known."""
RAY_JOB = Path(__file__).with_name("ray_job.py")


@dataclass(frozen=True)
class Task:
    """A command of a run: its part's name, the run's id, its folder, and what the run adds to the environment."""

    command: str
    part: str
    run_id: str
    cwd: str | None = None
    venv_exe: str | None = None
    variables: dict[str, str] = field(default_factory=dict)

    def script(self) -> str:
        """Return the command as a script for another machine: folder, PATH and variables first."""
        lines = [f"cd {shlex.quote(self.cwd)} || exit 127"] if self.cwd else []
        if self.venv_exe:
            lines.append(f'export PATH={shlex.quote(str(PurePosixPath(self.venv_exe).parent))}:"$PATH"')
        lines += [
            f"export {name}={shlex.quote(value)}"
            for name, value in sorted({**self.variables, "PYTHONUNBUFFERED": "1"}.items())
        ]
        return "\n".join([*lines, f"exec $(command -v bash || command -v sh) -c {shlex.quote(self.command)}"])


@dataclass(frozen=True)
class Backend:
    """Where a run's commands run: ``local``, ``ssh`` (address: what ssh takes) or ``ray`` (the cluster's address)."""

    kind: str = "local"
    address: str = ""
    cpus: float = 0.0
    gpus: float = 0.0
    """What a Ray job's driver reserves. With neither, Ray keeps drivers on the head node."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Backend:
        """Read what ``as_json`` wrote. Raises TypeError for anything else."""
        return cls(**data)

    def as_json(self) -> dict[str, Any]:
        """Return the backend as JSON data."""
        return asdict(self)

    def is_here(self) -> bool:
        """Tell whether the commands run on this machine."""
        host = self.address.rpartition("@")[2] if self.kind == "ssh" else urlsplit(self.address).hostname
        return self.kind == "local" or self.address == "auto" or is_here(host)

    def argv(self, task: Task) -> list[str]:
        """Return the program and arguments to start here; locally, folder and environment are the caller's to set."""
        if self.kind == "ssh":
            return ["ssh", *SSH_OPTIONS, self.address, _remote_start(task)]
        if self.kind == "ray":
            job: dict[str, Any] = {"entrypoint": task.script(), "submission_id": f"{task.run_id}-{task.part}"}
            resources = {"entrypoint_num_cpus": self.cpus, "entrypoint_num_gpus": self.gpus}
            job |= {name: amount for name, amount in resources.items() if amount}
            return [sys.executable, "-u", str(RAY_JOB), self.address, json.dumps(job)]
        return [shell(), "-c", task.command]

    def stop_argv(self, part: str, run_id: str) -> list[str] | None:
        """Return a command that ends the part where it runs, or None if ending its process here does."""
        return ["ssh", *SSH_OPTIONS, self.address, _remote_stop(part, run_id)] if self.kind == "ssh" else None


def shell() -> str:
    """Return the shell that launch commands are written for: bash, or sh where there is none."""
    return next((path for path in ("/bin/bash", "/usr/bin/bash") if os.access(path, os.X_OK)), "/bin/sh")


def _pid_file(part: str, run_id: str) -> str:
    return f"/tmp/ajet-run-{run_id}-{part}.pid"


def _remote_start(task: Task) -> str:
    """Return the line for the remote shell: run the script in a session of its own and note the session's id."""
    inner = f"echo $$ > {_pid_file(task.part, task.run_id)}\n{task.script()}"
    # setsid -w waits and passes the exit code on; the session outlives a broken connection
    return f"exec setsid -w sh -c {shlex.quote(inner)} < /dev/null"


def _remote_stop(part: str, run_id: str) -> str:
    """Return the line for the remote shell that ends the part's session: TERM, ten seconds, KILL.

    The pid in the file counts only while that process carries the run's id in its environment,
    so that a pid which somebody else got since is never touched.
    """
    file = _pid_file(part, run_id)
    return (
        f"p=$(cat {file} 2>/dev/null) || exit 0; rm -f {file}; "
        f"tr '\\0' '\\n' < /proc/$p/environ 2>/dev/null | grep -qx AJET_RUN_ID={run_id} || exit 0; "
        'pkill -TERM -s "$p"; n=0; while pgrep -s "$p" >/dev/null && [ $n -lt 100 ]; do n=$((n+1)); sleep 0.1; done; '
        'pkill -KILL -s "$p"; true'
    )
