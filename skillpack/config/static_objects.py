"""Attributes of a script's own classes and of their objects, as far as reading the script tells them."""

from __future__ import annotations

import ast
import dataclasses
from typing import TYPE_CHECKING, Any

from skillpack.config.scopes import END, Binding, Place, Scope, Step
from skillpack.config.static_values import Entry, Instance, Unknowable, argument_of, last_binding
from skillpack.config.syntax import (
    arguments,
    default_of,
    dotted,
    fields_of,
    is_job,
    is_self_attribute,
    source,
    written_targets,
)

if TYPE_CHECKING:
    from skillpack.config.static_eval import Evaluator


def class_attribute(evaluator: Evaluator, owner: Scope, node: ast.Attribute, seen: tuple[Scope, ...] = ()) -> Any:
    _refuse_written(evaluator, owner, node)
    name = node.attr
    if name in owner.bindings:
        binding = last_binding(owner.bindings[name], END, name, node)
        if isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return owner.module.scope_of(binding.node)
        if binding.value is None:
            raise Unknowable(f"{source(node)} is set in a way that cannot be read off", binding.node)
        return _field(evaluator, binding, owner)
    for base in owner.node.bases:  # type: ignore[union-attr]
        parent = evaluator.definition(base, owner.parent or owner, END)
        if parent is not None and parent not in seen:
            try:
                return class_attribute(evaluator, parent, node, (*seen, owner))
            except Unknowable:
                continue
    raise Unknowable(f"{owner.node.name} has no attribute {name} that can be read off", node)  # type: ignore[union-attr]


def _field(evaluator: Evaluator, binding: Binding, owner: Scope) -> Any:
    """Return a class attribute's value; ``dataclasses.field`` stands for its default."""
    value = binding.value
    assert value is not None
    if isinstance(value, ast.Call) and dotted(value.func) in ("field", "dataclasses.field"):
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        if "default" in given:
            return evaluator.evaluate(given["default"], owner, END)
        factory = given.get("default_factory")
        if isinstance(factory, ast.Lambda):
            return evaluator.evaluate(factory.body, owner, END)
        if factory is not None:
            return evaluator.evaluate(ast.copy_location(ast.Call(factory, [], []), value), owner, END)
        raise Unknowable("a field without a default", value)
    return evaluator.evaluate(value, owner, END)


def instance_attribute(evaluator: Evaluator, instance: Instance, node: ast.Attribute, scope: Scope) -> Any:
    owner, name = instance.scope, node.attr
    start = next((s for s in owner.module.scopes if s.parent is owner and s.node.name == "__init__"), None)  # type: ignore[union-attr]
    if start is not None:
        return _set_by_init(evaluator, instance, start, node)
    if instance.call is not None:
        fields = fields_of(owner)
        definition = ast.FunctionDef("__init__", arguments(fields), [], [], None)
        argument = argument_of(instance.call, definition, name, bound=False)
        if argument is not None:
            _refuse_written(evaluator, owner, node)
            return evaluator.evaluate(argument, instance.caller or scope, instance.place)
    return class_attribute(evaluator, owner, node)


def _set_by_init(evaluator: Evaluator, instance: Instance, start: Scope, node: ast.Attribute) -> Any:
    owner, name = instance.scope, node.attr
    writes = [
        (inner, step)
        for inner in owner.module.scopes
        if inner.parent is owner
        for step in inner.steps
        if any(is_self_attribute(target, name) for target in written_targets(step.node))
    ]
    if not writes:
        return class_attribute(evaluator, owner, node)
    _refuse_written(evaluator, owner, node)
    (where, step), *others = writes
    value = getattr(step.node, "value", None)
    if others or where is not start or step.guard or value is None or isinstance(step.node, ast.AugAssign):
        raise Unknowable(f"self.{name} is set in more than one way", node)
    call = instance.call
    if call is not None and isinstance(value, ast.Name) and value.id in start.parameters:
        definition = start.node
        assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
        argument = argument_of(call, definition, value.id, bound=True) or default_of(definition, value.id)
        if argument is not None:
            return evaluator.evaluate(argument, instance.caller or start, instance.place)
    return evaluator.evaluate(value, start, Place(step.index, step.guard))


def written_here(evaluator: Evaluator, node: ast.Attribute, scope: Scope, place: Place) -> Entry | None:
    """Return the value that a statement above in the same scope gave to ``name.attr``, if one surely did."""
    if not isinstance(node.value, ast.Name) or node.value.id in ("self", "cls"):
        return None
    wanted = ast.dump(ast.Attribute(node.value, node.attr, ast.Store()))
    writes = [step for step in scope.steps if any(ast.dump(target) == wanted for target in written_targets(step.node))]
    before = [step for step in writes if not step.never_with(place)]
    if not before:
        return None
    last = before[-1]
    value = getattr(last.node, "value", None)
    if not last.surely_before(place) or not isinstance(last.node, ast.Assign) or value is None:
        raise Unknowable(f"{source(node)} is changed at line {last.node.lineno}", last.node)
    return value, scope, Place(last.index, last.guard)


def _refuse_written(evaluator: Evaluator, owner: Scope, node: ast.Attribute) -> None:
    """Raise Unknowable if code outside the class's own methods assigns this attribute of such an object."""
    key = (id(owner), node.attr)
    if key not in evaluator.written:
        evaluator.written[key] = None  # what is found on the way back here is already being looked at
        evaluator.written[key] = _writing(evaluator, owner, node.attr)
    reason = evaluator.written[key]
    if reason is not None:
        raise reason


def _writing(evaluator: Evaluator, owner: Scope, name: str) -> Unknowable | None:
    for module in [owner.module, evaluator.home] if owner.module is not evaluator.home else [evaluator.home]:
        for scope in module.scopes:
            for step in scope.steps:
                for target in written_targets(step.node):
                    if _may_be(evaluator, target, name, owner, scope, step):
                        where = f"{module.path.name}:{step.node.lineno}"
                        return Unknowable(f"{source(target)} is changed at {where}", step.node)
    return None


def _may_be(evaluator: Evaluator, target: ast.expr, name: str, owner: Scope, scope: Scope, step: Step) -> bool:
    if not (isinstance(target, ast.Attribute) and target.attr == name and isinstance(target.value, ast.Name)):
        return False
    if target.value.id in ("self", "cls"):
        return False
    try:
        quiet = dataclasses.replace(evaluator, notes=[])
        value = quiet.evaluate(target.value, scope, Place(step.index, step.guard))
    except Unknowable:
        return not is_job(target.value.id, scope)
    return (isinstance(value, Instance) and value.scope is owner) or value is owner
