"""The command line of ``triage.py``: why did it stop, or is it healthy?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillpack.script import NO, YES, BadInput, Command, emit, json_option

if TYPE_CHECKING:
    from skillpack.triage.facts import Facts
    from skillpack.triage.judge import Verdict
    from skillpack.triage.seen import Scan

LOOK_EVERY = 1.0
LOG_NAMES = ("console.log", "*.log", "*.log.gz", "*.out", "*.txt")


@click.command(
    "triage",
    cls=Command,
    example="scripts/triage.py DIR --json\nscripts/triage.py console.log.gz --config job.yaml",
    exit_codes={
        YES: "nothing is wrong (finished, healthy, or starting)",
        NO: "something is wrong: verdict and causes say what",
    },
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="The run's YAML, for values in the remedies (default: the run's own).",
)
@click.option("--exit-code", type=int, help="How the command ended, for a log alone.")
@click.option("--ended", is_flag=True, help="The process is gone: a log that just stops is lost.")
@click.option(
    "--follow", is_flag=True, help="Follow a growing log until something is wrong, it ends, or --for is over."
)
@click.option("--for", "seconds", type=float, default=60.0, show_default=True, help="Seconds to follow.")
@click.option("--silence-after", type=float, help="Seconds of silence that are too long (default: 3 median steps).")
@json_option
def triage_command(
    path: Path,
    config: Path | None,
    exit_code: int | None,
    ended: bool,
    follow: bool,
    seconds: float,
    silence_after: float | None,
    as_json: bool,
) -> None:
    """Find the root cause in a training log (plain or .gz) or in a run's directory, or say that it is healthy."""
    from skillpack.runs.rundir import is_run
    from skillpack.triage.present import verdict_json
    from skillpack.triage.readable import require_log
    from skillpack.triage.writers import is_written

    path = path.expanduser().absolute()
    if config and not config.is_file():
        raise BadInput(f"no configuration at {config}", expected="the YAML of the run")
    log = None
    if is_run(path):
        verdict = _triage_run(path, config, silence_after, seconds if follow else 0.0)
    else:
        log = _log_at(path)
        require_log(log, may_grow=follow or exit_code is not None or bool(is_written(log)))
        verdict = _triage_log(log, config, exit_code, ended, silence_after, seconds if follow else 0.0)
    document = {"path": str(path), "log": str(log) if log else None, **verdict_json(verdict)}
    emit(document, as_json=as_json, text=lambda: verdict_text(document))
    sys.exit(YES if verdict.well else NO)


def _log_at(path: Path) -> Path:
    """Return the log that a path means: itself, or the newest log in a folder. Raises BadInput."""
    if path.is_file():
        return path
    found = [log for name in LOG_NAMES for log in sorted(path.glob(name))] if path.is_dir() else []
    if not found:
        raise BadInput(
            f"{path} is neither a log nor a run's directory",
            expected="a console log (plain or .gz), or an exp_result_dir",
        )
    named = [log for log in found if log.name == "console.log"]
    return named[0] if named else max(found, key=lambda log: log.stat().st_mtime)


def _triage_run(directory: Path, config: Path | None, silence: float | None, follow: float) -> Verdict:
    from skillpack.runs.diagnose import diagnose
    from skillpack.runs.progress import Progress
    from skillpack.runs.rundir import RunDir
    from skillpack.runs.status import observe

    run = RunDir(directory)
    status = observe(run)
    progress = Progress.of(run, status.record)

    def look() -> tuple[Verdict, bool]:
        status = observe(run)
        progress.refresh(whole=not status.alive)
        return diagnose(run, status, progress, silence, config), status.alive

    return _until(look, follow)


def _triage_log(
    log: Path, config: Path | None, exit_code: int | None, ended: bool, silence: float | None, follow: float
) -> Verdict:
    from skillpack.triage.facts import log_facts
    from skillpack.triage.judge import judge
    from skillpack.triage.remedy import config_lookup
    from skillpack.triage.scan import scan_log
    from skillpack.triage.seen import Scan

    lookup = config_lookup(config)
    scan = Scan()

    def look() -> tuple[Verdict, bool]:
        nonlocal scan
        scan = scan_log(log, _again(log, scan), whole=not follow)
        facts: Facts = log_facts(log, ended=ended, exit_code=exit_code, silence_limit=silence, follow=follow > 0)
        return judge({log.name: scan}, facts, lookup), not facts.ended

    return _until(look, follow)


def _again(log: Path, scan: Scan) -> Scan:
    """Return the scan to go on with: a new one if the log has been cut since, or is an archive."""
    from skillpack.triage.seen import Scan

    return Scan() if log.suffix == ".gz" or log.stat().st_size < scan.offset else scan


def _until(look: Any, follow: float) -> Verdict:
    """Look once, or again and again for ``follow`` seconds while all is well and goes on."""
    import time

    deadline = time.monotonic() + follow
    while True:
        verdict, goes_on = look()
        left = deadline - time.monotonic()
        if left <= 0 or not goes_on or not verdict.well or verdict.verdict == "finished":
            result: Verdict = verdict
            return result
        time.sleep(min(LOOK_EVERY, left))


def verdict_text(document: dict[str, Any]) -> str:
    """Return a judgement for people: the verdict, the causes with evidence and remedies, the rest in short."""
    from skillpack.triage.present import cause_lines, finding_lines

    steps = document["steps"]
    where = f"{steps['count']} steps (last {steps['last']})" if steps["count"] else "no training step"
    lines = [f"{document['verdict']}: {document['why']}; {where}, {steps['lines']} lines"]
    if document["log"] not in (None, document["path"]):
        lines.insert(0, f"no run's directory; the newest log in it is judged: {document['log']}")
    for cause in document["causes"]:
        lines += cause_lines(cause)
    for finding in document["health"]:
        lines += finding_lines(finding)
    for title, entries in (("followed by", document["followed_by"]), ("survived", document["survived"])):
        if entries:
            told = ", ".join(f"{one['id']} x{one['count']} (line {one['evidence'][0]['line']})" for one in entries)
            lines.append(f"  {title}: {told}")
    lines += [f"  remark: {one['id']} x{one['count']}: {one['cause']}" for one in document["remarks"]]
    if document["tail"]:
        lines += ["  last lines:", *(f"    {line[:160]}" for line in document["tail"])]
    return "\n".join(lines)
