"""``plan.py --apply`` and ``--status``: what they decide, print and return."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click

from skillpack.provision import apply as engine
from skillpack.provision import report
from skillpack.provision.data import load
from skillpack.provision.ledger import made_in
from skillpack.provision.plan import Plan, Step
from skillpack.provision.recipe import answers_of, load_recipe
from skillpack.provision.script import undo_script
from skillpack.provision.survey import survey
from skillpack.script import NO, RUNNING, YES, BadInput, Unavailable, emit


class Switches(NamedTuple):
    """How to apply: checks only, past which blocking checks, and whether to plan anew."""

    dry_run: bool
    background: bool
    ignore: tuple[str, ...]
    fresh: bool


def show_status(workdir: Path, as_json: bool) -> int:
    """Print how far the plan in a folder is; return the exit code. Raises Unavailable if none was begun."""
    state = engine.status(workdir)
    if state is None:
        raise Unavailable(f"no plan was begun in {workdir}", hint="plan.py --apply, with the same --workdir")
    _show(state, as_json)
    return {"done": YES, "running": RUNNING}.get(state["state"], NO)


def apply_plan(recipe: str, given: dict[str, Any], workdir: Path, switches: Switches, as_json: bool) -> int:
    """Apply the plan begun in a folder, or a new one if nothing blocks it; return the exit code.

    While another process works in the folder nothing is started, and the code is that of --status. Raises
    BadInput on answers that cannot be.
    """
    if not switches.dry_run and engine.at_work(workdir):
        return _busy(workdir, as_json)
    stops: list[dict[str, Any]] = []
    plan = None if switches.fresh else _begun(recipe, given, workdir)
    if plan:
        click.echo(f"going on with the plan begun in {workdir}", err=True)
    else:
        found = survey(recipe, given, workdir, complete=True)
        plan = found.plan
        stops = not_ignored(recipe, found.stops, switches.ignore)
        if switches.dry_run:
            warn_of(stops)
        elif stops:
            document = report.refused(recipe, stops)
            engine.keep(workdir, document)
            emit(document, as_json=as_json, text=lambda: report.refused_text(document))
            return NO
    if switches.dry_run:
        steps = engine.preview(plan)
        document = {"recipe": recipe, "state": "dry run", "steps": steps}
        emit(document, as_json=as_json, text=lambda: report.preview_text(steps))
        return NO if stops else YES
    if switches.background:
        return _start_in_background(recipe, workdir, as_json)
    return _run(plan, workdir, as_json)


def not_ignored(recipe: str, stops: Sequence[dict[str, Any]], ignore: Sequence[str]) -> list[dict[str, Any]]:
    """Return what blocks and was not to be ignored. Raises BadInput on a check that does not exist."""
    checks = [check["id"] for check in load("checks") if recipe in check.get("for", [recipe])]
    if unknown := [name for name in ignore if name not in checks]:
        raise BadInput(f"--ignore {unknown[0]}: there is no such check", expected=", ".join(checks))
    return [stop for stop in stops if stop["id"] not in ignore]


def way_back(recipe: str, workdir: Path) -> str:
    """Return the script that takes back what plans made in a folder.

    Raises Unavailable if they made nothing, BadInput while one is being applied.
    """
    if engine.at_work(workdir):
        raise BadInput(f"a plan is being applied in {workdir}", hint="plan.py --status until it has ended")
    made = made_in(workdir)
    if not made:
        raise Unavailable(
            f"no plan has made anything in {workdir}: there is nothing to take back",
            hint="the --workdir that the plan was applied with",
        )
    return undo_script(load_recipe(recipe)["title"], workdir, made)


def warn_of(stops: Sequence[Mapping[str, Any]]) -> None:
    """Say on stderr what blocks, where stdout holds a script or the steps alone."""
    for stop in stops:
        click.echo(f"BLOCKS {stop['id']}: {stop['reason']}; {stop['mend']}", err=True)


def _busy(workdir: Path, as_json: bool) -> int:
    click.echo(f"a plan, or a step of one, is still at work in {workdir}; nothing was started", err=True)
    state = engine.status(workdir)
    if state is not None:
        _show(state, as_json)
    return RUNNING


def _run(plan: Plan, workdir: Path, as_json: bool) -> int:
    for step in plan.steps:
        if step.root:
            click.echo(f"needs root: {step.title}", err=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        state = engine.apply(plan, _say)
    except engine.Busy:
        return _busy(workdir, as_json)
    _show(state, as_json)
    return YES if state["state"] == "done" else NO


def _stop(number: int, frame: object) -> NoReturn:
    """End in order: the step is ended too, and the state says interrupted."""
    sys.exit(128 + number)


def _say(event: str, step: Step) -> None:
    if event != "ran":
        click.echo(f"{event:8} {step.title}", err=True)


def _show(state: dict[str, Any], as_json: bool) -> None:
    document = report.progress(state)
    emit(document, as_json=as_json, text=lambda: report.progress_text(document))


def _begun(recipe: str, given: dict[str, Any], workdir: Path) -> Plan | None:
    """Return the unfinished plan in a folder if it answers the same questions."""
    saved = engine.saved_plan(workdir)
    answers = answers_of(load_recipe(recipe), given, workdir)
    return saved if saved is not None and saved.recipe == recipe and saved.answers == answers else None


def _start_in_background(recipe: str, workdir: Path, as_json: bool) -> int:
    """Start this same command once more, without --background and without a terminal, and return."""
    engine.enter(workdir)
    log = workdir / engine.LOG
    argv = [sys.executable, *(argument for argument in sys.argv if argument != "--background")]
    with log.open("ab") as stream:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True)
    told: dict[str, Any] = {"recipe": recipe, "state": "running", "steps": {}, "log": str(log), "failed": None}
    state = told | engine.whose(child.pid)
    engine.keep(workdir, state)
    document = {
        **report.progress(state),
        "state": "started",
        "pid": child.pid,
        "ask": f"plan.py --status --workdir {shlex.quote(str(workdir))}",
    }
    emit(document, as_json=as_json, text=f"started (pid {child.pid}), log {log}; ask: {document['ask']}")
    return YES
