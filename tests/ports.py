"""Ports for the servers that tests start."""

from __future__ import annotations

import socket

_kept: list[socket.socket] = []


def free_port() -> int:
    """Return a port that is free, and stays so for the server that this test run starts there.

    The port stays bound until this process ends, so that the kernel gives it to nobody who asks for
    any port. A server binds it all the same: both set SO_REUSEADDR, and this socket does not listen.
    """
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
    _kept.append(one)
    return int(one.getsockname()[1])
