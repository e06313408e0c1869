"""What runs below a process, and how it is ended: by process id, never by name."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

STOP_LIMIT = 10.0
"""Seconds that a program has to end after SIGTERM."""


class Process(NamedTuple):
    """A row of the process table."""

    pid: int
    parent: int
    group: int
    state: str


def table() -> list[Process]:
    """Return the processes of this machine, from /proc or, where there is none, from ``ps``."""
    if not Path("/proc/self/stat").exists():
        listing = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="], capture_output=True, text=True, check=True
        )
        rows = [line.split() for line in listing.stdout.splitlines()]
        return [Process(int(pid), int(parent), int(group), state) for pid, parent, group, state in rows]
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                # the second field is the program's name in parentheses, which may itself hold any character
                stat = Path(entry.path, "stat").read_text(errors="replace").rpartition(") ")[2].split()
                found.append(Process(int(entry.name), int(stat[1]), int(stat[2]), stat[0]))
    return found


def descendants(root: int, group: int | None = None) -> list[int]:
    """Return the ids of the live processes below ``root``, and of those in the process group ``group``."""
    rows = table()
    below = {root}
    grown = True
    while grown:
        more = {row.pid for row in rows if row.parent in below} - below
        below |= more
        grown = bool(more)
    return [
        row.pid
        for row in rows
        if (row.pid in below or row.group == group) and row.pid != root and not row.state.startswith("Z")
    ]


def command_line(pid: int) -> str:
    """Return the command line of a process, cut to 100 characters; its id if it has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        listing = subprocess.run(["ps", "-p", str(pid), "-o", "args="], capture_output=True, text=True, check=False)
        words = listing.stdout.split()
    return (" ".join(words).strip() or f"process {pid}")[:100]


def wait_until(condition: Callable[[], bool], seconds: float, step: float = 0.01) -> bool:
    """Ask ``condition`` every ``step`` seconds until it holds or ``seconds`` have passed; return whether it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(step)
    return True


def kill_below(root: int, group: int | None = None, seconds: float = 5.0) -> bool:
    """Kill all processes below ``root`` and in ``group``; return whether none is left.

    It asks again until there is none: a process may start others while it is being ended.
    """

    def none_left() -> bool:
        pids = descendants(root, group)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return not pids and (root != os.getpid() or no_children())

    return wait_until(none_left, seconds)


def adopt_orphans() -> None:
    """Make this process the parent of what its descendants leave behind, daemons included (Linux; else nothing)."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(number: signal.Signals = signal.SIGTERM) -> None:
    """Ask for a signal when the parent thread of this process ends (Linux; else nothing)."""
    _prctl(PR_SET_PDEATHSIG, number)


def guard(command: Sequence[str]) -> NoReturn:
    """Run ``command`` and exit with its code; end it, and all that it started, on SIGTERM or if the parent dies."""
    adopt_orphans()
    end_with_parent()
    signal.signal(signal.SIGTERM, _interrupt_once)
    code = 128 + signal.SIGTERM
    try:
        child = subprocess.Popen(command)
        try:
            code = child.wait()
        except KeyboardInterrupt:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(STOP_LIMIT)
    finally:
        kill_below(os.getpid())
    sys.exit(code)


def _interrupt_once(number: int, frame: FrameType | None) -> NoReturn:
    """Raise KeyboardInterrupt and ignore further signals: one comes for each thread of a parent that dies."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def no_children() -> bool:
    """Let go of children that have ended; return whether there are none left.

    In a process that adopts orphans this is exact, which the process table is not: while that is
    read, one process may start another and end, and neither be seen.
    """
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False
