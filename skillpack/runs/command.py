"""The command line of ``run.py``: start a run, watch it, end it, collect it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from skillpack.runs.report_command import collect_command, finish_command, plateau_command
from skillpack.script import NO, RUNNING, UNAVAILABLE, YES, BadInput, Group, emit, json_option

if TYPE_CHECKING:
    from skillpack.blueprint.model import Blueprint
    from skillpack.runs.start import Options
    from skillpack.runs.status import Status

ENDS = {YES: "the run finished well", NO: "the run ended otherwise (see state in --json)", RUNNING: "the run goes on"}


@click.group("run", cls=Group, epilog="scripts/run.py start blueprint.md")
def run_group() -> None:
    """Take an AgentJet experiment from its blueprint to finish.flag, whatever happens to the shell or to tmux."""


def duration(_: Any, parameter: Any, value: str | None) -> float | None:
    """Read a duration on the command line; a bare number is seconds. Raises BadInput."""
    from skillpack.blueprint.durations import BadDuration, parse_duration

    if value is None:
        return None
    if value in ("0", "0s"):
        return 0.0
    try:
        return parse_duration(f"{value}s" if value.replace(".", "", 1).isdigit() else value)
    except BadDuration as error:
        raise BadInput(f"{parameter.opts[0]}: {error}", expected="a duration such as 30s, 5min or 24h") from None


def start_options(function: Any) -> Any:
    """Add the options that ``start`` and ``attempt`` share."""
    options = [
        click.option("--tmux/--no-tmux", default=None, help="Open a tmux window (default: if there is a tmux)."),
        click.option("--tmux-socket", metavar="NAME", envvar="AJET_TMUX_SOCKET", help="tmux -L NAME."),
        click.option(
            "--host", metavar="[USER@]HOST", help="Run the commands there by ssh; record and window stay here."
        ),
        click.option(
            "--on", "on", metavar="ADDRESS", help="Run as Ray jobs: http://HOST:8265, ray://HOST:10001 or auto."
        ),
        click.option("--job-cpus", default=1.0, show_default=True, help="CPUs that a Ray job reserves for its driver."),
        click.option("--job-gpus", default=0.0, show_default=True, help="GPUs that a Ray job reserves for its driver."),
        click.option("--gpus", metavar="0,1", help="Set CUDA_VISIBLE_DEVICES, and lease these GPUs for the run."),
        click.option(
            "--server-url", metavar="URL", help="Where the swarm server answers, if the blueprint does not say."
        ),
        click.option("--observe", callback=duration, default="2s", help="How long to look for a failure at once."),
        click.option("--kill-after", callback=duration, default="30s", help="Patience between TERM and KILL."),
        click.option("--server-timeout", callback=duration, default="10min", help="Patience for the swarm server."),
        click.option("--first-step-timeout", callback=duration, default="20min", help="Patience for the first step."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def options_from(kwargs: dict[str, Any]) -> Options:
    """Return how to start a run, from the values of ``start_options``. Raises BadInput."""
    from skillpack.runs.backends import Backend
    from skillpack.runs.gpus import read_gpus
    from skillpack.runs.start import Options

    host, on = kwargs["host"], kwargs["on"]
    if host and on:
        raise BadInput("--host and --on exclude each other", expected="one place to run in")
    backend = Backend("ssh", host) if host else Backend()
    if on:
        backend = Backend("ray", on, kwargs["job_cpus"], kwargs["job_gpus"])
    return Options(
        tmux=kwargs["tmux"],
        socket=kwargs["tmux_socket"],
        backend=backend,
        gpus=None if kwargs["gpus"] is None else read_gpus(kwargs["gpus"]),
        server_url=kwargs["server_url"],
        observe_for=kwargs["observe"],
        kill_after=kwargs["kill_after"],
        server_timeout=kwargs["server_timeout"],
        first_step_timeout=kwargs["first_step_timeout"],
    )


@run_group.command(
    "start",
    example="scripts/run.py start blueprint.md --json",
    exit_codes={YES: "started", NO: "refused, or ended at once", UNAVAILABLE: "tmux or the host is missing"},
)
@click.argument("blueprint", type=click.Path(path_type=Path))
@start_options
@click.option("--max-time", callback=duration, help="Instead of the blueprint's exp_max_time.")
@json_option
def start(blueprint: Path, max_time: float | None, as_json: bool, **kwargs: Any) -> None:
    """Start the run of a blueprint; refuses one that lives or has ended."""
    from dataclasses import replace

    from skillpack.blueprint.model import read_blueprint
    from skillpack.runs.start import start_run

    plan = read_blueprint(blueprint)
    if max_time is not None:
        plan = replace(plan, max_time=max_time)
    _show_started(plan, start_run(plan, options_from(kwargs)), as_json)


@run_group.command(
    "attempt",
    example='scripts/run.py attempt DIR --tried "gpu_memory_utilization 0.85 -> 0.75" --why "OOM in wake_up"',
    exit_codes={YES: "noted, and started again", NO: "refused, or ended at once", UNAVAILABLE: "tmux is missing"},
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--tried", required=True, help="What is changed for the next attempt.")
@click.option("--why", default="", help="Why.")
@click.option("--blueprint", type=click.Path(path_type=Path), help="A changed blueprint (default: the run's own copy).")
@click.option("--note-only", is_flag=True, help="Write it down, start nothing.")
@click.option("--force", is_flag=True, help="Also if the run is finished; its report is put aside.")
@start_options
@json_option
def attempt(
    directory: Path,
    tried: str,
    why: str,
    blueprint: Path | None,
    note_only: bool,
    force: bool,
    as_json: bool,
    **kwargs: Any,
) -> None:
    """Record what is tried and why, put the last attempt's files aside, start again."""
    from dataclasses import replace
    from functools import partial

    from skillpack.blueprint.model import read_blueprint
    from skillpack.runs.attempts import note_attempt
    from skillpack.runs.diagnose import diagnose
    from skillpack.runs.preconditions import Refused
    from skillpack.runs.progress import Progress
    from skillpack.runs.rundir import RunDir
    from skillpack.runs.start import restart_run
    from skillpack.runs.status import observe

    run = RunDir.existing(directory)
    status = observe(run)
    if status.alive and not note_only:
        raise Refused(f"{run.path} is {status.state}", hint=f"scripts/run.py stop {run.quoted} first, or --note-only")
    source = Path(status.record["source"])
    plan = read_blueprint(blueprint or (source if source.is_file() else run.blueprint))
    plan = replace(plan, result_dir=run.path)
    progress = Progress.of(run, status.record)
    progress.refresh(whole=not status.alive)
    note = partial(note_attempt, run, status, diagnose(run, status, progress).causes, tried, why)
    if note_only:
        note()
        emit({"dir": str(run.path), "noted": True}, as_json=as_json, text=f"noted in {run.attempts}")
        return
    options = _as_before(options_from(kwargs), status.record)
    _show_started(plan, restart_run(run, plan, options, note=note, again=force), as_json)


