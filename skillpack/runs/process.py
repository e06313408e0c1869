"""Processes known by more than their number: pid, start tick and boot together are never reused.

Everything is read from Linux's ``/proc`` (``proc(5)``); wall-clock time plays no part.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

PROC = Path("/proc")
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_START_TICK, _PARENT, _SESSION, _ARGV_START, _ARGV_END = 19, 1, 3, 45, 46  # fields of stat, counted behind the name


@cache
def boot_id() -> str:
    """Return the id of this boot of the machine, or "" where there is none."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class Identity:
    """One process for all time: ``start_tick`` is in clock ticks after boot."""

    pid: int
    start_tick: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """Return the identity of a living process, or None."""
        stat = _stat(pid)
        return cls(pid, int(stat[_START_TICK]), boot_id()) if stat and stat[0] not in "ZX" else None

    @classmethod
    def from_json(cls, data: Any) -> Identity | None:
        """Read what ``as_json`` wrote; None for anything else."""
        try:
            return cls(int(data["pid"]), int(data["start_tick"]), str(data["boot"]))
        except (TypeError, KeyError, ValueError):
            return None

    def as_json(self) -> dict[str, Any]:
        """Return the identity as JSON data."""
        return asdict(self)

    def alive(self) -> bool:
        """Tell whether this very process still runs; a zombie does not."""
        return Identity.of(self.pid) == self

    def signal(self, number: int) -> bool:
        """Send a signal to this very process; tell whether it was there to get it."""
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return False
        try:
            if not self.alive():
                return False
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True

    def wait(self, seconds: float) -> bool:
        """Wait until this process has ended; tell whether it has."""
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return True
        try:
            return not self.alive() or bool(select.select([handle], [], [], max(0.0, seconds))[0])
        finally:
            os.close(handle)


def _stat(pid: int) -> list[str]:
    """Return the fields of ``/proc/<pid>/stat`` behind the command's name: state, parent, group, session …"""
    try:
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _all_stats() -> dict[int, list[str]]:
    return {
        int(entry.name): stat for entry in PROC.iterdir() if entry.name.isdigit() and (stat := _stat(int(entry.name)))
    }


def descendants(pid: int) -> list[Identity]:
    """Return the living processes below ``pid``, whatever session or group they put themselves into."""
    stats = _all_stats()
    children: dict[int, list[int]] = {}
    for child, stat in stats.items():
        children.setdefault(int(stat[_PARENT]), []).append(child)
    found: list[int] = []
    queue = [pid]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return [
        Identity(child, int(stats[child][_START_TICK]), boot_id()) for child in found if stats[child][0] not in "ZX"
    ]


def carrying(variable: str, value: str) -> list[Identity]:
    """Return our living processes that were started with ``variable=value`` in their environment.

    This finds what a dead supervisor has left behind: an environment is inherited by workers
    that were re-parented to init.
    """
    wanted = f"{variable}={value}".encode()
    found = []
    for entry in PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0") and (who := Identity.of(int(entry.name))):
                found.append(who)
    return found


def become_subreaper() -> bool:
    """Make orphans below this process its children, so that none escapes its tree (``prctl(2)``)."""
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    return False


def retitle(title: str) -> None:
    """Overwrite this process's command line as others see it.

    ``ajet --autokill`` kills every process with "python", "ray" or "vllm" in its command line;
    a supervisor started by ``/usr/bin/python3 …`` would fall with the run that it watches.
    """
    stat = _stat(os.getpid())
    with suppress(IndexError, ValueError):
        start, end = int(stat[_ARGV_START]), int(stat[_ARGV_END])
        if 0 < start < end:
            ctypes.memmove(start, title.encode()[: end - start - 1].ljust(end - start, b"\0"), end - start)


def end_all(
    find: Callable[[], Iterable[Identity]], *, patience: float, reap: Callable[[], object] | None = None
) -> list[Identity]:
    """End every process that ``find`` returns: TERM, up to ``patience`` seconds, then KILL.

    ``find`` is asked again and again, since the dying start others. ``reap`` collects zombies.
    Returns the processes that outlived even KILL (waiting on a device, as a rule).
    """
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 10.0)):
        deadline = time.monotonic() + seconds
        told: set[Identity] = set()
        while left := list(find()):
            for process in set(left) - told:
                process.signal(number)
            told |= set(left)
            if time.monotonic() >= deadline:
                break
            left[0].wait(min(0.2, deadline - time.monotonic()))
            if reap:
                reap()
        if not left:
            return []
    return list(find())
