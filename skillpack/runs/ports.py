"""Who listens on a TCP port of this machine, by the kernel's own tables (``proc(5)``: ``/proc/net/tcp``)."""

from __future__ import annotations

import socket
from contextlib import suppress

from skillpack.runs.process import PROC, descendants

LISTEN = "0A"  # include/net/tcp_states.h
_LOCAL, _STATE, _INODE = 1, 3, 9  # columns of /proc/net/tcp
CONTAINER_CLIENTS = ("docker", "docker-compose", "podman", "nerdctl")
"""Programs whose containers listen from outside the tree of processes below them."""


def is_here(host: str | None) -> bool:
    """Tell whether a host name or address is this machine's: only such an address can be bound."""
    if not host:
        return False
    with suppress(OSError, UnicodeError):
        for family, kind, protocol, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
            with suppress(OSError), socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
                return True
    return False


def listeners(port: int) -> set[str]:
    """Return the inodes of the sockets that listen on a port, on whichever address."""
    found = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (PROC / "net" / table).read_text().splitlines()[1:]:
                row = line.split()
                if row[_STATE] == LISTEN and int(row[_LOCAL].rpartition(":")[2], 16) == port:
                    found.add(row[_INODE])
    return found


def holder(port: int) -> str:
    """Return who listens on a port, as ``pid 12 (python -m server)``; "" if that cannot be seen from here."""
    inodes = listeners(port)
    for entry in PROC.iterdir() if inodes else ():
        if entry.name.isdigit() and inodes & _sockets(int(entry.name)):
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                return f"pid {entry.name} ({words.strip()[:60]})"
    return ""


def listens_below(pid: int, port: int) -> bool:
    """Tell whether a process below ``pid`` listens on the port.

    A process that may not be looked into (``sudo``), and one that starts containers, counts as
    listening if anybody does.
    """
    inodes = listeners(port)
    return bool(inodes) and any(inodes & _sockets(one.pid) or _is_opaque(one.pid) for one in descendants(pid))


def _sockets(pid: int) -> set[str]:
    """Return the inodes of a process's sockets; none for a process that may not be looked into."""
    found = set()
    with suppress(OSError):
        for entry in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                kind, _, inode = str(entry.readlink()).partition(":[")
                if kind == "socket":
                    found.add(inode.rstrip("]"))
    return found


def _is_opaque(pid: int) -> bool:
    try:
        next((PROC / str(pid) / "fd").iterdir(), None)
        return (PROC / str(pid) / "comm").read_text().strip() in CONTAINER_CLIENTS
    except PermissionError:
        return True
    except OSError:
        return False
