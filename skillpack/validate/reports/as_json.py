"""The outcome as one JSON document (``schemas/validate.schema.json``)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from skillpack.validate.outcome import Outcome
from skillpack.validate.problems import SkillReport
from skillpack.validate.reports.places import json_of


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


def pieces(reports: Outcome, fail_on: str) -> Iterator[str]:
    """Yield the whole document, a line for each skill; ``counts`` are over all skills."""
    ok = not reports.failed(fail_on)
    total: Counter[str] = Counter(skills=0, failed=0, error=0, warn=0, info=0, suppressed=0, cases=0, cases_failed=0)
    yield f'{{\n  "ok": {json.dumps(ok)},\n  "skills": ['
    for report in reports:
        entry = skill_entry(report, fail_on)
        yield ("," if total["skills"] else "") + "\n    " + json_of(entry, indent=None)
        total.update(found.severity for found in report.problems)
        total.update(skills=1, failed=not entry["ok"], suppressed=report.suppressed, cases=len(report.scripts))
        total.update(cases_failed=sum(not result.ok for result in report.scripts))
    yield f'\n  ],\n  "counts": {json.dumps(dict(total))}\n}}\n'
