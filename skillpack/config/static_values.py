"""What reading a script yields besides plain values: the unknown, objects of its own classes, valid assignments."""

from __future__ import annotations

import ast
import math
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skillpack.config.scopes import Binding, Module, Place, Scope
from skillpack.config.syntax import line_of, source

Entry = tuple[ast.expr, Scope, Place]
"""An expression that is not evaluated yet, and where."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "list": list,
    "tuple": tuple,
    "len": len,
    "min": min,
    "max": max,
    "abs": abs,
    "round": round,
    "sum": sum,
    "sorted": sorted,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "os.path.join": posixpath.join,
    "Path": str,
    "pathlib.Path": str,
}
"""Calls that are computed; paths as on the machines that AgentJet runs on."""


class Unknowable(Exception):
    """A value that cannot be read off the script; ``reason`` says why, ``line`` where."""

    def __init__(self, reason: str, node: ast.AST | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line: int | None = getattr(node, "lineno", None)


@dataclass(frozen=True, eq=False)
class Frame:
    """A call that a function is being looked at for: its parameters are what this call passes."""

    call: ast.Call
    caller: Scope
    place: Place
    frames: Frames


Frames = Mapping[Scope, Frame]
"""By function, the call that it is looked at for."""


@dataclass
class Instance:
    """An object of a class of the script: how it was made is known (``made``), its code is not run."""

    scope: Scope
    made: Frame | None = None


def last_binding(bindings: list[Binding], place: Place, name: str, node: ast.AST) -> Binding:
    """Return the binding that holds at a place. Raises Unknowable if that depends on a condition, or none holds."""
    possible = [binding for binding in bindings if not binding.step.never_with(place)]
    if not possible:
        raise Unknowable(f"{name} is not assigned above", node)
    last = possible[-1]
    if not last.step.surely_before(place):
        raise Unknowable(f"{name} is set under a condition at line {line_of(last)}", last.node)
    return last


def argument_of(
    call: ast.Call, definition: ast.FunctionDef | ast.AsyncFunctionDef, name: str, *, bound: bool
) -> ast.expr | None:
    """Return what a call passes for a parameter; None if nothing. Raises Unknowable if ``*`` or ``**`` may."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [arg.arg for arg in (*definition.args.posonlyargs, *definition.args.args)][1 if bound else 0 :]
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords):
        raise Unknowable(f"{source(call)} passes arguments that cannot be read off", call)
    if name in names and names.index(name) < len(call.args):
        return call.args[names.index(name)]
    return None


def as_key(node: ast.AST, value: Any) -> Any:
    """Return a value that can be a key of a dict. Raises Unknowable for others."""
    attempt(node, hash, value)
    return value


def attempt(node: ast.AST, function: Callable[..., Any] | None, *values: Any) -> Any:
    """Return what a function makes of values. Raises Unknowable if it fails, is None, or a value is no plain one."""
    if function is None or any(isinstance(value, Instance | Scope | Module) for value in values):
        raise Unknowable(f"{source(node)} is computed when the script runs", node)
    try:
        return function(*values)
    except Exception as error:  # the script would fail there too
        raise Unknowable(f"{source(node)} fails: {type(error).__name__}: {error}", node) from None
