"""Give a run's environment to its supervisor without showing it to anybody.

A running tmux server does not take a later client's environment, ``tmux -e`` shows it in the
process list, and a file would leave keys on disk. So it goes through a named pipe that only
this user can open.
"""

from __future__ import annotations

import json
import os
import select
import time
from pathlib import Path


class HandoverFailed(OSError):
    """The other side did not come in time."""


def make_pipe(path: Path) -> int:
    """Make the pipe and open it for ``send``; the reader may come later. Returns a descriptor."""
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def send(pipe: int, environment: dict[str, str], seconds: float) -> None:
    """Write the environment into the pipe as the reader drains it. Raises HandoverFailed."""
    data = json.dumps(environment, ensure_ascii=True).encode() + b"\n"
    deadline = time.monotonic() + seconds
    while data:
        if not select.select([], [pipe], [], max(0.0, deadline - time.monotonic()))[1]:
            raise HandoverFailed("the supervisor did not take its environment")
        data = data[os.write(pipe, data[:4096]) :]


def receive(path: Path, seconds: float) -> dict[str, str]:
    """Read the environment from the pipe and remove it. Raises HandoverFailed or OSError."""
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    data = bytearray()
    deadline = time.monotonic() + seconds
    try:
        while not data.endswith(b"\n"):
            if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise HandoverFailed("run.py start did not hand over an environment")
            piece = os.read(pipe, 65536)
            if not piece:
                raise HandoverFailed("run.py start went away before it handed over the environment")
            data += piece
    finally:
        os.close(pipe)
        path.unlink(missing_ok=True)
    environment: dict[str, str] = json.loads(data)
    return environment
