"""Defaults of command line options that a script declares with argparse."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from skillpack.config.scopes import Place, Scope, own_nodes
from skillpack.config.static_values import FUNCTIONS, Unknowable, attempt
from skillpack.config.syntax import dotted, upwards

if TYPE_CHECKING:
    from skillpack.config.static_eval import Evaluator


def parsed_option(evaluator: Evaluator, node: ast.Attribute, scope: Scope) -> tuple[Any] | None:
    """Return, in a 1-tuple, the default of ``args.name`` where ``args`` comes from argparse; it is noted."""
    if not isinstance(node.value, ast.Name):
        return None
    bindings = [b for s in upwards(scope) for b in s.bindings.get(node.value.id, [])]
    if not any(_is_parse_args(binding.value) for binding in bindings):
        return None
    for inner in scope.module.scopes:
        for step in inner.steps:
            for call in own_nodes(step.node):
                if isinstance(call, ast.Call) and _option_name(call) == node.attr:
                    return _option_default(evaluator, call, node, inner, Place(step.index, step.guard))
    return None


def _option_default(
    evaluator: Evaluator, call: ast.Call, node: ast.Attribute, scope: Scope, place: Place
) -> tuple[Any]:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    flag = next(str(a.value) for a in call.args if isinstance(a, ast.Constant))
    action = given.get("action")
    evaluator.notes.append(f"unless the script is called with {flag}")
    if "default" in given:
        value = evaluator.evaluate(given["default"], scope, place)
        kind = dotted(given["type"]) if "type" in given else ""
        if isinstance(value, str) and kind in FUNCTIONS:
            value = attempt(call, FUNCTIONS[kind], value)
        return (value,)
    if isinstance(action, ast.Constant) and action.value in ("store_true", "store_false"):
        return (action.value == "store_false",)
    raise Unknowable(f"comes from the command line ({flag}), which has no default", node)


def _is_parse_args(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "parse_args"


def _option_name(call: ast.Call) -> str | None:
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"):
        return None
    for keyword in call.keywords:
        if keyword.arg == "dest" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    chosen = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else None)
    return chosen.lstrip("-").replace("-", "_") if chosen else None
