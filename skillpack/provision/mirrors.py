"""Choose where each thing is fetched from: the official address, or a mirror."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skillpack.provision.data import load

PATIENCE = 2.0
"""Seconds in which an official address has to answer a HEAD to be kept without looking further."""
FACTOR = 2.0
"""A mirror has to be this many times faster than a slow official address."""


def addresses(kinds: Iterable[str]) -> dict[str, str]:
    """Return ``kind/name`` → the address to probe, official ones and mirrors."""
    table = load("mirrors")
    return {
        f"{kind}/{entry['name']}": entry["probe"]
        for kind in kinds
        for entry in [table[kind]["official"], *table[kind]["mirrors"]]
    }


def choose(kind: str, china: str, network: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return {name, use, mirror, reason, silent} for one kind of download.

    ``china`` is yes (a mirror, the fastest that answered), no (the official address) or auto: the
    official address if it answers within ``PATIENCE`` seconds; else what answers fastest, if that is at
    least ``FACTOR`` times faster or the official address does not answer. ``silent`` tells that the choice was
    asked and did not answer. ``network`` is the machine's ``network`` (``kind/name`` → {reachable, seconds}).
    """
    chosen = _choose(kind, china, network)
    return {**chosen, "silent": network.get(f"{kind}/{chosen['name']}", {}).get("reachable") is False}


def _choose(kind: str, china: str, network: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    table = load("mirrors")[kind]
    official = {**table["official"], "mirror": False}
    mirrors = [{**entry, "mirror": True} for entry in table["mirrors"]]

    def seconds(entry: Mapping[str, Any]) -> float | None:
        seen = network.get(f"{kind}/{entry['name']}", {})
        return seen.get("seconds") if seen.get("reachable") else None

    alive = sorted((entry for entry in mirrors if seconds(entry) is not None), key=lambda e: seconds(e) or 0)
    if china == "yes" and mirrors:
        best = alive[0] if alive else mirrors[0]
        return _choice(best, "asked for" if alive else "asked for; it was not seen to answer")
    if china == "no" or not mirrors:
        return _choice(official, "the official address")
    own = seconds(official)
    known = network.get(f"{kind}/{official['name']}", {}).get("reachable")
    if own is None:
        if known is False and alive:
            return _choice(alive[0], f"{official['name']} does not answer")
        return _choice(official, "not measured" if known is None else "neither it nor a mirror answers")
    if own > PATIENCE and alive and (seconds(alive[0]) or 0) * FACTOR <= own:
        return _choice(alive[0], f"answers in {seconds(alive[0]):g} s, {official['name']} in {own:g} s")
    return _choice(official, f"answers in {own:g} s")


def _choice(entry: Mapping[str, Any], reason: str) -> dict[str, Any]:
    return {"name": entry["name"], "use": entry["use"], "mirror": entry["mirror"], "reason": reason}
