"""The three command lines of an install skill: preflight, plan and verify, for one recipe each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from skillpack.provision import report
from skillpack.provision.recipe import flag, load_recipe, open_questions, require
from skillpack.script import NO, RUNNING, UNAVAILABLE, BadInput, Command, Unavailable, emit, json_option

BLOCKED = "something blocks that the plan does not mend"


def preflight_command(recipe: str) -> click.Command:
    """Return the command that looks at a machine and gives verdicts."""

    @click.command(
        "preflight.py",
        cls=Command,
        example=f"python3 scripts/preflight.py {_example(recipe)} --json",
        exit_codes={NO: BLOCKED},
    )
    @_answers(recipe)
    @click.option(
        "--record",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Also write what was seen to a file, to plan elsewhere.",
    )
    @click.option(
        "--replay",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Judge a recorded machine instead of this one.",
    )
    @json_option
    @click.pass_context
    def preflight(
        ctx: click.Context, workdir: Path, record: Path | None, replay: Path | None, as_json: bool, **given: Any
    ) -> None:
        """Look at this machine and say what is ok, what to mind and what blocks, each with its mend."""
        from skillpack.provision.survey import survey

        found = survey(recipe, given, workdir.absolute(), _recording(replay))
        if record:
            from skillpack.files import write_atomically

            write_atomically(record, _dump(found.observation.to_dict()))
        document = report.preflight(found, open_questions(load_recipe(recipe), given))
        emit(document, as_json=as_json, text=lambda: report.preflight_text(document))
        ctx.exit(NO if found.verdict == "blocks" else 0)

    return preflight


def plan_command(recipe: str) -> click.Command:
    """Return the command that prints a plan, applies it, and tells how far it is."""
    codes = {
        NO: f"a step failed, or {BLOCKED}",
        UNAVAILABLE: "no plan was begun (--status)",
        RUNNING: "still being applied",
    }

    @click.command(
        "plan.py", cls=Command, example=f"python3 scripts/plan.py {_example(recipe)} --apply", exit_codes=codes
    )
    @_answers(recipe)
    @click.option("--script", "form", flag_value="script", help="Print the plan as a shell script.")
    @click.option(
        "--root-script",
        "form",
        flag_value="root",
        help="Print only the steps that need root, for the user to run with sudo.",
    )
    @click.option("--undo-script", "form", flag_value="undo", help="Print a shell script that takes the steps back.")
    @click.option(
        "--apply", "form", flag_value="apply", help="Run the steps that are not done; goes on at the step that failed."
    )
    @click.option("--status", "form", flag_value="status", help="Say how far the plan in --workdir is.")
    @click.option("--dry-run", is_flag=True, help="With --apply: run the checks only and say what would be done.")
    @click.option("--background", is_flag=True, help="With --apply: return at once; ask with --status.")
    @click.option("--ignore", multiple=True, metavar="CHECK", help="Apply although this check blocks; repeatable.")
    @click.option(
        "--fresh", is_flag=True, help="With --apply: plan anew instead of going on with the plan begun in --workdir."
    )
    @click.option(
        "--replay",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Plan for a recorded machine (nothing is applied).",
    )
    @json_option
    @click.pass_context
    def plan(
        ctx: click.Context, workdir: Path, form: str | None, replay: Path | None, as_json: bool, **given: Any
    ) -> None:
        """Print the exact commands for this machine, root's first, or apply them one by one with a log."""
        workdir = workdir.absolute()
        switches = {name: given.pop(name) for name in ("dry_run", "background", "ignore", "fresh")}
        if form == "status":
            ctx.exit(_show_status(workdir, as_json))
        if form == "apply" and replay:
            raise BadInput(
                "--apply and --replay exclude each other", expected="a plan is applied on the machine itself"
            )
        if form == "apply" and switches["background"] and not switches["dry_run"]:
            ctx.exit(_apply_in_background(recipe, given, workdir, switches, as_json))
        if form == "apply":
            ctx.exit(_apply(recipe, given, workdir, switches, as_json))
        from skillpack.provision.survey import survey

        found = survey(recipe, given, workdir, _recording(replay))
        require(load_recipe(recipe), found.answers)
        if form in ("script", "root", "undo"):
            from skillpack.provision import script

            text = (
                script.undo_script(found.plan)
                if form == "undo"
                else script.shell_script(found.plan, root_only=form == "root")
            )
            emit({"script": text}, as_json=as_json, text=text.rstrip("\n"))
            return
        document = report.plan(found)
        emit(document, as_json=as_json, text=lambda: report.plan_text(document))

    return plan


