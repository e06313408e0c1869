"""Why a run is as it is: its state and logs, judged together."""

from __future__ import annotations

from pathlib import Path

from skillpack.runs.progress import Progress
from skillpack.runs.rundir import RunDir
from skillpack.runs.status import Status
from skillpack.triage.facts import Facts
from skillpack.triage.judge import Verdict, judge
from skillpack.triage.remedy import config_lookup

BACKGROUND_SECONDS = 60.0


def diagnose(
    run: RunDir,
    status: Status,
    progress: Progress,
    silence_limit: float | None = None,
    config: Path | None = None,
) -> Verdict:
    """Judge a run by its state and by what ``progress`` has read of its logs.

    ``config`` is the YAML that remedies take their values from, instead of the run's own copy.
    """
    record = status.record
    facts = Facts(
        state=status.state,
        ended=not status.alive,
        exit_code=status.exit_code,
        signal=status.signal,
        reason=status.reason,
        died=tuple(status.died),
        silent=status.silent(progress.size()) if status.alive else None,
        silence_limit=silence_limit,
        elapsed=status.elapsed(),
        first_step_timeout=record["spec"]["first_step_timeout"],
        disk_full=bool(record.get("disk_was_full") or status.heartbeat.get("disk_full")),
        backgrounded=bool(record.get("left_behind"))
        and not progress.steps
        and (record.get("seconds") or 0) < BACKGROUND_SECONDS,
    )
    return judge(progress.scans, facts, config_lookup(config or run.configuration(record)))
