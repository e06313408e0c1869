"""The process that runs the scripts of the cases, one after the other, and owns all that they start.

It is a process of its own so that it can adopt what a script leaves behind: whatever lives below
it when a script has ended, the script has leaked, even a daemon that has detached itself.
It reads one order per line (JSON) from stdin and answers each with one line on stdout.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from types import FrameType
from typing import TypedDict

from skillpack.validate.evals import confine, processes

FILE_SIZE_LIMIT = 256 * 2**20
"""Bytes that a script may write to one file: one that prints without end must not fill the disk."""

GRACE = 1.0
"""Seconds in which what a script has started may end after it."""


class Order(TypedDict):
    """What to run.

    ``stdin`` is a file, or None: then nothing may be read. ``writable`` None: no confinement.
    ``background``: what it leaves running is meant to; it is ended all the same, unless ``more``
    commands of the same case follow.
    """

    argv: list[str]
    cwd: str
    env: Mapping[str, str]
    stdin: str | None
    stdout: str
    stderr: str
    timeout: float
    writable: list[str] | None
    background: bool
    more: bool


class Outcome(TypedDict):
    """What came of it. ``exit_code`` is negative for a signal and None if there is none."""

    exit_code: int | None
    seconds: float
    timed_out: bool
    read_stdin: bool
    leaked: list[str]
    error: str


def serve() -> None:
    """Answer orders until stdin ends. SIGTERM and SIGINT end what runs, and then this process."""
    processes.adopt_orphans()
    processes.end_with_parent()
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    for line in sys.stdin:
        print(json.dumps(execute(json.loads(line))), flush=True)


def _stop(signum: int, frame: FrameType | None) -> None:
    signal.signal(signum, signal.SIG_IGN)
    processes.kill_below(os.getpid())
    os._exit(128 + signum)


def execute(order: Order) -> Outcome:
    """Run one command, wait for its end or its time limit, and end what it left."""
    given = order["stdin"]
    stdin = os.open(given, os.O_RDONLY) if given else _bait()
    outcome = nothing()
    started = time.monotonic()
    try:
        with open(order["stdout"], "wb") as stdout, open(order["stderr"], "wb") as stderr:  # noqa: PTH123
            child = subprocess.Popen(
                order["argv"],
                cwd=order["cwd"],
                env=order["env"],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=lambda: _prepare(order["writable"]),
            )
    except (OSError, subprocess.SubprocessError) as error:
        os.close(stdin)
        outcome["error"] = str(error)
        return outcome
    outcome["timed_out"] = not _ends(child, order["timeout"])
    if not outcome["timed_out"]:
        outcome["exit_code"] = child.wait()
    outcome["seconds"] = round(time.monotonic() - started, 3)
    outcome["read_stdin"] = not given and _waiting(stdin) == 0
    os.close(stdin)
    if not (outcome["timed_out"] or order["background"]):
        outcome["leaked"] = _leaked(child.pid)
    if outcome["timed_out"] or not (order["background"] and order["more"]):
        processes.kill_below(os.getpid(), child.pid)
        child.wait()
    return outcome


def _prepare(writable: list[str] | None) -> None:
    """Set the limits of the script's process; runs in it, before the script."""
    processes.end_with_parent(signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE_LIMIT, FILE_SIZE_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if writable is not None:
        confine.restrict_self(writable)


def _ends(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for the end of a process; return whether it came in time."""
    if not hasattr(os, "pidfd_open"):  # Linux has it
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
        return child.returncode is not None
    handle = os.pidfd_open(child.pid)
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def _bait() -> int:
    """Return a pipe that holds one empty line and then ends.

    Whoever asks a question gets an empty answer instead of hanging, and the line is gone.
    """
    reader, writer = os.pipe()
    os.write(writer, b"\n")
    os.close(writer)
    return reader


def _waiting(pipe: int) -> int:
    """Return how many bytes nobody has read."""
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0])


def _leaked(group: int) -> list[str]:
    me = os.getpid()
    if processes.wait_until(lambda: processes.no_children() and not processes.descendants(me, group), GRACE):
        return []
    left = [processes.command_line(pid) for pid in processes.descendants(me, group)]
    return left or ["one that starts itself again and again"]


def nothing(error: str = "") -> Outcome:
    """Return the outcome of a command that has not run."""
    return Outcome(exit_code=None, seconds=0.0, timed_out=False, read_stdin=False, leaked=[], error=error)


def order_line(order: Order) -> str:
    """Return an order as the line that ``serve`` reads."""
    return json.dumps(order) + "\n"


def answer(line: str) -> Outcome:
    """Return the outcome in a line that ``serve`` has written."""
    outcome: Outcome = json.loads(line)
    return outcome