def verify_command(recipe: str) -> click.Command:
    """Return the command that proves an installation."""

    @click.command(
        "verify.py",
        cls=Command,
        example=f"python3 scripts/verify.py {_example(recipe)} --json",
        exit_codes={NO: "something does not work"},
    )
    @_answers(recipe)
    @_verify_options(recipe)
    @json_option
    @click.pass_context
    def verify(ctx: click.Context, workdir: Path, as_json: bool, **given: Any) -> None:
        """Try what was installed and say how it is known to work."""
        extra: dict[str, Any] = {name: given.pop(name) for name in ("end", "boot_job", "patience") if name in given}
        document = report.proofs(recipe, _prove(recipe, given, workdir.absolute(), extra))
        emit(document, as_json=as_json, text=lambda: report.proofs_text(document))
        ctx.exit(0 if document["works"] else NO)

    return verify


def _prove(recipe: str, given: dict[str, Any], workdir: Path, extra: dict[str, Any]) -> list[Any]:
    from skillpack.provision import verify as proofs
    from skillpack.provision.recipe import answers_of

    if recipe == "docker":
        from skillpack.provision.survey import survey

        found = survey(recipe, given, workdir)
        require(load_recipe(recipe), found.answers)
        boot = _job_text(extra["boot_job"]) if extra["boot_job"] else ""
        return proofs.verify_docker(found.answers, found.plan.chosen, boot=boot, patience=extra["patience"])
    answers = answers_of(load_recipe(recipe), given, workdir)
    return proofs.verify_client(answers, end=extra["end"]) if recipe == "client" else proofs.verify_conda(answers)


def _job_text(path: Path) -> str:
    from skillpack.provision.choices import job_model

    job_model(str(path))  # a file that is no job is refused here, with its reason
    return path.read_text(encoding="utf-8")


def _verify_options(recipe: str) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        if recipe == "client":
            return click.option(
                "--end",
                is_flag=True,
                help="End the episode with reward 0 instead of aborting it (it then counts in a training).",
            )(function)
        if recipe == "docker":
            function = click.option(
                "--patience",
                type=click.FloatRange(min=1),
                default=120,
                show_default=True,
                help="Seconds to wait for BOOTING.",
            )(function)
            return click.option(
                "--boot-job",
                type=click.Path(dir_okay=False, path_type=Path),
                help="Job YAML to sync to an OFFLINE server until it is BOOTING; it is stopped again.",
            )(function)
        return function

    return decorate


def _answers(recipe: str) -> Callable[[Any], Any]:
    """Give a command an option for each question of a recipe."""

    def decorate(function: Any) -> Any:
        for question in reversed(load_recipe(recipe)["questions"]):
            function = click.option(flag(question["name"]), question["name"], **_option(question))(function)
        return click.option(
            "--workdir",
            type=click.Path(file_okay=False, path_type=Path),
            default=f"agentjet-{recipe}",
            show_default=True,
            help="Folder for the plan, its log and what it writes.",
        )(function)

    return decorate


def _option(question: dict[str, Any]) -> dict[str, Any]:
    kind, default = question["kind"], question.get("default")
    shown = f"  [default: {default}]" if default not in ("", None, [], False) and "{" not in str(default) else ""
    options: dict[str, Any] = {"help": question["help"] + shown}
    if kind == "flag":
        return {**options, "is_flag": True, "default": None}
    if kind == "list":
        return {**options, "multiple": True}
    types = {"int": click.INT, "choice": click.Choice([str(choice) for choice in question.get("choices", ())])}
    return {**options, "type": types.get(kind, click.STRING), "default": None}


