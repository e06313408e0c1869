"""Turn a remedy's rule into an advice with the run's own numbers in it."""

from __future__ import annotations

import math
from collections.abc import Callable
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


def advise(rule: dict[str, Any], lookup: Lookup, groups: dict[str, str]) -> dict[str, Any]:
    """Return one advice: ``{"do"}``, or ``{"key", "current", "value", "why"}``.

    ``value`` is None where it does not follow from what is known; then ``current`` says what
    the run has, and ``why`` what to aim at.
    """
    if "do" in rule:
        return {"do": rule["do"]}
    current = lookup(rule["key"])
    return {
        "key": rule["key"],
        "current": current,
        "value": _value(rule, current, lookup, groups),
        "why": rule.get("why", ""),
    }


def _value(rule: dict[str, Any], current: Any, lookup: Lookup, groups: dict[str, str]) -> Any:
    op = rule["op"]
    if op == "set":
        return rule["to"] if rule["to"] != current else None
    if op == "from_match":
        found = _number(groups.get(rule["group"]))
        if found is None and "fallback" in rule:
            return _value({**rule["fallback"], "key": rule["key"]}, current, lookup, groups)
        return found
    if op == "ratio":
        part, whole = (_number(groups.get(name)) for name in rule["of"])
        return math.floor(part / whole * rule["by"] * 100) / 100 if part and whole else None
    if op == "sum":
        parts = [_number(lookup(key)) for key in rule["of"]]
        return sum(part for part in parts if part is not None) if None not in parts else None
    if op == "multiple":
        unit, have = _number(groups.get(rule["of"])), _number(current)
        return math.ceil(have / unit) * unit if unit and have else None
    return _scaled(rule, _number(current))


def _scaled(rule: dict[str, Any], current: float | None) -> Any:
    """Return the current value scaled or moved, within floor and ceiling; None if that changes nothing."""
    if current is None or rule["op"] not in ("scale", "add"):
        return _value(rule["fallback"], current, lambda _: None, {}) if "fallback" in rule else None
    value = current * rule["by"] if rule["op"] == "scale" else current + rule["by"]
    value = min(max(value, rule.get("floor", -math.inf)), rule.get("ceiling", math.inf))
    value = int(value) if isinstance(current, int) else float(f"{value:.6g}")
    return value if value != current else None


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
