"""What ``config.py`` answers, as JSON documents."""

from __future__ import annotations

import math
from typing import Any

from ajet.copilot.job import ADDED
from ajet.utils.config_tree import ConfigTree, Origin, plain
from ajet.utils.config_yaml import dump_text
from skillpack.config.keys import KEYLESS_KWARGS, Key, all_keys, verl_targets
from skillpack.config.lint import Finding
from skillpack.config.sources import Source


def explain(source: Source, key: Key, word: str) -> dict[str, Any]:
    """Return value, origin, meaning, kwarg, verl keys and defaults of a key; for a section, its keys."""
    document: dict[str, Any] = {
        "key": key.name,
        "source": source.label,
        "description": key.description,
        "section": key.is_section,
    }
    if word in verl_targets():
        document["asked_for"] = word
    if key.is_section:
        below = [other for other in all_keys().values() if other.name.startswith(f"{key.name}.")]
        leaves = [other for other in below if not other.is_section]
        document["keys"] = [{"key": leaf.name, **_state(source, leaf.name)} for leaf in leaves]
        return document
    otherwise = key.schema.get("x-otherwise")
    return {
        **document,
        **_state(source, key.name),
        "layers": [{"value": as_json(value), "set_by": _origin(origin)} for origin, value in source.history(key.name)],
        "takes": key.takes,
        **({"otherwise": otherwise} if otherwise else {}),
        "kwarg": key.kwarg,
        "set_it": _how_to_set(key, source.mode),
        "verl": list(key.verl),
        "defaults": {mode: key.default(mode) for mode in ("swarm", "classic")},
    }


def diff(first: Source, second: Source) -> dict[str, Any]:
    """Return the keys whose values differ, each with both values and who set them."""
    keys = list(dict.fromkeys([*first.config, *second.config, *_unknown_keys(first), *_unknown_keys(second)]))
    differing = []
    for key in keys:
        if key.split(".")[0] in ("defaults", "hydra"):
            continue
        sides = [_state(source, key) for source in (first, second)]
        if key in ADDED and all(side.get("value") in (None, ADDED[key]) for side in sides):
            continue  # a dumped or constructed job has it, a YAML file not: no difference
        values = [(side["known"], side.get("value")) for side in sides]
        if values[0] != values[1] or not all(side["known"] for side in sides):
            differing.append({"key": key, "first": sides[0], "second": sides[1]})
    return {"first": first.label, "second": second.label, "same": not differing, "differing": differing}


def lint(findings: list[tuple[Source, list[Finding]]], *, strict: bool) -> dict[str, Any]:
    """Return the findings of every configuration of a file, and whether it passes."""
    every = [finding for _, found in findings for finding in found]
    failing = ("error", "warning") if strict else ("error",)
    return {
        "ok": not any(finding.severity in failing for finding in every),
        "counts": {level: sum(f.severity == level for f in every) for level in ("error", "warning", "info")},
        "configurations": [
            {
                "source": source.label,
                "mode": source.mode,
                "findings": [finding.as_dict() for finding in found],
                "unknown": unknown(source),
            }
            for source, found in findings
        ],
    }


def dump(source: Source) -> dict[str, Any]:
    """Return the whole configuration as the YAML that AgentJetJob would write, and what is missing from it."""
    return {"source": source.label, "yaml": dump_text(source.tree.to_dict()), "unknown": unknown(source)}


def unknown(source: Source) -> list[dict[str, Any]]:
    """Return what could not be read off a script."""
    return [{"key": item.key, "line": item.line, "reason": item.reason} for item in source.unknown]


def _state(source: Source, key: str) -> dict[str, Any]:
    """Return whether a key's value is known, the value, and who set it or why it is unknown."""
    if key in KEYLESS_KWARGS:
        return _kwarg_state(source, key)
    reason = source.unknown_reason(key)
    if reason is not None:
        return {"known": False, "why": f"{source.path}:{reason.line}: {reason.reason}"}
    value = source.tree.get(key)
    present = key in source.config or isinstance(value, ConfigTree)
    origin = source.origin(key) if present else None
    return {"known": True, "value": as_json(value), "present": present, "set_by": _origin(origin) if origin else None}


def _kwarg_state(source: Source, name: str) -> dict[str, Any]:
    """Return what a script gives for a kwarg that sets no key."""
    reason = next((item for item in source.unknown if item.key == f"kwarg {name}"), None)
    if reason is not None:
        return {"known": False, "why": f"{source.path}:{reason.line}: {reason.reason}"}
    reading = None if source.job is None else source.job.kwargs.get(name)
    if reading is None:
        return {"known": True, "value": KEYLESS_KWARGS[name]["default"], "present": False, "set_by": None}
    origin = Origin("kwarg", str(source.path), reading.line, name)
    return {"known": True, "value": as_json(reading.value), "present": True, "set_by": _origin(origin)}


def as_json(value: Any) -> Any:
    """Return a value as JSON has it: what JSON lacks (nan, dates, bytes) as text."""
    value = plain(value)
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, str | int) else str(value)


def _origin(origin: Origin) -> dict[str, Any]:
    return {
        "layer": origin.layer,
        "file": origin.file,
        "line": origin.line,
        "kwarg": origin.kwarg,
        "note": origin.note or None,
        "text": str(origin),
    }


def _how_to_set(key: Key, mode: str) -> str:
    if key.name != key.kwarg and (mode == "classic" or not key.name.startswith("ajet")):
        return "in the YAML"
    if key.kwarg:
        return f"AgentJetJob({key.kwarg}=...)"
    return f"job.config.{key.name} = ... after construction, or in the YAML"


def _unknown_keys(source: Source) -> list[str]:
    return [item.key for item in source.unknown if item.key in all_keys()]