def _example(recipe: str) -> str:
    return {
        "client": "--source ~/AgentJet --server http://127.0.0.1:10086",
        "conda": "--source ~/AgentJet --model-path /data/Qwen2.5-7B-Instruct",
        "docker": "--model-path /data/Qwen2.5-7B-Instruct --gpus all",
    }[recipe]


def _dump(data: Any) -> str:
    import yaml

    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))


def _recording(path: Path | None) -> Any:
    if path is None:
        return None
    import yaml

    from skillpack.provision.observe import Observation

    try:
        return Observation.from_dict(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise BadInput(f"--replay: {error}") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise BadInput(
            f"--replay: {path} is no recording: {error}", hint="make one with preflight.py --record FILE"
        ) from None


def _show_status(workdir: Path, as_json: bool) -> int:
    from skillpack.provision.apply import status

    state = status(workdir)
    if state is None:
        raise Unavailable(f"no plan was begun in {workdir}", hint="plan.py --apply, with the same --workdir")
    emit(report.progress(state), as_json=as_json, text=lambda: report.progress_text(report.progress(state)))
    return {"done": 0, "running": RUNNING}.get(state["state"], NO)


def _apply(recipe: str, given: dict[str, Any], workdir: Path, switches: dict[str, Any], as_json: bool) -> int:
    from skillpack.provision import apply as engine

    plan = _begun(recipe, given, workdir) if not switches["fresh"] else None
    if plan is None:
        from skillpack.provision.survey import survey

        found = survey(recipe, given, workdir)
        require(load_recipe(recipe), found.answers)
        stops = [
            v
            for v in found.verdicts
            if v["verdict"] == "blocks" and not v["mended_by"] and v["id"] not in switches["ignore"]
        ]
        if stops and not switches["dry_run"]:
            document = report.refused(found, stops)
            emit(document, as_json=as_json, text=lambda: report.refused_text(document))
            return NO
        plan = found.plan
    else:
        click.echo(f"going on with the plan begun in {workdir}", err=True)
    if switches["dry_run"]:
        steps = engine.preview(plan)
        emit(
            {"recipe": recipe, "state": "dry run", "steps": steps},
            as_json=as_json,
            text=lambda: report.preview_text(steps),
        )
        return 0
    for step in plan.steps:
        if step.root:
            click.echo(f"needs root: {step.title}", err=True)
    try:
        state = engine.apply(
            plan, lambda event, step: click.echo(f"{event:8} {step.title}", err=True) if event != "ran" else None
        )
    except engine.Busy:
        raise BadInput(f"a plan is being applied in {workdir} already", hint="plan.py --status") from None
    emit(report.progress(state), as_json=as_json, text=lambda: report.progress_text(report.progress(state)))
    return 0 if state["state"] == "done" else NO


def _begun(recipe: str, given: dict[str, Any], workdir: Path) -> Any:
    """Return the unfinished plan in a folder if it answers the same questions."""
    from skillpack.provision import apply as engine
    from skillpack.provision.recipe import answers_of

    saved = engine.saved_plan(workdir)
    answers = answers_of(load_recipe(recipe), given, workdir)
    return saved if saved is not None and saved.recipe == recipe and saved.answers == answers else None


def _apply_in_background(
    recipe: str, given: dict[str, Any], workdir: Path, switches: dict[str, Any], as_json: bool
) -> int:
    """Start this same command once more, without --background and without a terminal, and return."""
    import subprocess

    from skillpack.provision.apply import LOG

    workdir.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, *(argument for argument in [sys.argv[0], *sys.argv[1:]] if argument != "--background")]
    with (workdir / LOG).open("ab") as log:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    document = {
        "recipe": recipe,
        "state": "started",
        "pid": child.pid,
        "log": str(workdir / LOG),
        "ask": f"plan.py --status --workdir {workdir}",
    }
    emit(document, as_json=as_json, text=f"started (pid {child.pid}), log {workdir / LOG}; ask: {document['ask']}")
    return 0
