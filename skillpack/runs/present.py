"""How a run is shown: the JSON documents and the lines for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from skillpack.blueprint.durations import format_duration
from skillpack.runs.backends import Backend
from skillpack.runs.progress import Progress
from skillpack.runs.rundir import RunDir
from skillpack.runs.status import Status
from skillpack.runs.tmux import Tmux
from skillpack.runs.watch import Watched
from skillpack.script import NO, RUNNING, YES
from skillpack.triage.present import cause_lines, finding_lines

LATEST_KEYS = ("critic/rewards/mean", "critic/score/mean", "actor/entropy", "response_length/mean", "timing_s/step")


def exit_code_of(status: Status) -> int:
    """Return 0 for a run that finished well, 4 for one that goes on, 1 for one that ended otherwise."""
    return RUNNING if status.alive else YES if status.state == "finished" else NO


def status_json(run: RunDir, status: Status, progress: Progress) -> dict[str, Any]:
    """Return the document of ``run.py status``."""
    record, main = status.record, progress.main
    session = record.get("session")
    return {
        "dir": str(run.path),
        "id": record["id"],
        "attempt": record["attempt"],
        "mode": record["mode"],
        "purpose": record["purpose"],
        "backend": Backend.from_json(record["backend"]).as_json(),
        "state": status.state,
        "reason": status.reason,
        "supervised": status.supervised,
        "exit_code": status.exit_code,
        "signal": status.signal,
        "died": status.died,
        "seconds": _rounded(status.elapsed()),
        "max_time": record["spec"]["max_time"],
        "silent_seconds": _rounded(status.silent(progress.size())) if status.alive else None,
        "step": main.last_step,
        "steps": progress.steps,
        "total_steps": main.total_steps,
        "latest": latest_metrics(progress),
        "engine": status.engine(),
        "parts": [
            {name: part.get(name) for name in ("name", "role", "exit_code", "signal", "seconds")}
            | {"pid": (part.get("process") or {}).get("pid"), "log": str(progress.logs[part["name"]])}
            for part in record["parts"]
        ],
        "processes": status.processes,
        "session": session,
        "attach": Tmux(record.get("socket")).attach_command(session) if session else None,
        "console_log": str(run.console),
        "finished_flag": run.finish_flag.exists(),
    }


def latest_metrics(progress: Progress) -> dict[str, float | None]:
    """Return the last values of the metrics that people look at first; NaN and infinity as None."""
    values: dict[str, float] = {}
    for _, told in list(progress.main.recent)[-5:]:
        values |= told
    return {key: (values[key] if abs(values[key]) < 1e300 else None) for key in LATEST_KEYS if key in values}


def watched_json(run: RunDir, watched: Watched) -> dict[str, Any]:
    """Return the document of ``run.py watch``: the status, the events, the causes, and what to do next."""
    return {
        **status_json(run, watched.status, watched.progress),
        "events": watched.events,
        "verdict": watched.verdict.verdict,
        "why": watched.verdict.why,
        "causes": watched.verdict.causes[:5],
        "health": [asdict(finding) for finding in watched.verdict.health],
        "watched_seconds": watched.seconds,
        "next": next_move(run, watched),
    }


def next_move(run: RunDir, watched: Watched) -> dict[str, Any]:
    """Return what to do next: wait so long, or which command, and why."""
    status = watched.status
    if status.alive and watched.verdict.verdict in ("hung", "unhealthy"):
        return {"do": "triage", "command": f"scripts/triage.py {run.quoted}", "wait_seconds": 0}
    if status.alive:
        wait = watched.wait_next
        return {"do": "wait", "command": f"scripts/run.py watch {run.quoted} --for {wait}s", "wait_seconds": wait}
    if status.state == "finished":
        return {"do": "collect", "command": f"scripts/run.py collect {run.quoted}", "wait_seconds": 0}
    return {"do": "triage", "command": f"scripts/triage.py {run.quoted}", "wait_seconds": 0}


def status_line(document: dict[str, Any]) -> str:
    """Return a run in one line."""
    parts = [f"{document['state']:<9}", f"step {document['step']}" if document["step"] is not None else "no step yet"]
    if document["seconds"] is not None:
        limit = f" of {format_duration(document['max_time'])}" if document["max_time"] else ""
        parts.append(f"{format_duration(document['seconds'])}{limit}")
    if document["attempt"] > 1:
        parts.append(f"attempt {document['attempt']}")
    if document["silent_seconds"] is not None and document["silent_seconds"] > 60:
        parts.append(f"silent for {format_duration(document['silent_seconds'])}")
    if document["engine"]:
        parts.append(document["engine"]["status"])
    if document["reason"]:
        parts.append(document["reason"])
    return f"{' · '.join(parts)} · {document['dir']}"


def watched_text(document: dict[str, Any]) -> str:
    """Return what a watch saw, for people."""
    lines = [status_line(document)]
    lines += [f"  {event['event']}: {event['text']}" for event in document["events"]]
    if document["latest"]:
        lines.append(
            "  " + ", ".join(f"{key} {value:.4g}" for key, value in document["latest"].items() if value is not None)
        )
    for cause in document["causes"]:
        lines += cause_lines(cause)
    for finding in document["health"]:
        lines += finding_lines(finding)
    lines.append(f"next: {document['next']['do']}: {document['next']['command']}")
    return "\n".join(lines)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
