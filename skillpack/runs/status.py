"""What is true about a run, found out from its directory (and the kernel) alone."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from skillpack.runs import process
from skillpack.runs.backends import SSH_LOST
from skillpack.runs.process import Identity
from skillpack.runs.progress import Progress
from skillpack.runs.rundir import RUN_VARIABLE, START_LOCK, SUPERVISOR_LOCK, RunDir, is_held, read_json

ALIVE = ("starting", "running")
ENDED_WELL = "finished"
FAR_HEARTBEAT = 120.0
"""Seconds without a heartbeat after which a run on another machine counts as lost."""


@dataclass
class Status:
    """A run's state and how it is known.

    ``state``: starting, running, finished (ended well), failed, timed-out, stopped, or lost (it
    is gone and nobody has recorded its end).
    """

    state: str
    reason: str
    record: dict[str, Any] = field(repr=False)
    supervised: bool = True
    """False: the run lives, but its supervisor does not, so nobody enforces its time limit."""
    processes: list[int] = field(default_factory=list)
    heartbeat: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def alive(self) -> bool:
        """Whether the run goes on."""
        return self.state in ALIVE

    @property
    def exit_code(self) -> int | None:
        """The run's exit code, if its command ended by itself."""
        return self.record.get("exit_code")

    @property
    def died(self) -> list[str]:
        """The parts that ended badly by themselves, the first to end first."""
        return [part["name"] for part in _dead(self.record)]

    @property
    def signal(self) -> str | None:
        """The signal that ended the first of the dead parts."""
        return next((part.get("signal") for part in _dead(self.record)), None)

    def elapsed(self) -> float | None:
        """Return the seconds that the run has lived (or lived), by the monotonic clock; None if unknown."""
        if self.record.get("seconds") is not None:
            return float(self.record["seconds"])
        started = self.record.get("started_monotonic")
        if started is None or self.record.get("boot") != process.boot_id():
            return None
        return max(0.0, time.monotonic() - started)

    def silent(self, size: int) -> float | None:
        """Return the seconds since a living run's last output; None if unknown. No wall clock is asked.

        ``size`` is that of the run's logs now, in bytes: what goes beyond the heartbeat's was
        written since. If there is no supervisor to beat, that is all that can be said.
        """
        grown = self.heartbeat.get("last_output_monotonic")
        if self.heartbeat.get("boot") != process.boot_id():
            return None
        if size > self.heartbeat.get("log_bytes", 0):
            grown = self.heartbeat.get("monotonic") if self.supervised else None
        if grown is None:
            return None
        return max(0.0, time.monotonic() - grown)

    def engine(self) -> dict[str, Any] | None:
        """Return what the swarm server last said, if the run has one."""
        told = self.heartbeat.get("engine") or []
        return dict(told[-1]) if told else None


def _dead(record: dict[str, Any]) -> list[dict[str, Any]]:
    by_us = record.get("ended_by_us") or []
    dead = [part for part in record["parts"] if part.get("exit_code") and part["name"] not in by_us]
    return sorted(dead, key=lambda part: part.get("ended_monotonic") or 0.0)


def observe(run: RunDir, *, holds_start: bool = False) -> Status:
    """Return the state of a run; ``holds_start``: the caller itself holds the lock of a start.

    Raises BadInput if its record is missing or damaged.
    """
    record = run.read()
    heartbeat = read_json(run.heartbeat)
    if record["phase"] == "ended":
        state, reason = _ended(run, record, heartbeat)
        return Status(state, reason, record, heartbeat=heartbeat)
    if record["host"] != socket.gethostname():
        state, reason = _far(run, record)
        return Status(state, reason, record, heartbeat=heartbeat)
    supervisor = Identity.from_json(record.get("supervisor"))
    if (supervisor and supervisor.alive()) or _locked(run, holds_start):
        state = "starting" if record["phase"] == "starting" else "running"
        return Status(state, "", record, heartbeat=heartbeat, processes=_pids(record))
    if run.read()["phase"] == "ended":  # it ended between the two looks
        return observe(run)
    left = leftovers(record)
    if left:
        reason = "its supervisor is gone, its processes go on: nobody enforces exp_max_time"
        return Status("running", reason, record, False, [one.pid for one in left], heartbeat)
    return Status("lost", _why_lost(run, record), record, False, heartbeat=heartbeat)


