"""What is known about a run beside its logs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from skillpack.triage.writers import is_written

FIRST_STEP_SECONDS = 1200.0


@dataclass(frozen=True)
class Facts:
    """What is known about a run beside its logs. All of it may be unknown (a log alone)."""

    state: str | None = None
    """The run's state (``status``), or None."""
    ended: bool | None = None
    exit_code: int | None = None
    signal: str | None = None
    reason: str = ""
    died: tuple[str, ...] = ()
    silent: float | None = None
    """Seconds since the last output."""
    silence_limit: float | None = None
    """Seconds of silence that are too long, if somebody has said so."""
    elapsed: float | None = None
    first_step_timeout: float = FIRST_STEP_SECONDS
    disk_full: bool = False
    backgrounded: bool = False


def log_facts(
    log: Path, *, ended: bool, exit_code: int | None, silence_limit: float | None = None, follow: bool = False
) -> Facts:
    """Return the facts about a log without a run: whether somebody writes to it, how old its last output is.

    A packed log is over, and so is one that nobody has open for writing, unless it shall be
    followed. Where the kernel cannot say (``writers``), the age of the last output decides.
    """
    packed = log.suffix == ".gz"
    written = None if packed or ended or exit_code is not None else is_written(log)
    return Facts(
        state="running" if written else None,
        ended=ended or packed or (written is False and not follow),
        exit_code=exit_code,
        silent=None if packed else max(0.0, time.time() - log.stat().st_mtime),
        silence_limit=silence_limit,
    )
