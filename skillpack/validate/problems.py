"""What a validation finds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from skillpack.validate.rules import SEVERITIES
from skillpack.validate.rules import rule as rule_of

if TYPE_CHECKING:
    from skillpack.validate.clients.reading import Reading
    from skillpack.validate.evals import CaseResult


GRAVE = {"error": ("error",), "warn": ("error", "warn")}
"""The severities that fail a skill, by what ``--fail-on`` says."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One breach of a rule, at a line (from 1) of a file of the skill."""

    rule: str
    severity: str
    message: str
    line: int
    fix: str
    file: str = "SKILL.md"
    clients: tuple[str, ...] = ()

    def order(self) -> tuple[int, str, int]:
        """Return a key that sorts the gravest first, then by place."""
        return SEVERITIES.index(self.severity), self.file, self.line


def problem(
    rule: str,
    detail: str = "",
    *,
    line: int = 1,
    file: str = "SKILL.md",
    severity: str = "",
    clients: tuple[str, ...] = (),
) -> Problem:
    """Return a problem under a rule: its title, then ``detail``, with the rule's own mend."""
    known = rule_of(rule)
    message = f"{known.title}: {detail}" if detail else known.title
    return Problem(rule, severity or known.severity, message, max(1, line), known.mend, file, clients)


@dataclass(slots=True)
class SkillReport:
    """Everything that is known about one skill."""

    name: str
    path: Path
    description: str = ""
    name_line: int = 1
    description_line: int = 1
    problems: list[Problem] = field(default_factory=list)
    clients: dict[str, Reading] = field(default_factory=dict)
    scripts: list[CaseResult] = field(default_factory=list)
    has_scripts: bool = False
    ignored: frozenset[str] = frozenset()
    """The rules that SKILL.md asks to be left out."""
    suppressed: int = 0

    def add(self, found: Problem, *, mend: str = "") -> None:
        """Add a problem, unless SKILL.md asks for it to be left out; ``mend`` tells more than the rule does."""
        if mend:
            found = replace(found, fix=mend)
        if left_out(found.rule, self.ignored):
            self.suppressed += 1
        else:
            self.problems = sorted([*self.problems, found], key=Problem.order)

    def failed(self, fail_on: str) -> bool:
        """Tell whether a problem is as grave as ``fail_on`` (``error`` or ``warn``)."""
        return any(found.severity in GRAVE[fail_on] for found in self.problems)


_MARK = re.compile(r"(?:#|<!--|//|/\*)[ \t]{0,9}skills:[ \t]{0,9}ignore\b(?P<rules>[^\n>]{0,500})")
_WHY = re.compile(r"\s(?:--|—|–|-)\s|-->|\*/")
MAX_MARKS = 100


def marks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each mark of a text: its line (from 1), and what it names; nothing named is every rule.

    A mark is a comment ``# skills: ignore RULE, RULE -- why`` (or ``<!-- … -->``, ``//``, ``/* … */``) anywhere.
    """
    if "skills:" not in text:
        return
    for match in islice(_MARK.finditer(text), MAX_MARKS):
        named = re.findall(r"[a-z][a-z0-9-]*", _WHY.split(match["rules"], maxsplit=1)[0])
        yield text.count("\n", 0, match.start()) + 1, named


def ignored(text: str) -> frozenset[str] | None:
    """Return the rules that a file asks to be left out, ``{"*"}`` for all, or None."""
    found = {name for _, named in marks(text) for name in named or ["*"]}
    return frozenset(found) or None


def left_out(rule: str, ignored: frozenset[str]) -> bool:
    """Tell whether a rule is among those that are ignored. What is about safety must be named to be left out."""
    return rule in ignored or ("*" in ignored and not rule.startswith("safety-"))
