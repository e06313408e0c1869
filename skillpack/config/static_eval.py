"""Evaluate an expression of a script without running the script: what cannot be known is said to be unknown."""

from __future__ import annotations

import ast
import dataclasses
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from skillpack.config.scopes import END, Module, Place, Scope
from skillpack.config.static_dicts import entries
from skillpack.config.static_objects import class_attribute, instance_attribute, written_here
from skillpack.config.static_options import parsed_option
from skillpack.config.static_values import (
    FUNCTIONS,
    Frame,
    Frames,
    Instance,
    Unknowable,
    argument_of,
    as_key,
    attempt,
    last_binding,
)
from skillpack.config.syntax import (
    ENVIRONMENT,
    calls_of,
    default_of,
    dotted,
    global_names,
    is_self,
    label,
    line_of,
    source,
    upwards,
    variable_of,
)

DEPTH_LIMIT = 60
STEP_LIMIT = 50_000
SIZE_LIMIT = 10_000
"""Characters or items of a computed value, and binary digits of a computed number."""

_WIDE = re.compile(r"\d{5}|%[^%a-z]*\*")
"""A width or precision of five digits, or one that comes as a value."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}


@dataclass
class Evaluator:
    """Evaluates expressions; ``notes`` collects what the values rest on (environment variables, defaults)."""

    home: Module
    notes: list[str] = field(default_factory=list)
    depth: int = 0
    steps: list[int] = field(default_factory=lambda: [STEP_LIMIT])
    frames: Frames = field(default_factory=dict)
    """The calls that functions are looked at for; for a function that is not in it, all calls in the files count."""
    written: dict[tuple[int, str], Unknowable | None] = field(default_factory=dict)

    def evaluate(self, node: ast.expr, scope: Scope, place: Place) -> Any:
        """Return the value of an expression at a place of a scope. Raises Unknowable."""
        self.depth += 1
        try:
            self.steps[0] -= 1
            if self.depth > DEPTH_LIMIT or self.steps[0] < 0:
                raise Unknowable("defined through too many steps", node)
            method = getattr(self, f"_{type(node).__name__.lower()}", None)
            if method is None:
                raise Unknowable(f"{source(node)} is computed when the script runs", node)
            return _bounded(method(node, scope, place), node)
        finally:
            self.depth -= 1

    def _constant(self, node: ast.Constant, scope: Scope, place: Place) -> Any:
        return node.value

    def _list(self, node: ast.List, scope: Scope, place: Place) -> Any:
        return [self.evaluate(item, scope, place) for item in node.elts]

    def _tuple(self, node: ast.Tuple, scope: Scope, place: Place) -> Any:
        return tuple(self.evaluate(item, scope, place) for item in node.elts)

    def _dict(self, node: ast.Dict, scope: Scope, place: Place) -> Any:
        values: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.evaluate(item, scope, place)
            if key is None:
                attempt(node, values.update, value)
            else:
                values[as_key(key, self.evaluate(key, scope, place))] = value
        return values

    def _unaryop(self, node: ast.UnaryOp, scope: Scope, place: Place) -> Any:
        value = self.evaluate(node.operand, scope, place)
        return attempt(node, _UNARY.get(type(node.op)), value)

    def _binop(self, node: ast.BinOp, scope: Scope, place: Place) -> Any:
        left, right = self.evaluate(node.left, scope, place), self.evaluate(node.right, scope, place)
        _refuse_huge(node, left, right)
        return attempt(node, _OPERATORS.get(type(node.op)), left, right)

    def _boolop(self, node: ast.BoolOp, scope: Scope, place: Place) -> Any:
        wanted = isinstance(node.op, ast.Or)
        value: Any = None
        for item in node.values:
            try:
                value = self.evaluate(item, scope, place)
            except Unknowable:
                variable = variable_of(item)
                if variable is None or not wanted or item is node.values[-1]:
                    raise
                self.notes.append(f"unless the environment variable {variable} is set")
                continue
            if bool(value) is wanted:
                return value
        return value

    def _compare(self, node: ast.Compare, scope: Scope, place: Place) -> Any:
        left = self.evaluate(node.left, scope, place)
        for operation, item in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(item, scope, place)
            if not attempt(node, _COMPARISONS.get(type(operation)), left, right):
                return False
            left = right
        return True

    def _ifexp(self, node: ast.IfExp, scope: Scope, place: Place) -> Any:
        chosen = node.body if self.evaluate(node.test, scope, place) else node.orelse
        return self.evaluate(chosen, scope, place)

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope, place: Place) -> Any:
        return "".join(str(self.evaluate(item, scope, place)) for item in node.values)

    def _formattedvalue(self, node: ast.FormattedValue, scope: Scope, place: Place) -> Any:
        form = self.evaluate(node.format_spec, scope, place) if node.format_spec else ""
        if _WIDE.search(str(form)):
            raise Unknowable("a value of absurd size", node)
        return attempt(node, format, self.evaluate(node.value, scope, place), form)

    def _subscript(self, node: ast.Subscript, scope: Scope, place: Place) -> Any:
        if dotted(node.value) in ("os.environ", "environ"):
            raise Unknowable(f"{source(node)} comes from the environment", node)
        if isinstance(node.value, ast.Name):
            found = entries(self, node.value, scope, place)
            if found is not None and isinstance(node.slice, ast.Constant):
                if node.slice.value in found:
                    return self.evaluate(*found[node.slice.value])
                raise Unknowable(f"{source(node)} is not in that dict", node)
        value = self.evaluate(node.value, scope, place)
        return attempt(node, operator.getitem, value, self.evaluate(node.slice, scope, place))

    def _call(self, node: ast.Call, scope: Scope, place: Place) -> Any:
        name = dotted(node.func)
        if name in ENVIRONMENT:
            return self._environment(node, scope, place)
        if name == "dict" and not node.args and all(keyword.arg for keyword in node.keywords):
            return {str(keyword.arg): self.evaluate(keyword.value, scope, place) for keyword in node.keywords}
        function = FUNCTIONS.get(name)
        if function is not None and not node.keywords:
            values = [self.evaluate(item, scope, place) for item in node.args]
            return attempt(node, function, *values)
        target = self.definition(node.func, scope, place)
        if target is not None and isinstance(target.node, ast.ClassDef):
            return Instance(target, Frame(node, scope, place, self.frames))
        if target is not None:
            return self._returned(target, Frame(node, scope, place, self.frames))
        raise Unknowable(f"{source(node)} is computed when the script runs", node)

    def _environment(self, node: ast.Call, scope: Scope, place: Place) -> Any:
        variable = source(node.args[0]).strip("'\"") if node.args else "?"
        if len(node.args) < 2:
            raise Unknowable(f"comes from the environment variable {variable}, which has no default here", node)
        value = self.evaluate(node.args[1], scope, place)
        self.notes.append(f"unless the environment variable {variable} is set")
        return value

    def _returned(self, target: Scope, frame: Frame) -> Any:
        """Return what a function of the script returns, if that is one expression or a fresh object."""
        returns = [step for step in target.steps if isinstance(step.node, ast.Return)]
        value = returns[0].node.value if len(returns) == 1 and isinstance(returns[0].node, ast.Return) else None
        if value is None or returns[0].guard:
            raise Unknowable(f"{source(frame.call)} is computed when the script runs", frame.call)
        inner = self.within({**self.frames, target: frame})
        return inner.evaluate(value, target, Place(returns[0].index))

    def within(self, frames: Frames) -> Evaluator:
        """Return this evaluator, looking at functions for the calls of ``frames``."""
        return dataclasses.replace(self, frames=frames)

    def _name(self, node: ast.Name, scope: Scope, place: Place) -> Any:
        current: Scope | None = scope
        while current is not None:
            if current is scope or not isinstance(current.node, ast.ClassDef):
                here = place if current is scope else END
                bound = [one for one in current.bindings.get(node.id, []) if not one.step.never_with(here)]
                if node.id in current.parameters and not bound:
                    return self.parameter(node.id, current, node)
                if node.id in current.bindings:
                    return self._bound(node, current, here)
            current = current.parent
        raise Unknowable(f"{node.id} is not defined in this file", node)

    def _bound(self, node: ast.Name, scope: Scope, place: Place) -> Any:
        if scope.parent is None and any(node.id in global_names(inner) for inner in scope.module.scopes):
            raise Unknowable(f"{node.id} is also assigned inside a function", node)
        binding = last_binding(scope.bindings[node.id], place, node.id, node)
        if isinstance(binding.node, ast.Import | ast.ImportFrom):
            return self._imported(node, binding.node, scope)
        if isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return scope.module.scope_of(binding.node)
        if binding.value is None:
            raise Unknowable(
                f"{node.id} is set in a way that cannot be read off (line {line_of(binding)})", binding.node
            )
        return self.evaluate(binding.value, scope, Place(binding.step.index, binding.step.guard))

    def _imported(self, node: ast.Name, statement: ast.Import | ast.ImportFrom, scope: Scope) -> Any:
        if isinstance(statement, ast.ImportFrom):
            original = next((a.name for a in statement.names if (a.asname or a.name) == node.id), node.id)
            module = scope.module.import_file(statement.module or "", statement.level)
            if module is not None and original in module.scope.bindings:
                return self.evaluate(ast.copy_location(ast.Name(original, ast.Load()), node), module.scope, END)
            below = scope.module.import_file(".".join(filter(None, (statement.module, original))), statement.level)
            if below is not None:
                return below
            if module is not None:
                raise Unknowable(f"{original} is not defined in {module.path.name}", node)
            home = f"{'.' * statement.level}{statement.module or ''}"
            raise Unknowable(f"{original} is imported from {home}, which is not beside the script", node)
        alias = next(a for a in statement.names if (a.asname or a.name.split(".")[0]) == node.id)
        if alias.asname is None and "." in alias.name:
            raise Unknowable(f"{node.id} is a package", node)
        module = scope.module.import_file(alias.name, 0)
        if module is None:
            raise Unknowable(f"{alias.name} is a library", node)
        return module

    def parameter(self, name: str, scope: Scope, node: ast.AST) -> Any:
        """Return a parameter's value: what every caller in the file passes, else its default, which is noted."""
        definition = scope.node
        assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
        if scope.owner is not None and is_self(name, definition):
            return Instance(scope.owner)
        function = label(scope)
        frame = self.frames.get(scope)
        calls = (
            [frame] if frame else [Frame(call, caller, caller.place_of(call), {}) for caller, call in calls_of(scope)]
        )
        passed = [self._passed(call, definition, name, scope) for call in calls]
        if passed and all(value is not None and value == passed[0] for value in passed):
            return passed[0]
        if any(value is not None for value in passed):
            raise Unknowable(f"{function} is called with different values of {name}", node)
        default = default_of(definition, name)
        if default is not None and not passed:
            self.notes.append(f"default of {function}({name}=…); a caller may pass another")
            return self.evaluate(default, scope.parent or scope, END)
        annotated = self._annotated_class(definition, name, scope)
        if annotated is not None:
            self.notes.append(f"as {annotated.node.name} defines it; what is passed as {name} may differ")  # type: ignore[union-attr]
            return Instance(annotated)
        raise Unknowable(f"{name} is a parameter of {function}", node)

    def _passed(self, frame: Frame, definition: ast.FunctionDef | ast.AsyncFunctionDef, name: str, scope: Scope) -> Any:
        """Return what a call passes for a parameter, by default or not; None if that is unknown, or None."""
        try:
            argument = argument_of(frame.call, definition, name, bound=scope.owner is not None)
            if argument is not None:
                return self.within(frame.frames).evaluate(argument, frame.caller, frame.place)
            default = default_of(definition, name)
            return None if default is None else self.evaluate(default, scope.parent or scope, END)
        except Unknowable:
            return None

    def _annotated_class(
        self, definition: ast.FunctionDef | ast.AsyncFunctionDef, name: str, scope: Scope
    ) -> Scope | None:
        every = [*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs]
        annotation = next((arg.annotation for arg in every if arg.arg == name), None)
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.Name(annotation.value, ast.Load())
        if annotation is None:
            return None
        found = self.definition(annotation, scope.parent or scope, END)
        return found if found is not None and isinstance(found.node, ast.ClassDef) else None

    def definition(self, node: ast.expr, scope: Scope, place: Place) -> Scope | None:
        """Return the function or class of the script that an expression names, or None."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        try:
            value = self.evaluate(node, scope, place)
        except Unknowable:
            return None
        return value if isinstance(value, Scope) else None

    def _dotted_module(self, node: ast.expr, scope: Scope) -> Module | None:
        """Return the module ``a.b`` of a statement ``import a.b``, None if the expression is no such."""
        name = dotted(node)
        if "." not in name:
            return None
        bindings = [one for level in upwards(scope) for one in level.bindings.get(name.split(".")[0], [])]
        statements = [one.node for one in bindings if isinstance(one.node, ast.Import)]
        if any(alias.name == name and alias.asname is None for one in statements for alias in one.names):
            return scope.module.import_file(name, 0)
        return None

    def _attribute(self, node: ast.Attribute, scope: Scope, place: Place) -> Any:
        option = parsed_option(self, node, scope)
        if option is not None:
            return option[0]
        base = self._dotted_module(node.value, scope) or self.evaluate(node.value, scope, place)
        if isinstance(base, Module):
            return self.evaluate(ast.copy_location(ast.Name(node.attr, ast.Load()), node), base.scope, END)
        if isinstance(base, Scope) and isinstance(base.node, ast.ClassDef):
            return class_attribute(self, base, node)
        if isinstance(base, Instance):
            written = written_here(self, node, scope, place)
            if written is not None:
                return self.evaluate(*written)
            return instance_attribute(self, base, node)
        raise Unknowable(f"{source(node)} is computed when the script runs", node)


def _refuse_huge(node: ast.BinOp, left: Any, right: Any) -> None:
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if isinstance(node.op, ast.Mod) and isinstance(left, str | bytes) and _WIDE.search(f"{left!r}"):
        raise Unknowable("a value of absurd size", node)
    if isinstance(node.op, ast.Pow) and numbers and abs(right) * max(1, math.log2(abs(left) + 1)) > SIZE_LIMIT:
        raise Unknowable("a number of absurd size", node)
    if isinstance(node.op, ast.Mult) and not numbers:
        sized, times = (left, right) if hasattr(left, "__len__") else (right, left)
        if hasattr(sized, "__len__") and isinstance(times, int) and len(sized) * times > SIZE_LIMIT:
            raise Unknowable("a value of absurd size", node)


def _bounded(value: Any, node: ast.AST) -> Any:
    if isinstance(value, str | list | tuple | dict | set) and len(value) > SIZE_LIMIT:
        raise Unknowable("a value of absurd size", node)
    if isinstance(value, int) and value.bit_length() > SIZE_LIMIT:
        raise Unknowable("a number of absurd size", node)
    return value
