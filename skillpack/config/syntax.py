"""Questions to the syntax tree of a script: names, targets, arguments."""

from __future__ import annotations

import ast

from skillpack.config.scopes import Binding, Scope, own_nodes

ENVIRONMENT = ("os.getenv", "os.environ.get", "getenv", "environ.get")
"""Calls that read an environment variable."""


def variable_of(node: ast.expr) -> str | None:
    """Return the environment variable that an expression reads without a default."""
    if isinstance(node, ast.Call) and dotted(node.func) in ENVIRONMENT and len(node.args) == 1:
        return source(node.args[0]).strip("'\"")
    return None


def dotted(node: ast.AST) -> str:
    """Return ``a.b.c`` for such an expression, else an empty text."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def label(scope: Scope) -> str:
    """Return a function's name, behind that of its class if it is a method."""
    name = scope.node.name  # type: ignore[union-attr]
    return f"{scope.owner.node.name}.{name}" if scope.owner is not None else name  # type: ignore[union-attr]


def line_of(binding: Binding) -> int:
    """Return the line (from 1) where a name is bound; 0 if it has none."""
    return getattr(binding.node, "lineno", 0)


def source(node: ast.AST) -> str:
    """Return an expression as text, cut at 60 characters."""
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."


def calls_of(scope: Scope) -> list[tuple[Scope, ast.Call]]:
    """Return the calls of a function in the files read so far; of a class for its ``__init__``. By name alone."""
    target = scope.owner if scope.owner is not None and scope.node.name == "__init__" else scope  # type: ignore[union-attr]
    name = target.node.name  # type: ignore[union-attr]
    found = []
    for module in list(scope.module.parsed.values()):
        for caller in module.scopes:
            for step in caller.steps:
                for node in own_nodes(step.node):
                    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == name:
                        found.append((caller, node))
    return found


def default_of(definition: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> ast.expr | None:
    """Return the default of a parameter; None if it has none."""
    given = definition.args
    every = [*given.posonlyargs, *given.args]
    for arg, default in zip(every[len(every) - len(given.defaults) :], given.defaults, strict=True):
        if arg.arg == name:
            return default
    for arg, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if arg.arg == name:
            return value
    return None


def upwards(scope: Scope) -> list[Scope]:
    """Return a scope and those around it, the innermost first."""
    found = [scope]
    while found[-1].parent is not None:
        found.append(found[-1].parent)
    return found


def global_names(scope: Scope) -> set[str]:
    """Return the names that a function declares as global."""
    return {name for step in scope.steps if isinstance(step.node, ast.Global) for name in step.node.names}


def written_targets(node: ast.stmt) -> list[ast.expr]:
    """Return the targets that a statement assigns to or deletes."""
    if isinstance(node, ast.Assign | ast.Delete):
        return [
            part for target in node.targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])
        ]
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.AnnAssign) and node.value is not None):
        return [node.target]
    return []


def touches(node: ast.stmt, name: str) -> bool:
    """Tell whether a statement may change the dict ``name``: writes an item, or calls a method that does."""
    for target in written_targets(node):
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == name:
            return True
    for inner in own_nodes(node):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and dotted(inner.func.value) == name:
            return inner.func.attr not in ("get", "items", "keys", "values", "copy")
    return False


def is_job(name: str, scope: Scope) -> bool:
    """Tell whether a variable holds an AgentJetJob: writing its attributes does not change the script's own classes."""
    return any(
        isinstance(binding.value, ast.Call) and dotted(binding.value.func).rpartition(".")[2] == "AgentJetJob"
        for inner in upwards(scope)
        for binding in inner.bindings.get(name, [])
    )


def is_self(name: str, definition: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a parameter is the first of a method: the object (or the class) itself."""
    arguments = [*definition.args.posonlyargs, *definition.args.args]
    static = any(dotted(decorator) == "staticmethod" for decorator in definition.decorator_list)
    return bool(arguments) and arguments[0].arg == name and not static


def is_self_attribute(target: ast.expr, name: str) -> bool:
    """Tell whether a target is ``self.<name>``."""
    return isinstance(target, ast.Attribute) and target.attr == name and dotted(target.value) == "self"


def fields_of(owner: Scope) -> list[str]:
    """Return the annotated names of a class body in order: the fields of a dataclass."""
    return [
        s.node.target.id
        for s in owner.steps
        if isinstance(s.node, ast.AnnAssign) and isinstance(s.node.target, ast.Name)
    ]


def arguments(names: list[str]) -> ast.arguments:
    """Return the parameters of a function that takes just these names."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
