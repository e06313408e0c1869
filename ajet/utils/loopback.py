"""Addresses of this machine, which no proxy can reach."""

from __future__ import annotations

import functools
import ipaddress
from urllib.parse import urlsplit


def is_loopback_name(name: str) -> bool:
    """Tell whether a host's name or address (IPv6 with or without brackets) is this machine's loopback."""
    name = name.lower().removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


@functools.lru_cache(maxsize=256)  # a server asks for the Host of every request
def is_loopback_host(host: str) -> bool:
    """Tell whether a Host header, or the host of a URL with its port, names this machine's loopback."""
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return is_loopback_name(host)
    return port.isdigit() and is_loopback_name(name)


def is_loopback(url: str) -> bool:
    """Tell whether a request to a URL stays on this machine: to loopback, or the any-address, which stands for it."""
    name = urlsplit(url).hostname or ""
    return name in ("0.0.0.0", "::") or is_loopback_name(name)
