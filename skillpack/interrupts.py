"""Signals that wait until a process that is being started can be found again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def held_back() -> Iterator[None]:
    """Hold SIGINT, SIGTERM and SIGHUP back for the block; afterwards each does what it would have done.

    For starting a process: were ``subprocess.Popen`` interrupted, nobody would know the child.
    Outside the main thread, which no signal interrupts, the block just runs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    handlers = {number: signal.signal(number, lambda number, _: arrived.append(number)) for number in INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for signal_number in arrived:
            signal.raise_signal(signal_number)
