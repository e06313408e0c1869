"""Where a client script looks for its swarm server, read from its source without running it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from skillpack.config.job_call import read_value
from skillpack.config.scopes import Module, Place, own_nodes
from skillpack.config.static_values import Unknowable
from skillpack.script import BadInput

CLASS = "SwarmClient"
URL_VARIABLE = "AJET_SWARM_URL"
"""By which a run tells its clients the server's address."""


@dataclass(frozen=True)
class Address:
    """The address in one ``SwarmClient(...)`` call.

    ``url`` is None if it is known only when the script runs; ``unless`` names what goes before it
    (an environment variable, an option), "" if nothing does.
    """

    line: int
    url: str | None
    unless: str = ""


def addresses(script: Path) -> list[Address]:
    """Return the addresses of all ``SwarmClient`` calls in a script; [] if it has none or is no Python."""
    try:
        module = Module(script)
    except (BadInput, OSError):
        return []
    found = []
    for scope in module.scopes:
        for step in scope.steps:
            place = Place(step.index, step.guard)
            for node in own_nodes(step.node):
                if (argument := _address_of(node)) is None:
                    continue
                try:
                    reading = read_value(argument, scope, place, module, argument.lineno)
                except Unknowable:
                    found.append(Address(argument.lineno, None))
                else:
                    url = reading.value if isinstance(reading.value, str) else None
                    found.append(Address(argument.lineno, url, reading.note or ""))
    return sorted(found, key=lambda one: one.line)


def _address_of(node: ast.AST) -> ast.expr | None:
    """Return the address expression of a node that is a ``SwarmClient(...)`` call, else None."""
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
    if name != CLASS:
        return None
    named = [keyword.value for keyword in node.keywords if keyword.arg == "server_url"]
    return next(iter([*node.args, *named]), None)
