"""What is read of one AgentJetJob call."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from skillpack.config.scopes import Module, Place, Scope
from skillpack.config.static_eval import Evaluator
from skillpack.config.static_values import Instance, Unknowable


@dataclass(frozen=True)
class Reading:
    """A value that a script gives: what it is, where, and what it rests on."""

    value: Any
    line: int
    note: str = ""


@dataclass(frozen=True)
class Unknown:
    """A value that cannot be read off a script: a YAML key or section, or None where it may be any kwarg's."""

    key: str | None
    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.key or 'any kwarg'} is unknown: {self.reason}"


@dataclass
class JobCall:
    """One AgentJetJob call: its ``kwargs``, those that are ``unknown``, and in order the ``changes`` after it."""

    number: int
    name: str
    line: int
    kwargs: dict[str, Reading] = field(default_factory=dict)
    unknown: list[Unknown] = field(default_factory=list)
    changes: list[tuple[str, Reading] | Unknown] = field(default_factory=list)
    """Writes to the job's configuration, (YAML key, value); a write whose value cannot be read off is an Unknown."""
    ignored: list[tuple[str, int]] = field(default_factory=list)
    """Attributes assigned to the job itself, and methods called on it, that a released AgentJet does not heed."""
    strange: list[tuple[str, int]] = field(default_factory=list)
    """Kwargs that AgentJetJob does not have."""

    @property
    def writes(self) -> list[tuple[str, Reading]]:
        """The changes whose value is known."""
        return [change for change in self.changes if not isinstance(change, Unknown)]


def read_value(node: ast.expr, scope: Scope, place: Place, home: Module, line: int) -> Reading:
    """Return what an expression at a place of a scope is; ``home`` is the script that is read. Raises Unknowable."""
    evaluator = Evaluator(home)
    value = evaluator.evaluate(node, scope, place)
    if isinstance(value, Instance | Scope | Module):
        raise Unknowable(f"{ast.unparse(node)} is an object of the script", node)
    if isinstance(value, tuple):
        value = list(value)
    return Reading(value, line, "; ".join(dict.fromkeys(evaluator.notes)))
