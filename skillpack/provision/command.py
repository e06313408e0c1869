"""The three command lines of an install skill: preflight, plan and verify, for one recipe each."""

from __future__ import annotations

import os
import shlex
import stat
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import click
from click.core import ParameterSource

from skillpack.files import write_atomically
from skillpack.provision import report
from skillpack.provision.options import EXAMPLES, answer_options, verify_options
from skillpack.provision.recipe import load_recipe, open_questions
from skillpack.script import NO, OUTPUT_LIMIT, RUNNING, UNAVAILABLE, BadInput, Command, emit, json_option

BLOCKED = "something blocks that the plan does not mend"


def preflight_command(recipe: str) -> click.Command:
    """Return the command that looks at a machine and gives verdicts."""

    @click.command(
        "preflight.py",
        cls=Command,
        example=f"python3 scripts/preflight.py {EXAMPLES[recipe]} --json",
        exit_codes={NO: BLOCKED},
    )
    @answer_options(recipe)
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
            _write("--record", record, _dump(found.observation.to_dict()))
        document = report.preflight(found, open_questions(load_recipe(recipe), given, found.answers))
        emit(document, as_json=as_json, text=lambda: report.preflight_text(document))
        ctx.exit(NO if found.verdict == "blocks" else 0)

    return preflight


def plan_command(recipe: str) -> click.Command:
    """Return the command that prints a plan, applies it, and tells how far it is."""
    codes = {
        NO: f"a step failed, or {BLOCKED}",
        UNAVAILABLE: "no plan was begun (--status), nothing was made (--undo-script)",
        RUNNING: "still being applied",
    }

    @click.command(
        "plan.py", cls=Command, example=f"python3 scripts/plan.py {EXAMPLES[recipe]} --apply", exit_codes=codes
    )
    @answer_options(recipe)
    @click.option("--script", "form", flag_value="script", help="Print the plan as a shell script.")
    @click.option(
        "--root-script",
        "form",
        flag_value="root",
        help="Print only the steps that need root, for the user to run with sudo.",
    )
    @click.option(
        "--undo-script",
        "form",
        flag_value="undo",
        help="Print a shell script that takes back what plans made in --workdir, and nothing else.",
    )
    @click.option(
        "--apply", "form", flag_value="apply", help="Run the steps that are not done; goes on at the step that failed."
    )
    @click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write the script to.")
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
        ctx: click.Context,
        workdir: Path,
        form: str | None,
        output: Path | None,
        replay: Path | None,
        as_json: bool,
        **given: Any,
    ) -> None:
        """Print the exact commands for this machine, root's first, or apply them one by one with a log."""
        from skillpack.provision import applying

        workdir = workdir.absolute()
        switches = applying.Switches(*(given.pop(name) for name in applying.Switches._fields))
        if switches.dry_run and form is None:
            form = "apply"
        _together(form, output, switches)
        if form == "status":
            ctx.exit(applying.show_status(workdir, as_json))
        if form == "undo":
            _print_script(applying.way_back(recipe, workdir), output, as_json)
            return
        if form == "apply" and replay:
            raise BadInput(
                "--apply and --replay exclude each other", expected="a plan is applied on the machine itself"
            )
        if form == "apply":
            ctx.exit(applying.apply_plan(recipe, given, workdir, switches, as_json))
        from skillpack.provision.survey import survey

        if replay and ctx.get_parameter_source("workdir") is ParameterSource.DEFAULT:
            click.echo("the folders in this plan are this machine's; give --workdir as it is on the other", err=True)
        found = survey(recipe, given, workdir, _recording(replay), complete=True)
        stops = applying.not_ignored(recipe, found.stops, switches.ignore)
        if form in ("script", "root"):
            from skillpack.provision import script

            applying.warn_of(stops)
            _print_script(script.shell_script(found.plan, root_only=form == "root"), output, as_json)
        else:
            document = report.plan(found)
            emit(document, as_json=as_json, text=lambda: report.plan_text(document))
        ctx.exit(NO if stops else 0)

    return plan


def _together(form: str | None, output: Path | None, switches: Any) -> None:
    """Raise BadInput on options that would have no effect: the user meant something else."""
    if (switches.background or switches.fresh) and form != "apply":
        name = "--background" if switches.background else "--fresh"
        raise BadInput(f"{name} alone does nothing", expected=f"--apply {name}")
    if output and form not in ("script", "root", "undo"):
        raise BadInput("--output is for a script", expected="--script, --root-script or --undo-script with it")


def _print_script(text: str, output: Path | None, as_json: bool) -> None:
    """Print a script, or write it and print one line that runs it: a part of a script must never be run.

    A file that stdout was sent to gets the whole: it may be carried to another machine.
    """
    if output is None and not as_json and _is_file(sys.stdout):
        click.echo(text, nl=False)
        return
    if output is None and len(text) < OUTPUT_LIMIT:
        emit({"script": text}, as_json=as_json, text=text.rstrip("\n"))
        return
    if output is None:
        with tempfile.NamedTemporaryFile(prefix="agentjet-skills-", suffix=".sh", delete=False) as stream:
            output = Path(stream.name)
    _write("--output", output, text)
    output.chmod(0o755)
    short = f"#!/usr/bin/env bash\n# {len(text)} characters, written to the file below: read it there\n"
    emit({"written_to": str(output)}, as_json=as_json, text=f"{short}exec bash {shlex.quote(str(output))}")


def _is_file(stream: IO[str]) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # closed, or a stream that a caller put in its place
        return False


def _write(option: str, path: Path, text: str) -> None:
    """Write a file that an option named. Raises BadInput if it cannot be."""
    try:
        write_atomically(path, text)
    except OSError as error:
        raise BadInput(
            f"{option}: {path} cannot be written: {error.strerror}", hint="a file in another folder"
        ) from None


def verify_command(recipe: str) -> click.Command:
    """Return the command that proves an installation."""

    @click.command(
        "verify.py",
        cls=Command,
        example=f"python3 scripts/verify.py {EXAMPLES[recipe]} --json",
        exit_codes={NO: "something does not work"},
    )
    @answer_options(recipe)
    @verify_options(recipe)
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

        found = survey(recipe, given, workdir, complete=True)
        boot = _job_text(extra["boot_job"]) if extra["boot_job"] else ""
        return proofs.verify_docker(found.answers, found.plan.chosen, boot=boot, patience=extra["patience"])
    answers = answers_of(load_recipe(recipe), given, workdir)
    return proofs.verify_client(answers, end=extra["end"]) if recipe == "client" else proofs.verify_conda(answers)


def _job_text(path: Path) -> str:
    from skillpack.provision.docker_choices import job_model

    job_model(str(path))  # a file that is no job is refused here, with its reason
    return path.read_text(encoding="utf-8")


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
