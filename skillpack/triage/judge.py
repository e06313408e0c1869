"""Judge a log, or a run with its logs: the verdict, the causes in their order, what to change."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillpack.triage.health import Finding, check_health, step_seconds
from skillpack.triage.remedy import Lookup, advise
from skillpack.triage.scan import Scan, Sighting
from skillpack.triage.signatures import Signature, signature

WELL = ("finished", "healthy", "starting")
SILENCE_FACTOR = 3.0
SILENCE_FLOOR = 60.0
FIRST_STEP_SECONDS = 1200.0
SURVIVED_LINES = 20
"""Ordinary lines behind an unexplained exception that show that somebody caught it."""
LAST_LINES = 4


@dataclass(frozen=True)
class Facts:
    """What is known about a run beside its logs. All of it may be unknown (a log alone)."""

    state: str | None = None
    """The run's state (``status``), or None."""
    ended: bool | None = None
    exit_code: int | None = None
    signal: str | None = None
    reason: str = ""
    died: tuple[str, ...] = ()
    silent: float | None = None
    """Seconds since the last output."""
    silence_limit: float | None = None
    """Seconds of silence that are too long, if somebody has said so."""
    elapsed: float | None = None
    first_step_timeout: float = FIRST_STEP_SECONDS
    disk_full: bool = False
    backgrounded: bool = False


@dataclass(frozen=True)
class Suspect:
    """A signature with the place where it was seen, and in which log."""

    signature: Signature
    sighting: Sighting
    count: int
    log: str


@dataclass
class Verdict:
    """The judgement; ``verdict`` is a word of a closed set (see ``schemas/triage.schema.json``)."""

    verdict: str
    why: str
    causes: list[dict[str, Any]] = field(default_factory=list)
    followed_by: list[dict[str, Any]] = field(default_factory=list)
    survived: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[dict[str, Any]] = field(default_factory=list)
    health: list[Finding] = field(default_factory=list)
    steps: dict[str, Any] = field(default_factory=dict)
    tail: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        """Whether nothing is wrong."""
        return self.verdict in WELL


def judge(scans: dict[str, Scan], facts: Facts, lookup: Lookup) -> Verdict:
    """Judge what the logs (name: scan) of one run say, with the facts about it."""
    main = max(scans.values(), key=lambda scan: (scan.steps, scan.lines))
    verdict, why = _decide(scans, main, facts)
    failed = verdict not in WELL and verdict != "unhealthy"
    suspects = _suspects(scans, failed=failed) if failed else []
    if verdict == "hung" or (verdict in ("lost", "timed-out", "stopped") and not _of_role(suspects, "root")):
        suspects += _last_words(scans)
    ranked = sorted(suspects, key=_rank)
    causes = _causes(ranked, facts, lookup, verdict)
    lead = causes[0]["id"] if causes else None
    health = check_health(list(main.recent), main.earliest)
    return Verdict(
        verdict=verdict,
        why=why,
        causes=causes,
        followed_by=[_brief(one) for one in ranked if one.signature.id not in {cause["id"] for cause in causes}],
        survived=_survived(scans, exclude={lead, *(cause["id"] for cause in causes)}),
        remarks=_warnings(scans, lookup) if not failed else [],
        health=health,
        steps=_step_summary(main),
        tail=list(main.tail) if failed and not causes else [],
    )


# ---- the verdict ----------------------------------------------------------------------------------


def _decide(scans: dict[str, Scan], main: Scan, facts: Facts) -> tuple[str, str]:
    """Return the verdict and the reason for it."""
    steps = sum(scan.steps for scan in scans.values())
    if facts.state in ("timed-out", "stopped", "lost"):
        return facts.state, facts.reason
    if facts.exit_code == 0 and not steps and not facts.died and facts.state != "finished":
        return "no-training-step", "it exited with code 0, but the log has no training step"
    if facts.state == "failed" or (facts.exit_code not in (None, 0)):
        return "failed", facts.reason or f"exit code {facts.exit_code}"
    if facts.state == "finished" or facts.exit_code == 0:
        return _well("finished", "it exited with code 0 after training steps", main)
    if facts.state in ("running", "starting"):
        return _alive(main, facts, steps)
    return _log_alone(scans, main, facts, steps)


def _alive(main: Scan, facts: Facts, steps: int) -> tuple[str, str]:
    limit = silence_limit(main, facts)
    if facts.silent is not None and facts.silent > limit:
        return "hung", f"no output for {facts.silent:.0f} s; the limit is {limit:.0f} s ({_limit_source(main, facts)})"
    if not steps and facts.elapsed is not None and facts.elapsed > facts.first_step_timeout:
        return "hung", f"no training step after {facts.elapsed:.0f} s; the limit is {facts.first_step_timeout:.0f} s"
    if not steps:
        return "starting", "it runs; there is no training step yet"
    return _well("healthy", "it runs and makes steps", main)


