"""What this machine's own limits allow, if server or clients run on it."""

from __future__ import annotations

from pathlib import Path

from skillpack.capacity import inputs as keys
from skillpack.capacity.fleet import DESCRIPTORS_OF_A_PROCESS, DESCRIPTORS_PER_EPISODE
from skillpack.capacity.inputs import MEASURED, Input, Inputs

PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")

CONNECTIONS_PER_EPISODE = 2
"""Connections of one running episode that take a local port: to the swarm server, and to its model."""


def machine_limits(port_range: Path = PORT_RANGE) -> Inputs:
    """Return how many episodes the open files of a process and the ephemeral ports of this machine allow."""
    values = {}
    files = _open_files()
    if files is not None:
        allowed = max(0, files - DESCRIPTORS_OF_A_PROCESS) // DESCRIPTORS_PER_EPISODE
        source = f"ulimit -n {files}, less {DESCRIPTORS_OF_A_PROCESS}, / {DESCRIPTORS_PER_EPISODE} an episode"
        values[keys.OPEN_FILES] = Input(allowed, source, MEASURED)
    ports = _ports(port_range)
    if ports is not None:
        source = f"{ports} ephemeral ports / {CONNECTIONS_PER_EPISODE} an episode"
        values[keys.PORTS] = Input(ports // CONNECTIONS_PER_EPISODE, source, MEASURED)
    return Inputs(values)


def _open_files() -> int | None:
    """Return the soft limit on open files; None where there is none."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def _ports(path: Path) -> int | None:
    try:
        first, last = (int(text) for text in path.read_text().split())
    except (OSError, ValueError):
        return None
    return last - first + 1
