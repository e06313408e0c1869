"""The verbs of ``run.py`` that come after a run: collect, finish, plateau."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from skillpack.script import NO, YES, BadInput, Command, emit, json_option


@click.command("collect", cls=Command, example="scripts/run.py collect DIR --json")
@click.argument("directory", type=click.Path(path_type=Path))
@json_option
def collect_command(directory: Path, as_json: bool) -> None:
    """Write report.md, report.json, metrics.csv and curves.png from the run's files."""
    from skillpack.runs.collect import collect
    from skillpack.runs.rundir import RunDir

    run = RunDir.existing(directory)
    report = collect(run)
    names = [name for name in ("report.md", "report.json", "metrics.csv", "curves.png") if (run.path / name).exists()]
    keys = ("id", "dir", "state", "verdict", "attempt", "steps", "seconds", "validation", "notes")
    document = {**{key: report[key] for key in keys}, "written": [str(run.path / name) for name in names]}
    document["causes"] = [cause["id"] for cause in report["causes"]]
    steps = report["steps"]
    emit(
        document,
        as_json=as_json,
        text="\n".join(
            [f"{report['state']}: {steps['count']} steps; written:", *(f"  {name}" for name in document["written"])]
        ),
    )


@click.command(
    "finish",
    cls=Command,
    example="scripts/run.py finish DIR",
    exit_codes={YES: "finish.flag is written", NO: "refused: it runs, has no report, or did not end well"},
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--failed", is_flag=True, help="Close a run that did not end well, or that has no report.")
@json_option
def finish_command(directory: Path, failed: bool, as_json: bool) -> None:
    """Write finish.flag, the last file of a run, and close its window."""
    from skillpack.files import write_atomically
    from skillpack.runs.collect import report_is_current
    from skillpack.runs.rundir import RunDir
    from skillpack.runs.status import observe
    from skillpack.runs.stop import close_window

    run = RunDir.existing(directory)
    status = observe(run)
    current = report_is_current(run, status)
    refusal = ""
    if status.alive:
        refusal = f"the run is {status.state}; scripts/run.py stop {run.quoted} ends it"
    elif not failed and not current:
        refusal = f"there is no report of this attempt; first scripts/run.py collect {run.quoted}"
    elif not failed and status.state != "finished":
        refusal = f"the run is {status.state}; finish --failed closes it, attempt tries again"
    if not refusal:
        flag = {
            "id": status.record["id"],
            "state": status.state,
            "attempt": status.record["attempt"],
            "report": "report.md" if current else None,
            "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        close_window(status)
        write_atomically(run.finish_flag, json.dumps(flag) + "\n")
    document = {"dir": str(run.path), "finished": not refusal, "state": status.state, "refused": refusal or None}
    emit(document, as_json=as_json, text=refusal or f"{run.finish_flag} is written; the run is {status.state}")
    sys.exit(NO if refusal else YES)


@click.command(
    "plateau",
    cls=Command,
    example="scripts/run.py plateau DIR --window 50",
    exit_codes={YES: "yes, it is flat", NO: "no: it rises or falls, or there are too few points (see verdict)"},
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--key", help="The metric (default: the mean reward, or the pass rate).")
@click.option("--window", default=40, show_default=True, type=click.IntRange(min=8), help="So many last points.")
@click.option("--alpha", default=0.05, show_default=True, help="Level of the test.")
@click.option("--least-change", default=0.02, show_default=True, help="Part of the scale that counts as a change.")
@json_option
def plateau_command(
    directory: Path, key: str | None, window: int, alpha: float, least_change: float, as_json: bool
) -> None:
    """Tell whether the mean reward or pass rate has stopped moving, and by which test."""
    from skillpack.metrics.console import merge_steps, read_steps
    from skillpack.runs.metrics import read_metrics
    from skillpack.runs.plateau import KEYS, trend
    from skillpack.runs.rundir import RunDir

    path = directory.expanduser()
    if path.is_file() and path.name != "run.json":
        table = merge_steps(read_steps(path))[0]
    else:
        run = RunDir.existing(directory)
        table = read_metrics(run, run.read())
    known = sorted({name for values in table.values() for name in values})
    chosen = key or next((name for name in KEYS if name in known), None)
    if chosen is None or (known and chosen not in known):
        raise BadInput(
            f"no metric {key or 'that says how good it is'} in the logs",
            expected=f"one of {', '.join(known[:20])}" if known else "a log with training steps",
            hint="--key KEY",
        )
    points = [(step, table[step][chosen]) for step in sorted(table) if chosen in table[step]]
    found = trend(chosen, points, window=window, alpha=alpha, least_change=least_change)
    emit(found.as_json(), as_json=as_json, text=f"{found.verdict}: {chosen} over {found.points} points: {found.why}")
    sys.exit(YES if found.verdict == "flat" else NO)
