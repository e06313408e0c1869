"""What is known about a run beside its logs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

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


def log_facts(log: Path, *, ended: bool, exit_code: int | None, silence_limit: float | None = None) -> Facts:
    """Return the facts about a log without a run: how old its last output is. A packed log is over."""
    packed = log.suffix == ".gz"
    silent = None if packed else max(0.0, time.time() - log.stat().st_mtime)
    return Facts(ended=ended or packed, exit_code=exit_code, silent=silent, silence_limit=silence_limit)