def leftovers(record: dict[str, Any]) -> list[Identity]:
    """Return the living processes of a run on this machine, by its recorded ones and by its id in their environment."""
    recorded = [Identity.from_json(part.get("process")) for part in record["parts"]]
    found = {one for one in recorded if one and one.alive()}
    return sorted(found | set(process.carrying(RUN_VARIABLE, record["id"])), key=lambda one: one.pid)


def _locked(run: RunDir, holds_start: bool) -> bool:
    """Tell whether a supervisor or another's start holds the run, even one whose pid cannot be seen from here."""
    if is_held(run.path / SUPERVISOR_LOCK):
        return True
    return not holds_start and is_held(run.path / START_LOCK) and run.read()["phase"] == "starting"


def _pids(record: dict[str, Any]) -> list[int]:
    identities = [Identity.from_json(part.get("process")) for part in record["parts"]]
    return [one.pid for one in identities if one]


def _why_lost(run: RunDir, record: dict[str, Any]) -> str:
    if record["phase"] == "starting":
        return f"it was never taken over by its supervisor; see {run.path / 'supervisor.log'}"
    if record.get("boot") not in (None, process.boot_id()):
        return "the machine was started anew since; nobody recorded the run's end"
    return "its supervisor and its processes are gone, and nobody recorded the end (SIGKILL?)"


def _far(run: RunDir, record: dict[str, Any]) -> tuple[str, str]:
    """Judge a run on another machine by its heartbeat's age, by the clock of the file system that both share."""
    probe = run.path / f".clock-{os.getpid()}"
    try:
        probe.touch()
        age = probe.stat().st_mtime - run.heartbeat.stat().st_mtime
    except OSError as error:
        return "lost", f"it was started on {record['host']}, and there is no heartbeat: {error}"
    finally:
        probe.unlink(missing_ok=True)
    if age < FAR_HEARTBEAT:
        return "running", f"on {record['host']}"
    return "lost", f"it was started on {record['host']}; its last heartbeat is {age:.0f} s old"


def _ended(run: RunDir, record: dict[str, Any], heartbeat: dict[str, Any]) -> tuple[str, str]:
    """Return state and reason of a run whose end is recorded. Exit code 0 without a training step is a failure."""
    outcome, reason = record["outcome"], record.get("reason") or ""
    if outcome in ("timed-out", "stopped"):
        return outcome, reason
    if outcome != "exited":
        return "failed", reason
    bad = _dead(record)
    if bad and record["backend"]["kind"] == "ssh" and bad[0]["exit_code"] == SSH_LOST:
        return "lost", f"the ssh connection of {bad[0]['name']} broke; what runs over there was told to end"
    if bad:
        told = [f"{part['name']} ended with {_how(part)}" for part in bad]
        return "failed", "; ".join(told)
    progress = Progress.of(run, record)
    progress.refresh(whole=True)
    if progress.steps or _engine_stepped(heartbeat):
        return ENDED_WELL, ""
    return "failed", "it exited with code 0, but no training step was made"


def _how(part: dict[str, Any]) -> str:
    code = f"exit code {part['exit_code']}"
    return f"{code} ({part['signal']})" if part.get("signal") else code


def _engine_stepped(heartbeat: dict[str, Any]) -> bool:
    """Tell whether a swarm server, whose log may be elsewhere, counted a step while the run lived."""
    steps = [told.get("global_step") or 0 for told in heartbeat.get("engine") or []]
    return bool(steps) and max(steps) > steps[0]
