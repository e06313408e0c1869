"""The status machine of an engine, as something that can be waited on.

OFFLINE → BOOTING → ROLLING → ROLLING_POST → WEIGHT_SYNCING → ROLLING …; from anywhere → OFFLINE.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

OFFLINE = "ENGINE.OFFLINE"
BOOTING = "ENGINE.BOOTING"
ROLLING = "ENGINE.ROLLING"
ROLLING_POST = "ENGINE.ROLLING_POST"
WEIGHT_SYNCING = "ENGINE.WEIGHT_SYNCING"
WEIGHT_EXPORTING = "ENGINE.WEIGHT_EXPORTING"

STATUSES = (OFFLINE, BOOTING, ROLLING, ROLLING_POST, WEIGHT_SYNCING, WEIGHT_EXPORTING)
COLLECTING = (ROLLING, ROLLING_POST)
"""The statuses in which episodes live."""


class EngineStatus:
    """The current status, step and detail, and a revision that grows with each change.

    ``on_change(old, new)`` is called after each change of status, before waiters wake, and so is
    each of ``listeners``.
    """

    def __init__(self, on_change: Callable[[str, str], None] | None = None) -> None:
        self.current = OFFLINE
        self.detail: str | None = None
        self.global_step: int | None = None
        self.revision = time.time_ns() // 1_000_000  # grows over a restart of the server too
        self.booting_start_time: float | None = None
        self.listeners = [on_change] if on_change else []
        self._changed = asyncio.Event()

    @property
    def collecting(self) -> bool:
        """Whether episodes may run."""
        return self.current in COLLECTING

    def set(self, status: str, *, global_step: int | None = None, detail: str | None = None) -> None:
        """Enter ``status``; a ``global_step`` of None keeps the last one (it outlives stop_engine)."""
        old = self.current
        self.current = status
        self.detail = detail
        if global_step is not None:
            self.global_step = global_step
        if status == BOOTING and old != BOOTING:
            self.booting_start_time = time.time()
        elif status != BOOTING:
            self.booting_start_time = None
        self.revision += 1
        if old != status:
            for listener in self.listeners:
                listener(old, status)
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_change(self, revision: int, seconds: float) -> None:
        """Return when the revision differs from ``revision``, or after ``seconds``."""
        if self.revision == revision:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
