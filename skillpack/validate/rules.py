"""The catalogue of rules, read from ``rules.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from skillpack.script import BadInput

PATH = Path(__file__).with_name("rules.yaml")
SEVERITIES = ("error", "warn", "info")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what a problem under it means, and how it is mended."""

    id: str
    severity: str
    clients: tuple[str, ...]
    title: str
    means: str
    mend: str
    source: str
    fix: bool


@lru_cache(maxsize=1)
def rules() -> dict[str, Rule]:
    """Return all rules by id, in the order of the file."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries = yaml.load(PATH.read_text(encoding="utf-8"), Loader=loader)
    return {entry["id"]: Rule(**{**entry, "clients": tuple(entry["clients"])}) for entry in entries}


def rule(identifier: str) -> Rule:
    """Return a rule. Raises BadInput, with the nearest ids, if there is no such."""
    found = rules().get(identifier)
    if found is None:
        import difflib

        near = difflib.get_close_matches(identifier, rules(), n=3, cutoff=0.4)
        raise BadInput(
            f"there is no rule {identifier!r}",
            expected="a rule's id, such as yaml-colon",
            hint=" or ".join(f"--explain {name}" for name in near or ["all"]),
        )
    return found