def _log_alone(scans: dict[str, Scan], main: Scan, facts: Facts, steps: int) -> tuple[str, str]:
    suspects = [one for one in _suspects(scans, failed=False) if not _was_caught(one, scans)]
    end = _end_line(main)
    after_end = [one for one in suspects if end is None or one.sighting.line > end]
    if _of_role(after_end, "root") or _of_role(after_end, "generic") or (after_end and end is None):
        return "failed", f"the log ends with {min(after_end, key=_rank).signature.id}"
    if end is not None:
        if not steps:
            return "no-training-step", "the log says that training has ended, but it has no training step"
        return _well("finished", "the log has the end of a training", main)
    limit = silence_limit(main, facts)
    if facts.ended or (facts.silent is not None and facts.silent > limit):
        since = "" if facts.silent is None else f"; the last output is {facts.silent:.0f} s old"
        return "lost", f"the log just stops, without an error and without an end{since}"
    if not steps:
        return "starting", "there is no training step yet"
    return _well("healthy", "steps go on and nothing stopped them", main)


def _well(verdict: str, why: str, main: Scan) -> tuple[str, str]:
    bad = [finding for finding in check_health(list(main.recent), main.earliest) if finding.fails]
    return ("unhealthy", f"{bad[0].meaning} ({bad[0].key}: {bad[0].seen})") if bad else (verdict, why)


def silence_limit(main: Scan, facts: Facts) -> float:
    """Return after how many seconds without output a run counts as hung: three times its median step."""
    if facts.silence_limit is not None:
        return facts.silence_limit
    median = step_seconds(list(main.recent))
    return max(SILENCE_FLOOR, SILENCE_FACTOR * median) if median else facts.first_step_timeout


def _limit_source(main: Scan, facts: Facts) -> str:
    if facts.silence_limit is not None:
        return "as asked"
    median = step_seconds(list(main.recent))
    return f"3 x the median step of {median:.0f} s, at least 60 s" if median else "the first-step timeout"


def _end_line(main: Scan) -> int | None:
    """Return the line at which the log says that training has ended, if no step comes behind it."""
    lines = [
        seen.current.line
        for id_, seen in main.seen.items()
        if seen.current and signature(id_).role == "end" and seen.current.line >= main.last_step_line
    ]
    if main.total_steps is not None and main.last_step is not None and main.last_step >= main.total_steps:
        lines.append(main.last_step_line)
    return min(lines) if lines else None


# ---- the suspects ---------------------------------------------------------------------------------


def _suspects(scans: dict[str, Scan], *, failed: bool) -> list[Suspect]:
    """Return what was seen since the last step; if that explains no failure, what was seen in the step before."""
    current = _in_interval(scans, "current")
    if failed and all(one.signature.role == "aftermath" for one in current):
        return current + _in_interval(scans, "previous")
    return current


def _in_interval(scans: dict[str, Scan], interval: str) -> list[Suspect]:
    found = []
    for log, scan in scans.items():
        for id_, seen in scan.seen.items():
            one, sighting = signature(id_), getattr(seen, interval)
            if sighting and one.role in (("root", "generic", "aftermath") if interval == "current" else ("root",)):
                found.append(Suspect(one, sighting, seen.count, log))
    return found


def _last_words(scans: dict[str, Scan]) -> list[Suspect]:
    """Return the signatures that mean something only if nothing comes behind them."""
    return [
        Suspect(signature(id_), seen.current, seen.count, log)
        for log, scan in scans.items()
        for id_, seen in scan.seen.items()
        if seen.current and signature(id_).only_last and seen.current.line > scan.lines - LAST_LINES
    ]


def _was_caught(one: Suspect, scans: dict[str, Scan]) -> bool:
    """Tell whether an unexplained exception was caught: plenty of other output follows, and no other trouble."""
    if one.signature.role != "generic":
        return False
    scan = scans[one.log]
    others = [seen for id_, seen in scan.seen.items() if seen.current and id_ != one.signature.id]
    trouble = [seen for seen in others if seen.current and seen.current.line > one.sighting.line]
    return not trouble and scan.lines - one.sighting.line >= SURVIVED_LINES


def _of_role(suspects: list[Suspect], role: str) -> list[Suspect]:
    return [one for one in suspects if one.signature.role == role]


def _rank(one: Suspect) -> tuple[int, int]:
    return ("root", "generic", "aftermath", "warning", "end").index(one.signature.role), one.sighting.line


