"""Attributes of a script's own classes and of their objects, as far as reading the script tells them."""

from __future__ import annotations

import ast
import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

from skillpack.config.scopes import END, Binding, Place, Scope, Step, own_nodes
from skillpack.config.static_values import Entry, Frame, Instance, Unknowable, argument_of, last_binding
from skillpack.config.syntax import arguments, dotted, fields_of, is_job, is_self_attribute, source, written_targets

if TYPE_CHECKING:
    from skillpack.config.static_eval import Evaluator

PLAIN_BASES = frozenset({"object", "ABC", "Generic", "Protocol", "BaseModel", "NamedTuple"})
"""Bases from libraries that leave the defaults of a class as they are written."""


def class_attribute(evaluator: Evaluator, owner: Scope, node: ast.Attribute) -> Any:
    """Return the value of ``Class.name``. Raises Unknowable."""
    _refuse_written(evaluator, owner, node)
    name = node.attr
    classes, foreign = lineage(evaluator, owner)
    if any(base.endswith("Enum") for base in foreign):
        raise Unknowable(f"{source(node)} is a member of an Enum", node)
    for one in classes:
        if name not in one.bindings:
            continue
        binding = last_binding(one.bindings[name], END, name, node)
        if isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return one.module.scope_of(binding.node)
        if binding.value is None:
            raise Unknowable(f"{source(node)} is set in a way that cannot be read off", binding.node)
        if foreign:
            evaluator.notes.append(f"as {_name(one)} defines it; its base {foreign[0]} may change it")
        return _field(evaluator, binding, one)
    raise Unknowable(f"{_name(owner)} has no attribute {name} that can be read off", node)


def instance_attribute(evaluator: Evaluator, instance: Instance, node: ast.Attribute) -> Any:
    """Return the value of ``object.name``. Raises Unknowable."""
    owner, name = instance.scope, node.attr
    classes, _ = lineage(evaluator, owner)
    makers = [one for one in map(_maker_of, classes) if one is not None]
    writes = [
        (method, step)
        for one in classes
        for method in _methods_of(one)
        for step in method.steps
        if any(is_self_attribute(target, name) for target in written_targets(step.node))
    ]
    if writes:
        _refuse_written(evaluator, owner, node)
        return _set_by_maker(evaluator, instance, makers, writes, node)
    if not makers and instance.made is not None:
        fields = list(dict.fromkeys(field for one in reversed(classes) for field in fields_of(one)))
        definition = ast.FunctionDef("__init__", arguments(fields), [], [], None)
        made = instance.made
        argument = argument_of(made.call, definition, name, bound=False)
        if argument is not None:
            _refuse_written(evaluator, owner, node)
            return evaluator.within(made.frames).evaluate(argument, made.caller, made.place)
    return class_attribute(evaluator, owner, node)


def lineage(evaluator: Evaluator, owner: Scope) -> tuple[list[Scope], list[str]]:
    """Return a class with its bases in the script's files, nearest first, and the names of bases from libraries."""
    classes, foreign, pending = [], [], [owner]
    while pending:
        one = pending.pop(0)
        if one in classes:
            continue
        classes.append(one)
        assert isinstance(one.node, ast.ClassDef)
        for base in one.node.bases:
            found = evaluator.definition(base, one.parent or one, END)
            if found is not None and isinstance(found.node, ast.ClassDef):
                pending.append(found)
                continue
            name = dotted(base.value if isinstance(base, ast.Subscript) else base).rpartition(".")[2]
            if name not in PLAIN_BASES:
                foreign.append(name or source(base))
    return classes, foreign


def _set_by_maker(
    evaluator: Evaluator,
    instance: Instance,
    makers: list[Scope],
    writes: list[tuple[Scope, Step]],
    node: ast.Attribute,
) -> Any:
    """Return what the only ``self.name = value``, in an ``__init__``, gives."""
    (where, step), *others = writes
    value = getattr(step.node, "value", None)
    if others or where not in makers or step.guard or value is None or isinstance(step.node, ast.AugAssign):
        raise Unknowable(f"self.{node.attr} is set in more than one way", node)
    frames: dict[Scope, Frame] = {**evaluator.frames}
    if instance.made is not None:
        frames[makers[0]] = instance.made
    for lower, upper in itertools.pairwise(makers):
        handed = _super_call(lower)
        if handed is not None:
            frames[upper] = Frame(handed, lower, lower.place_of(handed), dict(frames))
    return evaluator.within(frames).evaluate(value, where, Place(step.index, step.guard))


def _super_call(maker: Scope) -> ast.Call | None:
    """Return the call ``super().__init__(...)`` of an ``__init__``."""
    for step in maker.steps:
        for node in own_nodes(step.node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "__init__":
                return node
    return None


def _maker_of(owner: Scope) -> Scope | None:
    return next((method for method in _methods_of(owner) if _name(method) == "__init__"), None)


def _methods_of(owner: Scope) -> list[Scope]:
    return [scope for scope in owner.module.scopes if scope.parent is owner]


def _field(evaluator: Evaluator, binding: Binding, owner: Scope) -> Any:
    """Return a class attribute's value; ``dataclasses.field`` stands for its default."""
    value = binding.value
    assert value is not None
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in ("field", "Field"):
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        default = given.get("default") or (value.args[0] if value.args else None)
        factory = given.get("default_factory")
        if default is not None:
            return evaluator.evaluate(default, owner, END)
        if isinstance(factory, ast.Lambda):
            return evaluator.evaluate(factory.body, owner, END)
        if factory is not None:
            return evaluator.evaluate(ast.copy_location(ast.Call(factory, [], []), value), owner, END)
        raise Unknowable("a field without a default", value)
    return evaluator.evaluate(value, owner, END)


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
    for module in list(evaluator.home.parsed.values()):
        for scope in module.scopes:
            for step in scope.steps:
                for target in [*written_targets(step.node), *_set_by_name(step.node, name)]:
                    if _may_be(evaluator, target, name, owner, scope, step):
                        where = f"{module.path.name}:{step.node.lineno}"
                        return Unknowable(f"{source(target)} is changed at {where}", step.node)
    return None


def _set_by_name(node: ast.stmt, name: str) -> list[ast.expr]:
    """Return ``x.name`` for every ``setattr(x, "name", ...)``, and where the name is computed."""
    found: list[ast.expr] = []
    for inner in own_nodes(node):
        if isinstance(inner, ast.Call) and dotted(inner.func) == "setattr" and len(inner.args) == 3:
            which = inner.args[1]
            if not isinstance(which, ast.Constant) or which.value == name:
                found.append(ast.Attribute(inner.args[0], name, ast.Store()))
    return found


def _may_be(evaluator: Evaluator, target: ast.expr, name: str, owner: Scope, scope: Scope, step: Step) -> bool:
    """Tell whether an assignment's target may be attribute ``name`` of ``owner`` or of one of its objects."""
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


def _name(scope: Scope) -> str:
    return str(scope.node.name)  # type: ignore[union-attr]
