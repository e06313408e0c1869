"""Turn a part's shell command into what is started on this side, by where it shall run."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from typing import Any

SSH_OPTIONS = ["-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=8"]
SSH_LOST = 255
"""ssh's own exit code when the connection failed: the fate of the remote command is not known."""


@dataclass(frozen=True)
class Backend:
    """Where a run's commands run: ``local``, ``ssh`` (address: what ssh takes) or ``ray`` (the cluster's address)."""

    kind: str = "local"
    address: str = ""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Backend:
        """Read what ``as_json`` wrote."""
        return cls(str(data.get("kind", "local")), str(data.get("address", "")))

    def as_json(self) -> dict[str, Any]:
        """Return the backend as JSON data."""
        return {"kind": self.kind, "address": self.address}

    def argv(self, command: str, *, part: str, run_id: str, cwd: str | None, variables: dict[str, str]) -> list[str]:
        """Return the program and arguments to start for ``command``, a piece of shell.

        ``variables`` are what the run adds to the environment; the local backend has them in
        its environment already.
        """
        if self.kind == "ssh":
            return ["ssh", *SSH_OPTIONS, self.address, remote_script(command, part, run_id, cwd, variables)]
        if self.kind == "ray":
            return [sys.executable, "-m", "skillpack.runs.ray_job", self.address, f"{run_id}-{part}", command]
        return [shell(), "-c", command]

    def stop_argv(self, *, part: str, run_id: str) -> list[str] | None:
        """Return a command that ends the part where it runs, or None if ending its process here does."""
        if self.kind == "ssh":
            return ["ssh", *SSH_OPTIONS, self.address, remote_stop(part, run_id)]
        return None


def shell() -> str:
    """Return the shell that launch commands are written for: bash, or sh where there is none."""
    return next((path for path in ("/bin/bash", "/usr/bin/bash") if os.access(path, os.X_OK)), "/bin/sh")


def _pid_file(part: str, run_id: str) -> str:
    return f"/tmp/ajet-run-{run_id}-{part}.pid"


def remote_script(command: str, part: str, run_id: str, cwd: str | None, variables: dict[str, str]) -> str:
    """Return the line for the remote shell: note the group's id, go to ``cwd``, run ``command`` in its own session."""
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(variables.items()))
    inner = "; ".join(
        part_
        for part_ in (
            f"echo $$ > {_pid_file(part, run_id)}",
            f"cd {shlex.quote(cwd)} || exit 127" if cwd else "",
            f"export {exports}" if exports else "",
            f"exec $(command -v bash || command -v sh) -c {shlex.quote(command)}",
        )
        if part_
    )
    # setsid -w waits and passes the exit code on; the session outlives a broken connection
    return f"exec setsid -w sh -c {shlex.quote(inner)} < /dev/null"


def remote_stop(part: str, run_id: str) -> str:
    """Return the line for the remote shell that ends the part's session: TERM, ten seconds, KILL."""
    file = _pid_file(part, run_id)
    return (
        f"p=$(cat {file} 2>/dev/null) || exit 0; "
        'grep -qzx "AJET_RUN_ID=' + run_id + '" "/proc/$p/environ" 2>/dev/null || '
        'pgrep -s "$p" >/dev/null 2>&1 || exit 0; '
        'pkill -TERM -s "$p"; n=0; while pgrep -s "$p" >/dev/null && [ $n -lt 100 ]; do n=$((n+1)); sleep 0.1; done; '
        f'pkill -KILL -s "$p"; rm -f {file}'
    )
