"""The AgentJetJob calls of a client script, read without running it: kwargs, and the writes that follow the call."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ajet.default_config import kwarg_table
from skillpack.config.scopes import Module, Place, Scope, Step, own_nodes
from skillpack.config.static_dicts import entries
from skillpack.config.static_eval import Evaluator
from skillpack.config.static_values import Instance, Unknowable
from skillpack.script import BadInput

CLASS = "AgentJetJob"


@dataclass(frozen=True)
class Reading:
    """A value that a script gives: what it is, where, and what it rests on."""

    value: Any
    line: int
    note: str = ""


@dataclass(frozen=True)
class Unknown:
    """A value that cannot be read off a script: a YAML key, or None where it may be any."""

    key: str | None
    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.key or 'any key'} is unknown: {self.reason}"


@dataclass
class JobCall:
    """One AgentJetJob call: the ``kwargs`` that are known, and in order the ``writes`` to its configuration."""

    number: int
    name: str
    line: int
    kwargs: dict[str, Reading] = field(default_factory=dict)
    writes: list[tuple[str, Reading]] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)
    ignored: list[tuple[str, int]] = field(default_factory=list)
    """Attributes assigned to the job itself, and methods called on it, that a released AgentJet does not heed."""
    strange: list[tuple[str, int]] = field(default_factory=list)
    """Kwargs that AgentJetJob does not have."""


def read_jobs(path: str | Path) -> list[JobCall]:
    """Return the AgentJetJob calls of a script, in file order. Raises BadInput if it is no Python, or has none."""
    module = Module(Path(path))
    names = _class_names(module)
    found = []
    for scope in module.scopes:
        for step in scope.steps:
            for node in own_nodes(step.node):
                if isinstance(node, ast.Call) and _names_class(node.func, names):
                    found.append((node, step, scope))
    found.sort(key=lambda item: (item[0].lineno, item[0].col_offset))
    if not found:
        raise BadInput(
            f"{path}: has no {CLASS}(...) call",
            expected="a client script that builds its job, or a YAML file",
            hint=f"name the file in which {CLASS} is called",
        )
    return [_Reader(module, number, *item).read() for number, item in enumerate(found, 1)]


def choose_job(jobs: list[JobCall], wanted: str | None, path: str | Path) -> JobCall:
    """Return the job of a number (from 1), a variable or an experiment name; the only one if None. Raises BadInput."""
    if wanted is None:
        if len(jobs) == 1:
            return jobs[0]
        raise BadInput(
            f"{path}: has {len(jobs)} {CLASS} calls: {_listed(jobs)}",
            hint=f"choose one by number or name: {path}#1 (config.py also takes --job 1)",
        )
    fitting = [job for job in jobs if wanted in (str(job.number), job.name, _experiment(job))]
    if len(fitting) != 1:
        what = "fits several" if fitting else "fits none"
        raise BadInput(f"{path}: --job {wanted} {what} of its {CLASS} calls: {_listed(jobs)}", hint="choose by number")
    return fitting[0]


def _listed(jobs: list[JobCall]) -> str:
    return ", ".join(f"{job.number} = {job.name} (line {job.line})" for job in jobs)


def _experiment(job: JobCall) -> Any:
    reading = job.kwargs.get("experiment_name")
    return reading.value if reading else None


def _class_names(module: Module) -> set[str]:
    names = {CLASS}
    for scope in module.scopes:
        for step in scope.steps:
            if isinstance(step.node, ast.ImportFrom):
                names |= {alias.asname for alias in step.node.names if alias.name == CLASS and alias.asname}
    return names


def _names_class(node: ast.expr, names: set[str]) -> bool:
    return (isinstance(node, ast.Name) and node.id in names) or (isinstance(node, ast.Attribute) and node.attr == CLASS)


class _Reader:
    """Reads one call."""

    def __init__(self, module: Module, number: int, call: ast.Call, step: Step, scope: Scope) -> None:
        self.module, self.call, self.step, self.scope = module, call, step, scope
        self.job = JobCall(number, "unnamed", call.lineno)

    def read(self) -> JobCall:
        targets = _targets_of(self.step.node, self.call)
        experiment = None
        self._kwargs()
        if "experiment_name" in self.job.kwargs:
            experiment = str(self.job.kwargs["experiment_name"].value)
        self.job.name = ast.unparse(targets[0]) if targets else experiment or f"line {self.call.lineno}"
        for scope, start, dumped in self._handles(targets):
            _Writes(self, scope, start, dumped).read()
        return self.job

    # -- kwargs

    def _kwargs(self) -> None:
        place = Place(self.step.index, self.step.guard)
        table = list(kwarg_table())
        for position, node in enumerate(self.call.args):
            if isinstance(node, ast.Starred):
                self._unknown(None, node, "positional arguments are passed by *")
                break
            if position < len(table):
                self._kwarg(table[position], node, self.scope, place, node.lineno)
        for keyword in self.call.keywords:
            if keyword.arg is not None:
                self._kwarg(keyword.arg, keyword.value, self.scope, place, keyword.value.lineno)
            else:
                self._spread(keyword.value, place)

    def _spread(self, node: ast.expr, place: Place) -> None:
        try:
            found = entries(Evaluator(self.module), node, self.scope, place)
        except Unknowable as error:
            self._unknown(None, node, error.reason, error.line)
            return
        if found is None:
            self._unknown(None, node, f"kwargs come from **{ast.unparse(node)}")
            return
        for name, (value, scope, where) in found.items():
            self._kwarg(str(name), value, scope, where, value.lineno)

    def _kwarg(self, name: str, node: ast.expr, scope: Scope, place: Place, line: int) -> None:
        if name not in kwarg_table():
            self.job.strange.append((name, line))
            return
        try:
            reading = self.reading(node, scope, place, line)
        except Unknowable as error:
            key = kwarg_table()[name]["key"]
            self._unknown(key or f"kwarg {name}", node, error.reason, line)
            return
        if reading.value is not None:
            self.job.kwargs[name] = reading

    def reading(self, node: ast.expr, scope: Scope, place: Place, line: int) -> Reading:
        evaluator = Evaluator(self.module)
        value = evaluator.evaluate(node, scope, place)
        if isinstance(value, Instance | Scope | Module):
            raise Unknowable(f"{ast.unparse(node)} is an object of the script", node)
        if isinstance(value, tuple):
            value = list(value)
        return Reading(value, line, "; ".join(dict.fromkeys(evaluator.notes)))

    def _unknown(self, key: str | None, node: ast.AST, reason: str, line: int | None = None) -> None:
        self.job.unknown.append(Unknown(key, line or int(getattr(node, "lineno", self.call.lineno)), reason))

    # -- where the job goes

    def _handles(self, targets: list[ast.expr]) -> list[tuple[Scope, Step | None, str]]:
        """Return (scope, statement, dumped expression) of every name that holds this job from that statement on.

        None instead of the statement: another method of the class, which may run or not.
        """
        handles: list[tuple[Scope, Step | None, str]] = [
            (self.scope, self.step, ast.dump(_loaded(target))) for target in targets
        ]
        attributes = [target for target in targets if isinstance(target, ast.Attribute)]
        if attributes and self.scope.owner is not None:
            for other in self.module.scopes:
                if other.parent is self.scope.owner and other is not self.scope and other.steps:
                    handles += [(other, None, ast.dump(_loaded(target))) for target in attributes]
        if self._is_returned(targets):
            name = getattr(self.scope.node, "name", "")
            for scope in self.module.scopes:
                for step in scope.steps:
                    if isinstance(step.node, ast.Assign) and _calls(step.node.value, name):
                        handles += [(scope, step, ast.dump(_loaded(target))) for target in step.node.targets]
        return handles

    def _is_returned(self, targets: list[ast.expr]) -> bool:
        dumped = {ast.dump(_loaded(target)) for target in targets}
        for step in self.scope.steps:
            value = step.node.value if isinstance(step.node, ast.Return) else None
            if value is not None and (value is self.call or ast.dump(value) in dumped):
                return True
        return False


class _Writes:
    """Reads what a scope writes to a job that the expression ``dumped`` holds from ``start`` on."""

    def __init__(self, reader: _Reader, scope: Scope, start: Step | None, dumped: str) -> None:
        self.reader, self.scope, self.start = reader, scope, start
        self.job = reader.job
        self.aliases: dict[str, list[str]] = {dumped: []}
        """Dumped expression: the path below the job that it stands for."""
        self.depth = 0
        self.doubtful: set[str] = set()
        """Names that may stand for such a path, or for something else."""

    def read(self) -> None:
        for step in self.scope.steps:
            if self.start is None or step.index > self.start.index:
                self._step(step)

    def _step(self, step: Step) -> None:
        node = step.node
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                path = self._path(target)
                if path is not None and len(path) and not isinstance(target, ast.Name):
                    value = None if isinstance(node, ast.AugAssign) else node.value
                    self._write(path, value, step, target)
                elif isinstance(target, ast.Name) and node.value is not None:
                    self._alias(target, node.value, step)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                path = self._path(target)
                if path:
                    self._write(path, None, step, target)
        for inner in own_nodes(node):
            if isinstance(inner, ast.Call):
                self._call(inner, step)

    def _alias(self, target: ast.Name, value: ast.expr, step: Step) -> None:
        name = ast.dump(_loaded(target))
        path = self._path(value)
        if not self._sure(step) and (path is not None or name in self.aliases):
            self.doubtful.add(target.id)
        if path is not None:
            self.aliases[name] = path
        elif self._sure(step):
            self.aliases.pop(name, None)
            self.doubtful.discard(target.id)

    def _path(self, node: ast.expr) -> list[str] | None:
        """Return the path below the job that an expression stands for, or None."""
        found = self.aliases.get(ast.dump(_loaded(node)))
        if found is not None:
            return found
        if isinstance(node, ast.Attribute):
            base = self._path(node.value)
            return None if base is None else [*base, node.attr]
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            base = self._path(node.value)
            return None if base is None else [*base, str(node.slice.value)]
        return None

    def _write(self, path: list[str], value: ast.expr | None, step: Step, node: ast.AST) -> None:
        line = getattr(node, "lineno", step.node.lineno)
        if path[0] != "config":
            if len(path) == 1 and kwarg_table().get(path[0], {}).get("key"):
                self.job.ignored.append((path[0], line))
            return
        key = ".".join(path[1:])
        if not self._sure(step) or _root(node) in self.doubtful:
            self.job.unknown.append(Unknown(key, line, "set under a condition, in a loop or in another method"))
            return
        if value is None:
            self.job.unknown.append(Unknown(key, line, "changed in a way that cannot be read off"))
            return
        try:
            self._put(key, value, Place(step.index, step.guard), line)
        except Unknowable as error:
            self.job.unknown.append(Unknown(key, line, error.reason))

    def _put(self, key: str, value: ast.expr, place: Place, line: int) -> None:
        """Note a write, that of a dict entry by entry: an unknown entry leaves the others known."""
        found = entries(Evaluator(self.reader.module), value, self.scope, place)
        if not found:
            self.job.writes.append((key, self.reader.reading(value, self.scope, place, line)))
            return
        self.job.writes.append((key, Reading({}, line)))
        for name, (item, _, where) in found.items():
            try:
                self._put(f"{key}.{name}", item, where, item.lineno)
            except Unknowable as error:
                self.job.unknown.append(Unknown(f"{key}.{name}", item.lineno, error.reason))

    def _call(self, node: ast.Call, step: Step) -> None:
        self._handed_on(node, step)
        if isinstance(node.func, ast.Name) and node.func.id == "setattr" and len(node.args) == 3:
            path = self._path(node.args[0])
            if path is not None and isinstance(node.args[1], ast.Constant):
                self._write([*path, str(node.args[1].value)], node.args[2], step, node)
            elif path:
                self.job.unknown.append(Unknown(None, node.lineno, "setattr with a name that is computed"))
            return
        if not isinstance(node.func, ast.Attribute):
            return
        path, method = self._path(node.func.value), node.func.attr
        if path is None:
            return
        if path and path[0] == "config" and method in ("update", "append", "extend", "pop", "set", "merge", "clear"):
            key = ".".join(path[1:]) or None
            self.job.unknown.append(Unknown(key, node.lineno, f"changed by .{method}(...)"))
        elif not path and method == "build_job_from_yaml":
            self.job.ignored.append((method, node.lineno))
        elif not path and method in ("set_data", "set_workflow"):
            self._setter(method, node, step)

    def _handed_on(self, node: ast.Call, step: Step) -> None:
        """Follow the job, or a part of its configuration, into a function of the script that it is passed to."""
        name = node.func.id if isinstance(node.func, ast.Name) else None
        target = next((s for s in self.scope.module.scopes if s.parameters and s.node.name == name), None)  # type: ignore[union-attr]
        if target is None or target.parent is not self.scope.module.scope or target is self.scope or self.depth > 3:
            return
        given = [*zip(target.parameters, node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]
        for parameter, argument in given:
            path = self._path(argument)
            if path is not None and parameter is not None:
                start = Step(step.node, -1, ()) if self._sure(step) else None
                inner = _Writes(self.reader, target, start, ast.dump(ast.Name(parameter, ast.Load())))
                inner.aliases = dict.fromkeys(inner.aliases, path)
                inner.depth = self.depth + 1
                inner.read()

    def _setter(self, method: str, node: ast.Call, step: Step) -> None:
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if method == "set_workflow":
            value = given.get("workflow") or (node.args[0] if node.args else None)
            self._write(["config", "ajet", "rollout", "user_workflow"], value, step, node)
            return
        names = ("type", "dataset_path", "training_split", "validation_split")
        given.update(zip(names, node.args, strict=False))
        repository = ["config", "ajet", "task_reader", "huggingface_dat_repo"]
        given.setdefault("training_split", ast.Constant("train"))
        given.setdefault("validation_split", ast.Constant("test"))
        kind = given.get("type")
        hugging = isinstance(kind, ast.Constant) and str(kind.value).startswith(("hf", "huggingface"))
        if isinstance(kind, ast.Constant):
            value = ast.copy_location(ast.Constant("huggingface_dat_repo" if hugging else "random_dummy"), node)
            self._write(["config", "ajet", "task_reader", "type"], value, step, node)
        else:
            self._write(["config", "ajet", "task_reader", "type"], None, step, node)
        if hugging:
            for name in names[1:]:
                self._write([*repository, name], given.get(name), step, node)

    def _sure(self, step: Step) -> bool:
        """Tell whether a statement runs whenever the job is made."""
        return self.start is not None and step.guard == self.start.guard[: len(step.guard)]


def _targets_of(node: ast.stmt, call: ast.Call) -> list[ast.expr]:
    if isinstance(node, ast.Assign) and node.value is call:
        return node.targets
    if isinstance(node, ast.AnnAssign) and node.value is call:
        return [node.target]
    return []


def _root(node: ast.AST) -> str | None:
    """Return the name that an attribute or item is reached from."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _loaded(node: ast.expr) -> ast.expr:
    """Return an expression as it is read, so that a target and its later uses compare equal."""
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Attribute):
        return ast.Attribute(_loaded(node.value), node.attr, ast.Load())
    if isinstance(node, ast.Subscript):
        return ast.Subscript(_loaded(node.value), node.slice, ast.Load())
    return node


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and (
        (isinstance(node.func, ast.Name) and node.func.id == name)
        or (isinstance(node.func, ast.Attribute) and node.func.attr == name)
    )
