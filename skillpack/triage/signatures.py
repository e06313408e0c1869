"""The signatures of failures, from ``signatures.yaml``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROLES = ("root", "generic", "warning", "aftermath", "remark", "end")
"""In the order of blame."""


@dataclass(frozen=True)
class Signature:
    """One way in which a log tells of a fault (or of a proper end); see the head of ``signatures.yaml``."""

    id: str
    role: str
    pattern: re.Pattern[str]
    anchors: tuple[str, ...]
    kind: str = "infrastructure"
    stage: str = "any"
    cause: str = ""
    context: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    detail: re.Pattern[str] | None = None
    only_last: bool = False
    verdicts: tuple[str, ...] = ()
    remedy: tuple[dict[str, Any], ...] = ()
    links: tuple[str, ...] = field(default=())


def _compiled(text: str | None) -> re.Pattern[str] | None:
    return re.compile(text) if text else None


@cache
def _document() -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document: dict[str, Any] = yaml.load(
        (Path(__file__).parent / "signatures.yaml").read_text(encoding="utf-8"), Loader=loader
    )
    return document


@cache
def signatures() -> dict[str, Signature]:
    """Return all signatures by id, in the order in which they have a claim on a line."""
    found: dict[str, Signature] = {}
    for entry in _document()["signatures"]:
        anchors = entry["anchor"] if isinstance(entry["anchor"], list) else [entry["anchor"]]
        found[entry["id"]] = Signature(
            id=entry["id"],
            role=entry["role"],
            pattern=re.compile(entry["pattern"]),
            anchors=tuple(anchors),
            kind=entry.get("kind", "infrastructure"),
            stage=entry.get("stage", "any"),
            cause=entry.get("cause", ""),
            context=_compiled(entry.get("context")),
            unless=_compiled(entry.get("unless")),
            detail=_compiled(entry.get("detail")),
            only_last=entry.get("only_last", False),
            verdicts=tuple(entry.get("verdicts", ())),
            remedy=tuple(entry.get("remedy", ())),
            links=tuple(entry.get("links", ())),
        )
    return found


UNCAUGHT = Signature(
    id="uncaught-exception",
    role="generic",
    pattern=re.compile(r"(?!)"),
    anchors=(),
    kind="user-code",
    cause="an exception that no signature here explains; its own text does",
    remedy=({"do": "read the traceback at that line; the lowest frame in your own code is where to look"},),
)
"""What the last line of a traceback becomes if no signature claims it."""


def signature(id_: str) -> Signature:
    """Return a signature by id. Raises KeyError."""
    return UNCAUGHT if id_ == UNCAUGHT.id else signatures()[id_]


@cache
def by_anchor() -> dict[str, tuple[Signature, ...]]:
    """Return, for each text to search for, the signatures that a line with it may match."""
    return {
        anchor: tuple(one for one in signatures().values() if anchor in one.anchors)
        for anchor in sorted({anchor for one in signatures().values() for anchor in one.anchors})
    }


@cache
def stages() -> dict[str, re.Pattern[str]]:
    """Return the patterns by which the surroundings of a line tell its stage."""
    return {name: re.compile(pattern) for name, pattern in _document()["stages"].items()}


@cache
def quiet_exceptions() -> frozenset[str]:
    """Return the names of exceptions that mean "stop" and not "broken"."""
    return frozenset(_document()["quiet_exceptions"])