def _causes(ranked: list[Suspect], facts: Facts, lookup: Lookup, verdict: str) -> list[dict[str, Any]]:
    """Return the causes, most likely first: known roots, then what the exit tells, then what is left."""
    roots = [one for one in ranked if one.signature.role == "root"]
    causes = [_cause(one, lookup, "high") for one in roots]
    if not causes:
        causes += _told_by_exit(facts, lookup)
    rest = [one for one in ranked if one.signature.role in ("generic", "warning")]
    if facts.died:
        rest.sort(key=lambda one: one.log not in facts.died)
    causes += [_cause(one, lookup, "medium") for one in rest if not roots]
    if not causes:
        causes += [_cause(one, lookup, "low") for one in ranked if one.signature.role == "aftermath"][:1]
    for rank, cause in enumerate(causes, 1):
        cause["rank"] = rank
    return causes


def _told_by_exit(facts: Facts, lookup: Lookup) -> list[dict[str, Any]]:
    """Return causes that no line tells: the disk, a signal, a command that went into the background."""
    if facts.disk_full:
        return [
            _cause(
                Suspect(signature("disk-full"), Sighting(0, 0, "the disk of the run was full"), 1, ""), lookup, "high"
            )
        ]
    if facts.backgrounded:
        return [
            _plain(
                "backgrounded",
                "the launch command put itself into the background and returned; the run owns only what it waits for",
                "take nohup, &, screen and tmux out of exp_launch_command: run.py already detaches the run",
            )
        ]
    if facts.signal == "SIGKILL" and facts.state == "failed":
        text = "ended by SIGKILL (137); nothing in the log says why"
        return [_cause(Suspect(signature("killed-137"), Sighting(0, 0, text), 1, ""), lookup, "medium")]
    if facts.signal in ("SIGSEGV", "SIGBUS", "SIGABRT") and facts.state == "failed":
        return [
            _cause(Suspect(signature("segfault"), Sighting(0, 0, f"ended by {facts.signal}"), 1, ""), lookup, "medium")
        ]
    return []


def _plain(id_: str, cause: str, do: str) -> dict[str, Any]:
    return {
        "id": id_,
        "cause": cause,
        "stage": "boot",
        "kind": "config",
        "confidence": "high",
        "count": 1,
        "evidence": [],
        "remedy": [{"do": do}],
        "links": [],
    }


def _cause(one: Suspect, lookup: Lookup, confidence: str) -> dict[str, Any]:
    return {
        "id": one.signature.id,
        "cause": one.signature.cause,
        "stage": one.sighting.stage,
        "kind": one.signature.kind,
        "confidence": confidence,
        "count": one.count,
        "evidence": [_evidence(one)],
        "remedy": [advise(rule, lookup, one.sighting.groups) for rule in one.signature.remedy],
        "links": list(one.signature.links),
    }


def _evidence(one: Suspect) -> dict[str, Any]:
    return {"log": one.log, "line": one.sighting.line, "text": one.sighting.text, "who": one.sighting.who}


def _brief(one: Suspect) -> dict[str, Any]:
    return {"id": one.signature.id, "count": one.count, "evidence": [_evidence(one)]}


def _survived(scans: dict[str, Scan], exclude: set[str | None]) -> list[dict[str, Any]]:
    """Return what looked bad and was followed by a training step."""
    return [
        {
            "id": id_,
            "count": seen.survived,
            "evidence": [_evidence(Suspect(signature(id_), seen.first, seen.count, log))],
        }
        for log, scan in scans.items()
        for id_, seen in scan.seen.items()
        if seen.survived
        and seen.first
        and id_ not in exclude
        and signature(id_).role in ("root", "generic", "aftermath")
    ]


def _warnings(scans: dict[str, Scan], lookup: Lookup) -> list[dict[str, Any]]:
    return [
        _cause(Suspect(signature(id_), seen.first, seen.count, log), lookup, "medium")
        for log, scan in scans.items()
        for id_, seen in scan.seen.items()
        if seen.first and signature(id_).role == "warning" and not signature(id_).only_last
    ]


def _step_summary(main: Scan) -> dict[str, Any]:
    return {
        "count": main.steps,
        "first": main.first_step,
        "last": main.last_step,
        "total": main.total_steps,
        "median_seconds": step_seconds(list(main.recent)),
        "lines": main.lines,
    }


def log_facts(log: Path, *, ended: bool, exit_code: int | None, silence_limit: float | None = None) -> Facts:
    """Return the facts about a log without a run: how old its last output is. A packed log is over."""
    packed = log.suffix == ".gz"
    silent = None if packed else max(0.0, time.time() - log.stat().st_mtime)
    return Facts(ended=ended or packed, exit_code=exit_code, silent=silent, silence_limit=silence_limit)
