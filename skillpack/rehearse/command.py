"""``skills rehearse CLIENT.py``: would this client train?"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import click

from skillpack.files import write_atomically
from skillpack.script import BAD_INPUT, EXIT_CODES, NO, UNAVAILABLE, YES, BadInput, Command, Unavailable, emit

SLOTS = ("documented", "released")


@click.command(
    "rehearse",
    cls=Command,
    example="skills rehearse train.py --steps 2 --timeout 120 -- --seed 1",
    exit_codes={
        YES: "it would train",
        NO: "it would not: the report says why, by name",
        BAD_INPUT: EXIT_CODES[BAD_INPUT],
        UNAVAILABLE: EXIT_CODES[UNAVAILABLE],
    },
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("client")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("-m", "--module", is_flag=True, help="CLIENT is a module, run as python -m does.")
@click.option("--steps", default=3, show_default=True, type=click.IntRange(1), help="Weight updates to see.")
@click.option("--timeout", default=300.0, show_default=True, type=click.FloatRange(1), help="Seconds, at most.")
@click.option(
    "--patience",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0.5),
    help="Seconds without a sign of life after which the client is taken to be stuck.",
)
@click.option("--batch-size", type=click.IntRange(1), help="A smaller batch than the job's, for a shorter rehearsal.")
@click.option("--dummy-data", is_flag=True, help="Dummy tasks of the right shape instead of the client's data set.")
@click.option(
    "--policy",
    default="learn",
    show_default=True,
    help="Who answers: learn, echo, 'script FILE' or 'proxy URL' (as one text).",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the policy and of the chaos.")
@click.option("--slots", type=click.Choice(SLOTS), default="documented", show_default=True, help="How slots count.")
@click.option("--latency", default="0", show_default=True, help="Seconds per chat reply: 0.5, or 0.2-3.")
@click.option("--fail-rate", default=0.0, type=click.FloatRange(0, 1), help="Share of requests that are answered 500.")
@click.option("--chaos", is_flag=True, help="Lost requests and answers, early weight syncs, restarts.")
@click.option("--python", "python", default=sys.executable, help="Interpreter of the client (default: the pack's).")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder of report and log; default rehearsals/<name of the client>."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def rehearse_command(
    client: str, arguments: tuple[str, ...], module: bool, latency: str, out: Path | None, as_json: bool, **options: Any
) -> None:
    """Run a training client unmodified on reference engines and say whether it would train.

    The client finds the engine in AJET_SWARM_URL, and at each loopback URL that its script names.
    What it writes goes to client.log beside the report; arguments behind -- are the client's own.
    """
    plan = _plan(client, arguments, module=module, latency=latency, **options)
    folder = out or Path("rehearsals") / (client.rpartition(".")[2] if module else Path(client).stem)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{folder} cannot be made: {error.strerror}", hint="--out with another folder") from None
    report = _run(plan, folder)
    emit(report, as_json=as_json, text=lambda: _text(report))
    raise click.exceptions.Exit(YES if report["ok"] else NO)


def _plan(client: str, arguments: tuple[str, ...], *, module: bool, latency: str, **options: Any) -> Any:
    from ajet.backbone.policies import make_policy
    from ajet.swarm_cli import read_latency
    from skillpack.rehearse.session import Plan

    if not module and not Path(client).is_file():
        raise BadInput(
            f"{client}: there is no such file",
            expected="a client script",
            hint="-m for a module: skills rehearse -m a.b",
        )
    try:
        make_policy(options["policy"])
    except ValueError as error:
        raise BadInput(str(error), hint="--policy 'script replies.yaml'") from None
    seconds = read_latency(click.get_current_context(), click.Option(["--latency"]), latency)
    return Plan(target=client, arguments=arguments, module=module, latency=seconds, **options)


def _run(plan: Any, folder: Path) -> dict[str, Any]:
    from skillpack.rehearse.page import page_of
    from skillpack.rehearse.report import report_of
    from skillpack.rehearse.session import rehearse

    try:
        outcome = asyncio.run(rehearse(plan, folder / "client.log"))
    except FileNotFoundError as error:
        raise Unavailable(
            f"{error.filename}: there is no such program", expected="--python with an interpreter"
        ) from None
    report = report_of(outcome)
    paths = {name: str(folder / name) for name in ("report.html", "report.json", "client.log")}
    report["files"] = paths
    write_atomically(folder / "report.json", json.dumps(report, ensure_ascii=False, indent=2))
    write_atomically(folder / "report.html", page_of(report))
    return report


def _text(report: dict[str, Any]) -> str:
    from skillpack.rehearse.report import text_of

    return f"{text_of(report)}\nreport: {report['files']['report.html']}, log: {report['files']['client.log']}"
