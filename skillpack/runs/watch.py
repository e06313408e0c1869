"""Wait for something about a run that is worth reading."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from skillpack.runs.diagnose import diagnose
from skillpack.runs.progress import Progress
from skillpack.runs.rundir import RunDir
from skillpack.runs.status import Status, observe
from skillpack.triage.judge import Verdict
from skillpack.triage.signatures import signature

BACK_OFF = (30, 60, 120, 240, 480, 960)
"""Seconds to wait next, after so many quiet looks."""
LOOK_EVERY = 0.5


@dataclass
class Watched:
    """What a watch saw: the run's state, its judgement, the events since the last watch, how long to wait next."""

    status: Status
    verdict: Verdict
    progress: Progress
    events: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    wait_next: int = BACK_OFF[0]


@dataclass(frozen=True)
class Interest:
    """What ends a watch early, apart from the run's own end and from trouble."""

    steps: int = 1
    """So many new steps (0: steps do not end a watch)."""
    silence_limit: float | None = None


def watch(run: RunDir, seconds: float, interest: Interest) -> Watched:
    """Watch a run for up to ``seconds`` and return at once when something worth reading happens.

    Everything that was told is remembered in the run's directory, so the next watch, of
    whichever session, tells only what is new.
    """
    began = time.monotonic()
    progress: Progress | None = None
    while True:
        status = observe(run)
        if progress is None or progress.run_id != status.record["id"]:
            progress = Progress.of(run, status.record)
        progress.refresh(whole=not status.alive)
        verdict = diagnose(run, status, progress, interest.silence_limit)
        events = _events(status, verdict, progress, interest)
        waited = time.monotonic() - began
        if events or not status.alive or waited >= seconds:
            watched = Watched(status, verdict, progress, events, round(waited, 1))
            watched.wait_next = _next_wait(watched)
            _remember(watched)
            return watched
        time.sleep(min(LOOK_EVERY, max(0.0, seconds - waited)))


def _events(status: Status, verdict: Verdict, progress: Progress, interest: Interest) -> list[dict[str, Any]]:
    told = progress.told
    found: list[dict[str, Any]] = []
    if not status.alive:
        return [_event(status.state, status.reason or verdict.why)]
    if not status.supervised and not told.get("unsupervised"):
        found.append(_event("unsupervised", status.reason))
    for name in status.died:
        if name not in told.get("died", []):
            found.append(_event("part-died", f"{name} has ended, other parts go on"))
    engine = status.engine()
    if engine and engine["status"] != told.get("engine"):
        found.append(_event("engine", f"engine status {engine['status']}, global step {engine['global_step']}"))
    found += _trouble(verdict, progress)
    found += _training(progress, interest)
    return found


def _trouble(verdict: Verdict, progress: Progress) -> list[dict[str, Any]]:
    told = progress.told
    found = []
    if verdict.verdict == "hung" and told.get("hung") is not True:
        found.append(_event("silent", verdict.why))
    if verdict.verdict == "unhealthy" and told.get("unhealthy") != [one.id for one in verdict.health]:
        found.append(_event("unhealthy", verdict.why))
    for log, scan in progress.scans.items():
        for id_, seen in scan.seen.items():
            if (
                seen.current
                and signature(id_).role in ("root", "aftermath")
                and _mark(log, id_, seen) not in told.get("seen", [])
            ):
                found.append(
                    _event("signature", f"{id_} in {log}, line {seen.current.line}: {seen.current.text[:200]}")
                )
    return found


def _training(progress: Progress, interest: Interest) -> list[dict[str, Any]]:
    told, main = progress.told, progress.main
    found = []
    if main.validations > told.get("validations", 0):
        found.append(_event("validation", f"a validation result at step {main.last_step}"))
    if main.steps and not told.get("steps"):
        found.append(_event("first-step", f"the first training step is there (step {main.first_step})"))
    elif interest.steps and main.steps - told.get("steps", 0) >= interest.steps:
        found.append(_event("step", f"step {main.last_step}"))
    return found


def _event(kind: str, text: str) -> dict[str, Any]:
    return {"event": kind, "text": text}


def _mark(log: str, id_: str, seen: Any) -> str:
    return f"{log}:{id_}:{seen.current.line}"


def _next_wait(watched: Watched) -> int:
    """Return how long to wait next: longer after each quiet look, short again after news that is no mere step."""
    news = [event for event in watched.events if event["event"] not in ("step", "validation")]
    level = 0 if news else watched.progress.told.get("level", -1) + 1
    watched.progress.told["level"] = level
    return BACK_OFF[min(level, len(BACK_OFF) - 1)]


def _remember(watched: Watched) -> None:
    progress = watched.progress
    engine = watched.status.engine()
    progress.told |= {
        "steps": progress.main.steps,
        "validations": progress.main.validations,
        "engine": engine["status"] if engine else None,
        "died": watched.status.died,
        "unsupervised": not watched.status.supervised,
        "hung": watched.verdict.verdict == "hung",
        "unhealthy": [one.id for one in watched.verdict.health],
        "seen": [
            _mark(log, id_, seen)
            for log, scan in progress.scans.items()
            for id_, seen in scan.seen.items()
            if seen.current
        ],
    }
    progress.keep(told=True)