def _as_before(asked: Options, record: dict[str, Any]) -> Options:
    """Return the options of the last attempt, changed by the flags that were given now."""
    from dataclasses import replace

    from skillpack.runs.start import options_of

    source = click.get_current_context().get_parameter_source
    fields = {"tmux": "tmux", "tmux_socket": "socket", "host": "backend", "on": "backend", "observe": "observe_for"}
    fields |= {name: name for name in ("gpus", "server_url", "kill_after", "server_timeout", "first_step_timeout")}
    given = {field for name, field in fields.items() if source(name) is not ParameterSource.DEFAULT}
    return replace(options_of(record), **{field: getattr(asked, field) for field in given})


def _show_started(plan: Blueprint, status: Status, as_json: bool) -> None:
    from skillpack.runs.diagnose import diagnose
    from skillpack.runs.present import watched_json, watched_text
    from skillpack.runs.progress import Progress
    from skillpack.runs.rundir import RunDir
    from skillpack.runs.watch import Watched

    assert plan.result_dir is not None
    run = RunDir(plan.result_dir)
    progress = Progress.of(run, status.record)
    progress.refresh(whole=not status.alive)
    watched = Watched(status, diagnose(run, status, progress), progress)
    document = watched_json(run, watched)
    text = watched_text(document)
    if document["attach"] and status.alive:
        text += f"\nwindow: {document['attach']}"
    emit(document, as_json=as_json, text=text)
    sys.exit(YES if status.alive or status.state == "finished" else NO)


