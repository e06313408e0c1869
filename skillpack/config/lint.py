"""Lint a configuration: run the checks, and tell each finding with its place and how to mend it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ajet.utils.config_tree import Origin
from skillpack.config.hits import Hit
from skillpack.config.rule_checks import CHECKS
from skillpack.config.rule_script import SCRIPT_CHECKS
from skillpack.config.rule_values import VALUE_CHECKS
from skillpack.config.sources import Source

SEVERITIES = ("error", "warning", "info")

ALL_CHECKS: tuple[Callable[[Source], Iterator[Hit]], ...] = (*VALUE_CHECKS, *CHECKS, *SCRIPT_CHECKS)


@dataclass(frozen=True)
class Finding:
    """What is wrong, where, and how to mend it. ``set_by`` says who set the value at fault."""

    rule: str
    severity: str
    message: str
    mend: str
    key: str | None
    file: str | None
    line: int | None
    set_by: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as JSON has it."""
        return asdict(self)


@functools.cache
def rules() -> dict[str, dict[str, str]]:
    """Return the rules of ``rules.yaml`` by id."""
    import yaml

    text = (Path(__file__).parent / "rules.yaml").read_text(encoding="utf-8")
    return {rule["id"]: rule for rule in yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))}


def lint(source: Source) -> list[Finding]:
    """Return what is wrong with a configuration, worst first, then in file order."""
    found = [_finding(source, hit) for check in ALL_CHECKS for hit in check(source)]
    return sorted(dict.fromkeys(found), key=lambda one: (SEVERITIES.index(one.severity), one.line or 0, one.rule))


def _finding(source: Source, hit: Hit) -> Finding:
    rule = rules()[hit.rule]
    origin = _culprit(source, hit)
    file, line = _place(source, hit, origin)
    names = {name: _shown(value) for name, value in hit.names.items()}
    return Finding(
        hit.rule,
        rule["severity"],
        rule["message"].format_map(names),
        rule["mend"].format_map(names),
        hit.keys[0] if hit.keys else None,
        file,
        line,
        str(origin) if origin else None,
    )


def _place(source: Source, hit: Hit, origin: Origin | None) -> tuple[str, int | None]:
    """Return the file and line to look at: never a default file, since the user cannot mend it there."""
    if hit.line is not None or hit.file is not None:
        return hit.file or str(source.path), hit.line
    if origin is None or origin.file is None or origin.layer == "default":
        return str(source.path), source.job.line if source.job else None
    return origin.file, origin.line


def _culprit(source: Source, hit: Hit) -> Origin | None:
    """Return who set the value: the first of the keys that the user set, else the first that anyone set."""
    if hit.line is not None:
        return None
    origins = [source.origin(key) for key in hit.keys]
    given = [origin for origin in origins if origin is not None]
    return next((origin for origin in given if origin.layer != "default"), given[0] if given else None)


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
