"""Stop a run: by its supervisor if that lives, else by the identities that the run has left."""

from __future__ import annotations

import signal
import subprocess
import time

from skillpack.files import write_atomically
from skillpack.runs import process
from skillpack.runs.backends import Backend
from skillpack.runs.process import Identity
from skillpack.runs.rundir import RunDir
from skillpack.runs.status import Status, leftovers, observe
from skillpack.runs.tmux import Tmux

MARGIN = 30.0


def stop_run(run: RunDir, reason: str) -> Status:
    """End a run and everything that belongs to it (TERM, then KILL); return its state then.

    Only processes that are the run's own are touched, each by pid and start tick. A run that
    has ended is left as it is, apart from processes that outlived it.
    """
    status = observe(run)
    supervisor = Identity.from_json(status.record.get("supervisor"))
    patience = status.record["spec"]["kill_after"]
    if status.alive and status.supervised:
        write_atomically(run.path / "stop.request", reason or "stopped by run.py stop")
        if supervisor and supervisor.signal(signal.SIGTERM):
            supervisor.wait(patience + MARGIN)
        return observe(run)
    survivors = process.end_all(lambda: leftovers(status.record), patience=patience)
    if status.alive:
        _stop_far(status)
        run.update(
            phase="ended",
            outcome="stopped",
            reason=reason or "stopped by run.py stop, after its supervisor had gone",
            ended=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            ended_by_us=[part["name"] for part in status.record["parts"]],
            survivors=[one.as_json() for one in survivors],
        )
    return observe(run)


def _stop_far(status: Status) -> None:
    backend = Backend.from_json(status.record["backend"])
    for part in status.record["parts"]:
        argv = backend.stop_argv(part["name"], status.record["id"])
        if argv:
            subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)


def close_window(status: Status) -> None:
    """Close the tmux session of a run, if it is still open."""
    if status.record.get("session") and Tmux.installed():
        Tmux(status.record.get("socket")).close(status.record["session"])