@run_group.command("watch", example="scripts/run.py watch DIR --for 2min --json", exit_codes=ENDS)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--for", "seconds", callback=duration, default="30s", help="How long to look at most.")
@click.option(
    "--steps", default=1, show_default=True, type=click.IntRange(min=0), help="Return after so many new steps (0: no)."
)
@click.option("--silence-after", callback=duration, help="Silence that counts as a hang (default: 3 median steps).")
@json_option
def watch_command(directory: Path, seconds: float, steps: int, silence_after: float | None, as_json: bool) -> None:
    """Wait until something worth reading happens; say what, and how long to wait next."""
    from skillpack.runs.present import exit_code_of, watched_json, watched_text
    from skillpack.runs.rundir import RunDir
    from skillpack.runs.watch import Interest, watch

    run = RunDir.existing(directory)
    watched = watch(run, seconds, Interest(steps, silence_after))
    document = watched_json(run, watched)
    emit(document, as_json=as_json, text=lambda: watched_text(document))
    sys.exit(exit_code_of(watched.status))


@run_group.command("status", example="scripts/run.py status DIR", exit_codes=ENDS)
@click.argument("directory", type=click.Path(path_type=Path))
@json_option
def status_command(directory: Path, as_json: bool) -> None:
    """Tell a run's state in one line, or that of all runs below a folder."""
    from skillpack.runs.present import exit_code_of, status_json, status_line
    from skillpack.runs.progress import Progress
    from skillpack.runs.rundir import RunDir, runs_below
    from skillpack.runs.status import observe

    folder = directory.expanduser().absolute()
    runs = [RunDir(folder)] if (folder / "run.json").is_file() else runs_below(folder) if folder.is_dir() else []
    if not runs:
        RunDir.existing(folder)
    seen: list[tuple[int, dict[str, Any]]] = []
    for run in runs:
        try:
            status = observe(run)
        except BadInput as error:
            if run is runs[-1] and not seen:
                raise
            click.echo(f"passed over: {error.message}", err=True)
            continue
        progress = Progress.of(run, status.record)
        if progress.refresh(whole=not status.alive):
            progress.keep()
        seen.append((exit_code_of(status), status_json(run, status, progress)))
    documents = [document for _, document in seen]
    single = len(runs) == 1 and runs[0].path == folder
    emit(
        documents[0] if single else {"runs": documents},
        as_json=as_json,
        text="\n".join(status_line(document) for document in documents),
    )
    sys.exit(max((code for code, _ in seen), default=YES))


@run_group.command("stop", example='scripts/run.py stop DIR --reason "reward is flat"')
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--reason", default="", help="Goes into the record.")
@click.option("--keep-window", is_flag=True, help="Leave the tmux session open.")
@json_option
def stop_command(directory: Path, reason: str, keep_window: bool, as_json: bool) -> None:
    """End a run and every process of it (TERM, then KILL), and nothing else."""
    from skillpack.runs.rundir import RunDir
    from skillpack.runs.stop import close_window, stop_run

    run = RunDir.existing(directory)
    status = stop_run(run, reason)
    if not keep_window:
        close_window(status)
    document = {
        "dir": str(run.path),
        "state": status.state,
        "reason": status.reason,
        "survivors": status.record.get("survivors", []),
    }
    left = f"; these outlived KILL: {document['survivors']}" if document["survivors"] else ""
    emit(document, as_json=as_json, text=f"{status.state}: {status.reason}{left}")
    sys.exit(YES if not status.alive and not document["survivors"] else NO)


@run_group.command("resume", example="scripts/run.py resume DIR", exit_codes=ENDS)
@click.argument("directory", type=click.Path(path_type=Path))
@json_option
def resume_command(directory: Path, as_json: bool) -> None:
    """Say what is left of a run after a reboot or a lost session, and what to do; open its window again."""
    from skillpack.runs.present import exit_code_of
    from skillpack.runs.resume import resume
    from skillpack.runs.rundir import RunDir

    status, document = resume(RunDir.existing(directory))
    emit(document, as_json=as_json, text=lambda: "\n".join([document["summary"], *document["todo"]]))
    sys.exit(exit_code_of(status))


run_group.add_command(collect_command)
run_group.add_command(finish_command)
run_group.add_command(plateau_command)
