"""The supervisor's signs of life: how the logs grow, how the engine is, whether the disk is full."""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from skillpack.files import write_atomically
from skillpack.runs import process
from skillpack.runs.engine import EngineStatus
from skillpack.runs.merge import Merger
from skillpack.runs.parts import Part
from skillpack.runs.rundir import RunDir

EVERY = 2.0
RESERVE = 128 * 1024
FULL = 64 * 1024
"""Free bytes below which a disk counts as full: the next page of log does not fit."""


class Heart:
    """Beats into ``heartbeat.json`` and holds back some disk space for the last record."""

    def __init__(self, run: RunDir, parts: list[Part]) -> None:
        self._run = run
        self._parts = parts
        self._reserve = run.path / ".reserve"
        self._merger = Merger(run.console, [(part.name, part.log) for part in parts]) if len(parts) > 1 else None
        self._sizes: dict[str, int] = {}
        self._grown = time.monotonic()
        self._next = 0.0
        self._engine: list[dict[str, Any]] = []
        self.disk_was_full = False
        with suppress(OSError):
            self._reserve.write_bytes(os.urandom(RESERVE))

    def engine(self, status: EngineStatus | None) -> None:
        """Note what the swarm server said (None: no answer)."""
        new = status.as_json() if status else {"status": "unreachable", "global_step": None}
        last = self._engine[-1] if self._engine else {}
        if any(last.get(key) != value for key, value in new.items()):
            self._engine = [*self._engine[-19:], {**new, "monotonic": round(time.monotonic(), 1)}]

    def beat(self, *, last: bool = False) -> None:
        """Look at logs and disk; write the heartbeat if it is due. Never raises OSError."""
        now = time.monotonic()
        if self._merger:
            self._merger.copy(everything=last)
        sizes = {part.name: _size(part.log) for part in self._parts}
        if sizes != self._sizes:
            self._sizes, self._grown = sizes, now
        if now < self._next and not last:
            return
        self._next = now + EVERY
        with suppress(OSError):
            self.disk_was_full = self.disk_was_full or shutil.disk_usage(self._run.path).free < FULL
        document = {
            "monotonic": round(now, 3),
            "boot": process.boot_id(),
            "last_output_monotonic": round(self._grown, 3),
            "log_bytes": sum(sizes.values()),
            "engine": self._engine,
            "disk_full": self.disk_was_full,
        }
        with suppress(OSError):
            write_atomically(self._run.heartbeat, json.dumps(document) + "\n")

    def free_reserve(self) -> None:
        """Give the held-back disk space free, for the last record to fit."""
        self._reserve.unlink(missing_ok=True)


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0
