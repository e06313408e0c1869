"""From suspects to causes: what is told about each, with evidence and remedies in the run's own numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skillpack.triage.facts import Facts
from skillpack.triage.remedy import Lookup, advices
from skillpack.triage.seen import Sighting
from skillpack.triage.signatures import Signature, signature
from skillpack.triage.suspects import Suspect

CRASHES = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE")
BACKGROUNDED = Signature(
    id="backgrounded",
    role="root",
    pattern=signature("killed-137").pattern,
    anchors=(),
    kind="config",
    stage="boot",
    cause="the launch command put itself into the background and returned; the run owns only what it waits for",
    remedy=({"do": "take nohup, &, screen and tmux out of exp_launch_command: run.py already detaches the run"},),
)


def causes_of(suspects: Sequence[Suspect], facts: Facts, lookup: Lookup) -> list[dict[str, Any]]:
    """Return the causes, most likely first.

    Known roots stand alone. Without one, what the end itself tells comes first (a signal, a full
    disk), then unexplained exceptions and warnings; aftermath is named, with low confidence,
    only if there is nothing else.
    """
    causes = [cause(one, lookup, "high") for one in suspects if one.is_a("root")]
    if not causes:
        causes = [cause(one, lookup, confidence) for one, confidence in _told_by_the_end(facts)]
        causes += [cause(one, lookup, "medium") for one in suspects if one.is_a("generic", "warning")]
    if not causes:
        causes = [cause(one, lookup, "low") for one in suspects[:1]]
    for rank, one in enumerate(causes, 1):
        one["rank"] = rank
    return causes


def cause(one: Suspect, lookup: Lookup, confidence: str) -> dict[str, Any]:
    """Return what is told about a cause."""
    return {
        "id": one.signature.id,
        "cause": one.signature.cause,
        "stage": one.sighting.stage,
        "kind": one.signature.kind,
        "confidence": confidence,
        "count": one.count,
        "evidence": [evidence(one)] if one.sighting.text else [],
        "remedy": advices(one.signature.remedy, lookup, one.sighting.groups),
        "links": list(one.signature.links),
    }


def brief(one: Suspect) -> dict[str, Any]:
    """Return what is told about something that is no cause."""
    return {"id": one.signature.id, "count": one.count, "evidence": [evidence(one)]}


def evidence(one: Suspect) -> dict[str, Any]:
    """Return the line that shows it; line 0: no line, but how the run ended."""
    return {"log": one.log, "line": one.sighting.line, "text": one.sighting.text, "who": one.sighting.who}


def _told_by_the_end(facts: Facts) -> list[tuple[Suspect, str]]:
    """Return what no line tells, with the confidence: the disk, a signal, a command that went into the background."""

    def told(one: Signature, text: str, confidence: str) -> list[tuple[Suspect, str]]:
        stage = one.stage
        return [(Suspect(one, Sighting(0, 0, text, stage), 1, facts.died[0] if facts.died else ""), confidence)]

    if facts.disk_full:
        return told(signature("disk-full"), "the disk of the run was full", "high")
    if facts.backgrounded:
        return told(BACKGROUNDED, "", "high")
    if facts.state == "failed" and facts.signal == "SIGKILL":
        return told(signature("killed-137"), "ended by SIGKILL (137); nothing in the log says why", "medium")
    if facts.state == "failed" and facts.signal in CRASHES:
        return told(signature("segfault"), f"ended by {facts.signal}", "medium")
    return []
