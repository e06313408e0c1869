"""Turn a remedy's rule into an advice with the run's own numbers in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from skillpack.script import ScriptError

Lookup = Callable[[str], Any]


def config_lookup(config: Path | None) -> Lookup:
    """Return a function from a dotted key to its effective value in a run's YAML (None: unknown).

    Keys that the file does not set come from AgentJet's defaults; a key of verl's own tree is
    known only if the file has it. The file is read when the first key is asked for; a file that
    is missing or cannot be read knows nothing.
    """

    @cache
    def values() -> dict[str, Any]:
        if config is None or not config.is_file():
            return {}
        from skillpack.config.sources import read_sources

        try:
            return read_sources(config)[0].config
        except (ScriptError, OSError):
            return {}

    return lambda key: values().get(key)


def advices(rules: Sequence[dict[str, Any]], lookup: Lookup, groups: dict[str, str]) -> list[dict[str, Any]]:
    """Return what the rules advise, without what the run has already; if that is all, it is told."""
    told = [advice for rule in rules if (advice := advise(rule, lookup, groups))]
    return told or [{"do": f"the run has what is advised here: {', '.join(rule['key'] for rule in rules)}"}]


def advise(rule: dict[str, Any], lookup: Lookup, groups: dict[str, str]) -> dict[str, Any] | None:
    """Return one advice: ``{"do"}``, or ``{"key", "current", "value", "why"}``; None if it would change nothing.

    ``value`` is None where it does not follow from what is known; then ``current`` says what
    the run has, and ``why`` what to aim at. ``"and"`` lists the keys (``key``, ``current``,
    ``value``) that must change in the same breath, for the run to be accepted with the first.
    """
    if "do" in rule:
        return {"do": rule["do"]}
    changes: dict[str, Any] = {}

    def planned(key: str) -> Any:
        return changes.get(key, lookup(key))

    first = _change(rule, planned, groups)
    if first is None:
        return None
    changes[rule["key"]] = first["value"]
    advice = {**first, "why": rule.get("why", "")}
    for other in rule.get("and", ()):
        change = _change(other, planned, groups)
        if change:
            if change["value"] == 0:
                return None  # nothing is left for it: the first change would be refused
            changes[other["key"]] = change["value"]
            advice.setdefault("and", []).append(change)
    return advice


def _change(rule: dict[str, Any], planned: Lookup, groups: dict[str, str]) -> dict[str, Any] | None:
    """Return what becomes of one key; None if the rule, with all known, leaves it as it is."""
    current = planned(rule["key"])
    value = _value(rule, current, planned, groups)
    if rule["op"] != "hint" and (value == current if value is not None else current is not None):
        return None
    return {"key": rule["key"], "current": current, "value": value}


def _value(rule: dict[str, Any], current: Any, planned: Lookup, groups: dict[str, str]) -> Any:
    """Return the new value by the rule's ``op`` (the head of ``signatures.yaml`` tells them), None if it is unknown."""
    op = rule["op"]
    if op == "set":
        return rule["to"]
    if op == "from_match":
        found = _number(groups.get(rule["group"]))
        if found is None and "fallback" in rule:
            return _value({**rule["fallback"], "key": rule["key"]}, current, planned, groups)
        return found if found is None or found >= 1 else None
    if op == "ratio":
        part, whole = (_number(groups.get(name)) for name in rule["of"])
        return math.floor(part / whole * rule["by"] * 100) / 100 if part and whole else None
    if op == "multiple":
        unit, have = _number(groups.get(rule["of"])), _number(current)
        return math.ceil(have / unit) * unit if unit and have else None
    if op in ("sum", "rest"):
        return _of_others(rule, _number(current), [_number(planned(key)) for key in rule["of"]])
    return _scaled(rule, _number(current))


def _of_others(rule: dict[str, Any], current: float | None, others: list[Any]) -> Any:
    """Return the value that other keys allow: at least their sum, or at most the first less the rest."""
    if None in others:
        return None
    if rule["op"] == "sum":
        return sum(others) if current is None or sum(others) > current else None
    room = max(0, others[0] - sum(others[1:]))
    return room if current is None else min(current, room)


def _scaled(rule: dict[str, Any], current: float | None) -> Any:
    """Return the current value scaled or moved, within floor and ceiling; None if it is unknown."""
    if current is None or rule["op"] not in ("scale", "add"):
        return rule["fallback"]["to"] if "fallback" in rule else None
    value = current * rule["by"] if rule["op"] == "scale" else current + rule["by"]
    bounded = min(max(value, rule.get("floor", -math.inf)), rule.get("ceiling", math.inf))
    if (bounded - current) * (value - current) <= 0:
        return current  # it stands at or beyond the bound already
    return int(bounded) if isinstance(current, int) else float(f"{bounded:.6g}")


def _number(value: Any) -> Any:
    """Return ``value`` as int or float, or None if it is no number."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number.is_integer() else number
