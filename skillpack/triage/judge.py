"""Judge a log, or a run with its logs: the verdict, the causes in their order, what to change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from skillpack.triage import suspects
from skillpack.triage.causes import brief, cause, causes_of
from skillpack.triage.facts import Facts
from skillpack.triage.health import Finding, check_health, step_seconds
from skillpack.triage.remedy import Lookup, advise
from skillpack.triage.seen import Scan
from skillpack.triage.signatures import signature

WELL = ("finished", "healthy", "starting")
SUDDEN = ("hung", "lost", "timed-out", "stopped")
"""Verdicts in which the last line of a log may be all that there is to go by."""
SILENCE_FACTOR = 3.0
SILENCE_FLOOR = 10.0


@dataclass
class Verdict:
    """The judgement; ``verdict`` is a word of a closed set (see ``schemas/triage-report.schema.json``)."""

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
    word, why = _decide(scans, main, facts)
    verdict = Verdict(word, why, health=_health(main, lookup), steps=_step_summary(main))
    if word in WELL or word == "unhealthy":
        verdict.remarks = [cause(one, lookup, "medium") for one in suspects.remarks(scans)]
    else:
        found = suspects.of_a_failure(scans, facts.died)
        if word in SUDDEN and not any(one.is_a("root") for one in found):
            found = suspects.ranked([*found, *suspects.last_words(scans)], facts.died)
        found = [one for one in found if not one.signature.verdicts or word in one.signature.verdicts]
        verdict.causes = causes_of(found, facts, lookup)
        blamed = {one["id"] for one in verdict.causes}
        verdict.followed_by = [brief(one) for one in found if one.signature.id not in blamed]
        verdict.tail = [] if verdict.causes else list(main.tail)
    verdict.survived = [brief(one) for one in suspects.survived(scans, {one["id"] for one in verdict.causes})]
    return verdict


def _health(main: Scan, lookup: Lookup) -> list[Finding]:
    """Return what is wrong with the metrics, the remedies in the run's own numbers."""
    found = check_health(list(main.recent), main.earliest)
    return [replace(one, remedy=advise(one.remedy, lookup, {}) or {"do": one.remedy["why"]}) for one in found]


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
    trouble = [one for one in suspects.since_last_step(scans) if not suspects.was_caught(one, scans)]
    end = _end_line(main)
    behind = [one for one in trouble if end is None or (one.sighting.line > end and not one.is_a("aftermath"))]
    if behind:
        return "failed", f"the log ends with {suspects.ranked(behind, facts.died)[0].signature.id}"
    if end is not None:
        if not steps:
            return "no-training-step", "the log says that training has ended, but it has no training step"
        return _well("finished", "the log has the end of a training", main)
    limit = silence_limit(main, facts)
    if facts.ended or (facts.silent is not None and facts.silent > limit):
        since = "" if facts.silent is None else f"; the last output is {facts.silent:.0f} s old, nobody writes to it"
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
    return (
        f"3 x the median step of {median:.0f} s, at least {SILENCE_FLOOR:.0f} s" if median else "the first-step timeout"
    )


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


def _step_summary(main: Scan) -> dict[str, Any]:
    return {
        "count": main.steps,
        "first": main.first_step,
        "last": main.last_step,
        "total": main.total_steps,
        "median_seconds": step_seconds(list(main.recent)),
        "lines": main.lines,
    }
