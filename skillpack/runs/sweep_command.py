"""The command line of ``sweep.py``: many blueprints over slots of GPUs, or over a Ray cluster."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import click

from skillpack.runs.command import duration, options_from, start_options
from skillpack.script import NO, RUNNING, YES, BadInput, Group, emit, json_option

ENDS = {
    YES: "all runs finished well",
    NO: "some ended otherwise, and nothing is left to do",
    RUNNING: "something is left",
}


@click.group("sweep", cls=Group, epilog='scripts/sweep.py run FOLDER --slots "0,1;2,3" --for 10min')
def sweep_group() -> None:
    """Run many blueprints over a queue of slots or a Ray cluster; never two on the same GPUs."""


@sweep_group.command("run", example='scripts/sweep.py run FOLDER --slots "0,1;2,3" --for 10min', exit_codes=ENDS)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--slots", help='GPUs of each slot: "0,1;2,3" is two slots of two.')
@click.option("--jobs", type=click.IntRange(min=1), help="So many runs at a time, without GPUs of their own.")
@click.option(
    "--for", "seconds", callback=duration, default="30s", help="How long to work at most; call again while 4."
)
@click.option(
    "--retries", default=1, show_default=True, type=click.IntRange(min=0), help="Per run, if it failed or was lost."
)
@start_options
@json_option
def run_sweep(
    paths: tuple[Path, ...],
    slots: str | None,
    jobs: int | None,
    seconds: float,
    retries: int,
    as_json: bool,
    **kwargs: Any,
) -> None:
    """Start what fits, wait, start the next; goes on where an earlier call stood."""
    from dataclasses import replace

    from skillpack.runs.sweep import Slots, entries_of, sweep

    if slots and jobs:
        raise BadInput("--slots and --jobs exclude each other", expected="GPUs per slot, or a number of runs")
    entries = entries_of(paths)
    options = replace(options_from(kwargs), observe_for=0.0)
    first = paths[0].expanduser().absolute()
    lock = (first if first.is_dir() else first.parent) / ".sweep.lock"
    left = sweep(entries, Slots.read(slots, jobs), options, seconds=seconds, retries=retries, lock=lock)
    _show(entries, left, as_json)


@sweep_group.command("status", example="scripts/sweep.py status FOLDER", exit_codes=ENDS)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@json_option
def sweep_status(paths: tuple[Path, ...], as_json: bool) -> None:
    """Show the table of all runs; starts nothing."""
    from skillpack.runs.sweep import entries_of

    entries = entries_of(paths)
    _show(entries, any(entry.state in ("waiting", "starting", "running") for entry in entries), as_json)


def _show(entries: Any, left: bool, as_json: bool) -> None:
    from skillpack.blueprint.durations import format_duration
    from skillpack.runs.sweep import table

    rows = table(entries)
    counts = dict(Counter(row["state"] for row in rows))
    lines = [" · ".join(f"{count} {state}" for state, count in counts.items())]
    for row in rows:
        parts = [f"{row['state']:<9}", Path(row["blueprint"]).name]
        parts += [f"attempt {row['attempt']}"] if row["attempt"] > 1 else []
        parts += [f"GPU {row['gpus']}"] if row["gpus"] else []
        parts += [f"step {row['step']}"] if row["step"] is not None else []
        parts += [f"reward {row['reward']:.4g}"] if row["reward"] is not None else []
        parts += [format_duration(row["seconds"])] if row["seconds"] is not None else []
        lines.append(" · ".join(parts + ([row["reason"]] if row["reason"] else [])))
    emit({"left": left, "counts": counts, "runs": rows}, as_json=as_json, text="\n".join(lines))
    sys.exit(RUNNING if left else YES if set(counts) == {"finished"} else NO)
