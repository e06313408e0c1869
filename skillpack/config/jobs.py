"""The AgentJetJob calls of a client script, read without running it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from ajet.default_config import kwarg_table
from skillpack.config.job_call import JobCall, Unknown, read_value
from skillpack.config.job_writes import Writes, as_read
from skillpack.config.scopes import Module, Place, Scope, Step, own_nodes
from skillpack.config.static_dicts import entries
from skillpack.config.static_eval import Evaluator
from skillpack.config.static_values import Unknowable
from skillpack.script import BadInput

CLASS = "AgentJetJob"


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
            Writes(self.job, self.module, scope, start, dumped).read()
        return self.job

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
            reading = read_value(node, scope, place, self.module, line)
        except Unknowable as error:
            key = kwarg_table()[name]["key"]
            self._unknown(key or f"kwarg {name}", node, error.reason, line)
            return
        if reading.value is not None:
            self.job.kwargs[name] = reading

    def _unknown(self, key: str | None, node: ast.AST, reason: str, line: int | None = None) -> None:
        self.job.unknown.append(Unknown(key, line or int(getattr(node, "lineno", self.call.lineno)), reason))

    def _handles(self, targets: list[ast.expr]) -> list[tuple[Scope, Step | None, str]]:
        """Return (scope, statement, dumped expression) of every name that holds this job from that statement on.

        None instead of the statement: another method of the class, which may run or not.
        """
        handles: list[tuple[Scope, Step | None, str]] = [
            (self.scope, self.step, ast.dump(as_read(target))) for target in targets
        ]
        attributes = [target for target in targets if isinstance(target, ast.Attribute)]
        if attributes and self.scope.owner is not None:
            for other in self.module.scopes:
                if other.parent is self.scope.owner and other is not self.scope and other.steps:
                    handles += [(other, None, ast.dump(as_read(target))) for target in attributes]
        if self._is_returned(targets):
            name = getattr(self.scope.node, "name", "")
            for scope in self.module.scopes:
                for step in scope.steps:
                    if isinstance(step.node, ast.Assign) and _calls(step.node.value, name):
                        handles += [(scope, step, ast.dump(as_read(target))) for target in step.node.targets]
        return handles

    def _is_returned(self, targets: list[ast.expr]) -> bool:
        dumped = {ast.dump(as_read(target)) for target in targets}
        for step in self.scope.steps:
            value = step.node.value if isinstance(step.node, ast.Return) else None
            if value is not None and (value is self.call or ast.dump(value) in dumped):
                return True
        return False


def _targets_of(node: ast.stmt, call: ast.Call) -> list[ast.expr]:
    if isinstance(node, ast.Assign) and node.value is call:
        return node.targets
    if isinstance(node, ast.AnnAssign) and node.value is call:
        return [node.target]
    return []


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and (
        (isinstance(node.func, ast.Name) and node.func.id == name)
        or (isinstance(node.func, ast.Attribute) and node.func.attr == name)
    )
