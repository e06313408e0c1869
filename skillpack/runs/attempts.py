"""The diary of a run: what was tried, why, and how the attempt before had ended."""

from __future__ import annotations

import time
from typing import Any

from skillpack.files import write_atomically
from skillpack.runs.rundir import RunDir
from skillpack.runs.status import Status


def note_attempt(run: RunDir, status: Status, causes: list[dict[str, Any]], tried: str, why: str) -> None:
    """Append an entry to ``attempts.md``: how the last attempt ended and what is tried next. Raises OSError."""
    old = run.attempts.read_text(encoding="utf-8") if run.attempts.exists() else "# Attempts\n"
    number = status.record["attempt"]
    ended = status.state + (f": {status.reason}" if status.reason else "")
    lines = [
        f"\n## After attempt {number} ({time.strftime('%Y-%m-%d %H:%M')})\n",
        f"- ended: {ended}",
        *(f"- cause {cause['rank']}: {cause['id']}: {cause['cause']}" for cause in causes[:3]),
        f"- tried next: {tried}",
        *([f"- why: {why}"] if why else []),
    ]
    write_atomically(run.attempts, old.rstrip("\n") + "\n" + "\n".join(lines) + "\n")
