"""The outcome as one JSON document (``schemas/validate.schema.json``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from skillpack.validate.problems import SkillReport


def skill_entry(report: SkillReport, fail_on: str) -> dict[str, Any]:
    """Return what is known about one skill, in JSON's terms."""
    return {
        "name": report.name,
        "path": str(report.path),
        "ok": not report.failed(fail_on),
        "problems": [
            {
                "rule": found.rule,
                "severity": found.severity,
                "message": found.message,
                "line": found.line,
                "fix": found.fix,
                "file": found.file,
                "clients": list(found.clients),
            }
            for found in report.problems
        ],
        "clients": {client: str(reading) for client, reading in report.clients.items()},
        "scripts": [
            {
                "case": result.case,
                "command": result.command,
                "ok": result.ok,
                "exit_code": result.exit_code,
                "seconds": round(result.seconds, 3),
                "why": result.why,
            }
            for result in report.scripts
        ],
        "suppressed": report.suppressed,
    }


def document(reports: Iterable[SkillReport], fail_on: str) -> dict[str, Any]:
    """Return the whole outcome; ``counts`` are over all skills."""
    skills = [skill_entry(report, fail_on) for report in reports]
    return {"ok": all(skill["ok"] for skill in skills), "skills": skills, "counts": counts(skills)}


def counts(skills: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Return how many skills, problems of each severity and cases there are."""
    total: Counter[str] = Counter(skills=0, failed=0, error=0, warn=0, info=0, suppressed=0, cases=0, cases_failed=0)
    for skill in skills:
        total["skills"] += 1
        total["failed"] += not skill["ok"]
        total["suppressed"] += skill["suppressed"]
        total.update(found["severity"] for found in skill["problems"])
        total["cases"] += len(skill["scripts"])
        total["cases_failed"] += sum(not case["ok"] for case in skill["scripts"])
    return dict(total)
