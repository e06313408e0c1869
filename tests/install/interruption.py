"""Stop what this process does to files at a chosen one of them, as a signal would.

By an audit hook (https://docs.python.org/3/library/audit_events.html): it sees each change to a
file system before it is made. There is no way to take a hook off again, so one is put on, and armed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CHANGES = {"os.chmod", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Stopped(BaseException):
    """What is raised in the place of the change."""


class _Countdown:
    armed = False
    left = 0
    for_good = False


def _watch(event: str, args: tuple[object, ...]) -> None:
    if not _Countdown.armed:
        return
    if event in CHANGES or (event == "open" and isinstance(args[2], int) and args[2] & WRITING):
        _Countdown.left -= 1
        if _Countdown.left < 0 and (_Countdown.for_good or _Countdown.left == -1):
            raise Stopped(event)


sys.addaudithook(_watch)


@contextmanager
def stopped_at(change: int, *, for_good: bool) -> Iterator[None]:
    """Stop the block at its change of that number (from 0), if it comes to it.

    ``for_good`` is how a kill does it: no clean-up changes anything afterwards either. Without, it
    is an interrupt, which lets the clean-up run.
    """
    _Countdown.left, _Countdown.for_good, _Countdown.armed = change, for_good, True
    try:
        yield
    except Stopped:
        pass
    finally:
        _Countdown.armed = False
