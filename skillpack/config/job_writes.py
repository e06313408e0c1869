"""What a script writes to the configuration of a job after it was constructed."""

from __future__ import annotations

import ast

from ajet.default_config import kwarg_table
from skillpack.config.job_call import JobCall, Reading, Unknown, read_value
from skillpack.config.scopes import Module, Place, Scope, Step, own_nodes
from skillpack.config.static_dicts import entries
from skillpack.config.static_eval import Evaluator
from skillpack.config.static_values import Unknowable


class Writes:
    """Reads what a scope writes to a job that the expression ``dumped`` holds from ``start`` on."""

    def __init__(self, job: JobCall, home: Module, scope: Scope, start: Step | None, dumped: str) -> None:
        self.job, self.home, self.scope, self.start = job, home, scope, start
        self.aliases: dict[str, list[str]] = {dumped: []}
        """Dumped expression: the path below the job that it stands for."""
        self.depth = 0
        self.doubtful: set[str] = set()
        """Names that may stand for such a path, or for something else."""

    def read(self) -> None:
        """Follow the statements behind the job's making, in order."""
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
        name = ast.dump(as_read(target))
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
        found = self.aliases.get(ast.dump(as_read(node)))
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
        key = ".".join(path[1:]) or "ajet"
        if not self._sure(step) or _root(node) in self.doubtful:
            self.job.changes.append(Unknown(key, line, "set under a condition, in a loop or in another method"))
            return
        if value is None:
            self.job.changes.append(Unknown(key, line, "changed in a way that cannot be read off"))
            return
        try:
            self._put(key, value, Place(step.index, step.guard), line)
        except Unknowable as error:
            self.job.changes.append(Unknown(key, line, error.reason))

    def _put(self, key: str, value: ast.expr, place: Place, line: int) -> None:
        """Note a write, that of a dict entry by entry: an unknown entry leaves the others known."""
        found = entries(Evaluator(self.home), value, self.scope, place)
        if not found:
            self.job.changes.append((key, read_value(value, self.scope, place, self.home, line)))
            return
        self.job.changes.append((key, Reading({}, line)))
        for name, (item, _, where) in found.items():
            try:
                self._put(f"{key}.{name}", item, where, item.lineno)
            except Unknowable as error:
                self.job.changes.append(Unknown(f"{key}.{name}", item.lineno, error.reason))

    def _call(self, node: ast.Call, step: Step) -> None:
        self._handed_on(node, step)
        if isinstance(node.func, ast.Name) and node.func.id == "setattr" and len(node.args) == 3:
            path = self._path(node.args[0])
            if path is not None and isinstance(node.args[1], ast.Constant):
                self._write([*path, str(node.args[1].value)], node.args[2], step, node)
            elif path:
                self.job.changes.append(
                    Unknown(".".join(path[1:]) or "ajet", node.lineno, "setattr with a name that is computed")
                )
            return
        if not isinstance(node.func, ast.Attribute):
            return
        path, method = self._path(node.func.value), node.func.attr
        if path is None:
            return
        if path and path[0] == "config" and method in ("update", "append", "extend", "pop", "set", "merge", "clear"):
            key = ".".join(path[1:]) or "ajet"
            self.job.changes.append(Unknown(key, node.lineno, f"changed by .{method}(...)"))
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
                inner = Writes(self.job, self.home, target, start, ast.dump(ast.Name(parameter, ast.Load())))
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


def _root(node: ast.AST) -> str | None:
    """Return the name that an attribute or item is reached from."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def as_read(node: ast.expr) -> ast.expr:
    """Return an expression as it is read, so that a target and its later uses compare equal."""
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Attribute):
        return ast.Attribute(as_read(node.value), node.attr, ast.Load())
    if isinstance(node, ast.Subscript):
        return ast.Subscript(as_read(node.value), node.slice, ast.Load())
    return node
