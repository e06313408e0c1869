"""What the names of a Python file stand for: its assignments in their order, and whether they surely run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from skillpack.script import BadInput

FILE_LIMIT = 2_000_000
"""Bytes of a script that is still read."""

FOLDERS_UP = 8
"""Folders above a script in which the files that it imports are looked for."""

Guard = tuple[tuple[str, int, int], ...]
"""The blocks around a statement that may not run: (kind, id of the block's statement, branch)."""


@dataclass(frozen=True)
class Step:
    """A statement of a scope: its place in the order, and the blocks around it."""

    node: ast.stmt
    index: int
    guard: Guard

    def surely_before(self, other: Place) -> bool:
        """Tell whether this statement has run whenever ``other`` runs."""
        return self.index < other.index and self.guard == other.guard[: len(self.guard)]

    def never_with(self, other: Place) -> bool:
        """Tell whether this statement stands in another branch of an ``if`` than ``other``, or only comes after it."""
        for mine, theirs in zip(self.guard, other.guard, strict=False):
            if mine != theirs:
                return mine[0] == "if" and mine[:2] == theirs[:2]
        return self.index >= other.index and not self._shares_a_loop(other)

    def _shares_a_loop(self, other: Place) -> bool:
        shared = (mine for mine, theirs in zip(self.guard, other.guard, strict=False) if mine == theirs)
        return any(kind == "loop" for kind, _, _ in shared)


@dataclass(frozen=True)
class Place:
    """Where an expression is evaluated: after which statements of a scope, within which blocks."""

    index: float = float("inf")
    guard: Guard = ()


END = Place()


@dataclass(frozen=True)
class Binding:
    """A way in which a name gets its value. ``value`` is None where it cannot be read off (loops, ``+=``, ``with``)."""

    step: Step
    node: ast.AST
    value: ast.expr | None = None


@dataclass(eq=False)
class Scope:
    """A module, a function or a class body."""

    module: Module
    node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    parent: Scope | None = None
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        for node, guard in _in_order(self.node.body, ()):
            self.steps.append(Step(node, len(self.steps), guard))

    @cached_property
    def bindings(self) -> dict[str, list[Binding]]:
        """The bindings of every name, in order."""
        found: dict[str, list[Binding]] = {}
        for step in self.steps:
            for name, binding in _bindings(step):
                found.setdefault(name, []).append(binding)
        return found

    @cached_property
    def parameters(self) -> dict[str, ast.arg]:
        """The parameters, if this is a function."""
        if not isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return {}
        given = self.node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        return {arg.arg: arg for arg in every if arg is not None}

    @property
    def owner(self) -> Scope | None:
        """The class that this function is a method of."""
        parent = self.parent
        return parent if parent is not None and isinstance(parent.node, ast.ClassDef) else None

    def place_of(self, node: ast.AST) -> Place:
        """Return where ``node`` stands in this scope."""
        for step in self.steps:
            if any(inner is node for inner in own_nodes(step.node)):
                return Place(step.index, step.guard)
        return END


class Module:
    """A parsed Python file."""

    def __init__(self, path: Path, parsed: dict[Path, Module] | None = None) -> None:
        self.path = path
        self.parsed = {} if parsed is None else parsed
        """Every file read so far: a class that two files import is one class."""
        self.parsed[path.resolve()] = self
        self.tree = _parse(path)
        self.scope = Scope(self, self.tree)
        self.scopes: list[Scope] = [self.scope]
        self._collect(self.scope)

    def _collect(self, scope: Scope) -> None:
        for step in scope.steps:
            if isinstance(step.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = Scope(self, step.node, scope)
                self.scopes.append(inner)
                self._collect(inner)

    def scope_of(self, node: ast.AST) -> Scope:
        """Return the scope of a function or class definition."""
        return next(scope for scope in self.scopes if scope.node is node)

    def import_file(self, name: str, level: int) -> Module | None:
        """Return the module of an import if its file lies near this one, else None (a library, or not Python)."""
        path = self._find(name, level)
        if path is None:
            return None
        try:
            return self.parsed.get(path.resolve()) or Module(path, self.parsed)
        except BadInput:
            return None

    def _find(self, name: str, level: int) -> Path | None:
        here = self.path.resolve().parent
        if level:
            for _ in range(level - 1):
                here = here.parent
            folders = [here]
        else:
            folders = [here, *list(here.parents)[:FOLDERS_UP]]
        if name.split(".")[0] == "ajet":
            return None
        for folder in folders:
            target = folder.joinpath(*filter(None, name.split(".")))
            beside = target.parent / f"{target.name}.py"
            for path in (beside, target / "__init__.py") if name else (target / "__init__.py",):
                if path.is_file():
                    return path
        return None


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions of a statement: not what stands in its blocks, nor in functions and classes."""
    yield node
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.stmt) and name in ("body", "orelse", "finalbody", "handlers", "cases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from own_nodes(child)


def _parse(path: Path) -> ast.Module:
    try:
        data = path.read_bytes()
        if len(data) > FILE_LIMIT:
            raise BadInput(f"{path}: has {len(data)} bytes", expected=f"a script of at most {FILE_LIMIT}")
        return ast.parse(data, str(path))
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file", hint="check the path") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder", expected="a Python file") from None
    except SyntaxError as error:
        raise BadInput(
            f"{path}:{error.lineno or 1}:{error.offset or 1}: not valid Python: {error.msg}",
            hint=f"python3 -m py_compile {path}",
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadInput(f"{path}: not readable as Python: {error}") from None


def _in_order(body: list[ast.stmt], guard: Guard) -> Iterator[tuple[ast.stmt, Guard]]:
    """Yield the statements of a body and of its blocks, each with the blocks that may not run."""
    for node in body:
        yield node, guard
        if isinstance(node, ast.If):
            if _is_main_test(node.test):
                yield from _in_order(node.body, guard)
            else:
                yield from _in_order(node.body, (*guard, ("if", id(node), 0)))
            yield from _in_order(node.orelse, (*guard, ("if", id(node), 1)))
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            yield from _in_order(node.body, (*guard, ("loop", id(node), 0)))
            yield from _in_order(node.orelse, (*guard, ("loop", id(node), 1)))
        elif isinstance(node, ast.With | ast.AsyncWith):
            yield from _in_order(node.body, guard)
        elif isinstance(node, _TRIES):
            yield from _in_order(node.body, guard)
            for number, handler in enumerate(node.handlers):
                yield from _in_order(handler.body, (*guard, ("except", id(node), number)))
            yield from _in_order(node.orelse, guard)
            yield from _in_order(node.finalbody, guard)
        elif isinstance(node, ast.Match):
            for number, case in enumerate(node.cases):
                yield from _in_order(case.body, (*guard, ("if", id(node), number)))


_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))  # except* came with Python 3.11


def _is_main_test(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == "__main__"
    )


def _bindings(step: Step) -> Iterator[tuple[str, Binding]]:
    node = step.node
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _targets(target, node.value, step)
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None:
            yield from _targets(node.target, node.value, step)
    elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor):
        yield from _targets(node.target, None, step)
    elif isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            if item.optional_vars is not None:
                yield from _targets(item.optional_vars, None, step)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            name = alias.asname or (alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name)
            yield name, Binding(step, node)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name, Binding(step, node)
    elif isinstance(node, ast.Delete):
        for target in node.targets:
            yield from _targets(target, None, step)
    for inner in own_nodes(node):
        if isinstance(inner, ast.NamedExpr):
            yield from _targets(inner.target, None, step)


def _targets(target: ast.expr, value: ast.expr | None, step: Step) -> Iterator[tuple[str, Binding]]:
    if isinstance(target, ast.Name):
        yield target.id, Binding(step, step.node, value)
    elif isinstance(target, ast.Starred):
        yield from _targets(target.value, None, step)
    elif isinstance(target, ast.Tuple | ast.List):
        parts: list[ast.expr | None] = [None] * len(target.elts)
        literal = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(parts)
        if literal and not any(isinstance(item, ast.Starred) for item in [*target.elts, *value.elts]):  # type: ignore[union-attr]
            parts = list(value.elts)  # type: ignore[union-attr]
        for part, item in zip(target.elts, parts, strict=True):
            yield from _targets(part, item, step)
