"""Check a blueprint against the machine before anything is started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from skillpack.blueprint.model import Blueprint

OK, WARN, FAIL = "ok", "warn", "fail"


@dataclass(frozen=True)
class Check:
    """One thing looked at: ``verdict`` is ok, warn or fail; ``mend`` says what to do about it."""

    id: str
    verdict: str
    message: str
    mend: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the check as JSON data."""
        return asdict(self)


def lint_blueprint(blueprint: Blueprint, host: str | None = None) -> list[Check]:
    """Return all checks of a blueprint in the order of a start: fields, code, configuration, command, machine.

    With ``host`` (what ssh takes) the run's files are looked for over there, by one ssh call; what
    needs a closer look is not checked then.
    """
    from skillpack.blueprint import lint_command, lint_files, lint_machine, lint_remote, lint_server

    if host:
        far = (_fields, lint_command.detached, lint_command.killers, lint_files.result, lint_machine.window)
        return [*(check for step in far for check in step(blueprint)), *lint_remote.over_there(blueprint, host)]
    steps: tuple[Callable[[Blueprint], Iterator[Check]], ...] = (
        _fields,
        lint_files.codebase,
        lint_files.interpreter,
        lint_files.configuration,
        lint_command.launch,
        lint_command.killers,
        lint_files.result,
        lint_server.server,
        lint_server.clients,
        lint_machine.gpus,
        lint_machine.disk,
        lint_machine.tracker,
        lint_machine.window,
    )
    return [check for step in steps for check in step(blueprint)]


def _fields(blueprint: Blueprint) -> Iterator[Check]:
    """Fields that are missing or cannot be read. A swarm run can do without some of them."""
    spared = ("exp_yaml_path is missing",) if blueprint.mode == "swarm" else ()
    for problem in blueprint.problems:
        name = problem.split()[0].rstrip(":")
        verdict = WARN if problem in spared or problem == "exp_max_time is missing" else FAIL
        yield Check("fields", verdict, problem, f"add a section {name} (scripts/blueprint.py new --help shows all)")
    if not blueprint.problems:
        yield Check("fields", OK, f"all fields are there; mode {blueprint.mode}")
    if blueprint.max_time is None and not any("exp_max_time" in problem for problem in blueprint.problems):
        yield Check(
            "max-time", WARN, "exp_max_time sets no limit", "a run without a limit holds its GPUs until somebody looks"
        )
