"""Dicts that a script writes out and fills by key, entry by entry: one unknown entry leaves the others known."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from skillpack.config.scopes import END, Binding, Place, Scope
from skillpack.config.static_values import Entry, Unknowable, as_key, last_binding
from skillpack.config.syntax import dotted, source, touches

if TYPE_CHECKING:
    from skillpack.config.static_eval import Evaluator


def entries(evaluator: Evaluator, node: ast.expr, scope: Scope, place: Place) -> dict[Any, Entry] | None:
    """Return the entries of a dict that a script writes out and fills by key, unevaluated; None if it is no such.

    Raises Unknowable if the dict is changed in a way that cannot be followed.
    """
    if isinstance(node, ast.Dict):
        return _literal_entries(evaluator, list(zip(node.keys, node.values, strict=True)), scope, place)
    if isinstance(node, ast.Call) and dotted(node.func) == "dict" and len(node.args) <= 1:
        found: dict[Any, Entry] = {}
        for argument in node.args:
            inner = entries(evaluator, argument, scope, place)
            if inner is None:
                return None
            found.update(inner)
        pairs: list[tuple[ast.expr | None, ast.expr]] = [
            (ast.Constant(k.arg) if k.arg else None, k.value) for k in node.keywords
        ]
        return found | (_literal_entries(evaluator, pairs, scope, place) or {})
    if not isinstance(node, ast.Name):
        return None
    home: Scope | None = scope
    while home is not None and node.id not in home.bindings:
        home = home.parent
    if home is None:
        return None
    here = place if home is scope else END
    binding = last_binding(home.bindings[node.id], here, node.id, node)
    if binding.value is None:
        return None
    written_out = entries(evaluator, binding.value, home, Place(binding.step.index, binding.step.guard))
    if written_out is not None:
        _fill(evaluator, written_out, node.id, binding, home, here)
    return written_out


def _literal_entries(
    evaluator: Evaluator, pairs: list[tuple[ast.expr | None, ast.expr]], scope: Scope, place: Place
) -> dict[Any, Entry]:
    found: dict[Any, Entry] = {}
    for key, value in pairs:
        if key is None:
            inner = entries(evaluator, value, scope, place)
            if inner is None:
                raise Unknowable(f"**{source(value)} cannot be read off", value)
            found.update(inner)
        else:
            found[as_key(key, evaluator.evaluate(key, scope, place))] = (value, scope, place)
    return found


def _fill(
    evaluator: Evaluator,
    filled: dict[Any, Entry],
    name: str,
    binding: Binding,
    scope: Scope,
    place: Place,
) -> None:
    """Add what ``name[key] = value`` and ``name.update(key=value)`` put into a dict between its making and its use."""
    for step in scope.steps:
        if step.index <= binding.step.index or step.never_with(place) or not touches(step.node, name):
            continue
        here = Place(step.index, step.guard)
        node = step.node
        sure = step.surely_before(place)
        if sure and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            key = node.targets[0].slice
            filled[as_key(key, evaluator.evaluate(key, scope, here))] = (node.value, scope, here)
        elif sure and isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = ast.copy_location(ast.Call(ast.Name("dict", ast.Load()), node.value.args, node.value.keywords), node)
            more = entries(evaluator, call, scope, here) if node.value.func.attr == "update" else None  # type: ignore[attr-defined]
            if more is None:
                raise Unknowable(f"{name} is changed at line {node.lineno} by what cannot be read off", node)
            filled.update(more)
        else:
            raise Unknowable(f"{name} is changed at line {node.lineno}", node)
