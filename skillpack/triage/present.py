"""How a judgement is shown: the JSON document and the lines for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from skillpack.triage.judge import Verdict


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return a judgement as JSON data (the document of ``triage.py``)."""
    document = asdict(verdict)
    document["well"] = verdict.well
    return document


def cause_lines(cause: dict[str, Any]) -> list[str]:
    """Return a cause with its evidence and remedies, for people."""
    lines = [f"  cause {cause['rank']} ({cause['confidence']}): {cause['id']}: {cause['cause']}"]
    for one in cause["evidence"]:
        where = f"{one['log']}:{one['line']}: " if one["line"] else ""
        lines.append(f"    {where}{one['text'][:200]}")
    lines += [f"    remedy: {remedy_text(remedy)}" for remedy in cause["remedy"]]
    return lines


def finding_lines(finding: dict[str, Any]) -> list[str]:
    """Return a finding about metrics: metric, steps, what was seen, threshold; what to do if it fails."""
    word = "unhealthy" if finding["fails"] else "remark"
    steps = f"steps {finding['first_step']}-{finding['last_step']}"
    told = f"  {word}: {finding['meaning']} ({finding['key']}, {steps}: {finding['seen']}; {finding['threshold']})"
    return [told, f"    remedy: {remedy_text(finding['remedy'])}"] if finding["fails"] else [told]


def remedy_text(remedy: dict[str, Any]) -> str:
    """Return one advice in words."""
    if "do" in remedy:
        return str(remedy["do"])
    why = f": {remedy['why']}" if remedy["why"] else ""
    return " and ".join(_setting(one) for one in [remedy, *remedy.get("and", [])]) + why


def _setting(change: dict[str, Any]) -> str:
    now = "not known here" if change["current"] is None else f"now {change['current']}"
    new = "" if change["value"] is None else f" = {change['value']}"
    return f"{change['key']}{new} ({now})"
