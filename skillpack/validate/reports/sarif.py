"""The outcome as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from skillpack import __version__
from skillpack.validate.problems import Problem, SkillReport
from skillpack.validate.reports.places import plain, shown
from skillpack.validate.rules import rules

_LEVELS = {"error": "error", "warn": "warning", "info": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def document(reports: Iterable[SkillReport]) -> dict[str, Any]:
    """Return one run with a result for each problem, and the rules that they fall under."""
    results = [_result(report, found) for report in reports for found in report.problems]
    used = sorted({result["ruleId"] for result in results})
    places = {name: index for index, name in enumerate(used)}
    for result in results:
        result["ruleIndex"] = places[result["ruleId"]]
    driver = {"name": "skills validate", "version": __version__, "rules": [_rule(name) for name in used]}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _rule(name: str) -> dict[str, Any]:
    rule = rules()[name]
    return {
        "id": name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.means},
        "help": {"text": rule.mend},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(report: SkillReport, found: Problem) -> dict[str, Any]:
    path = shown(report.path / found.file)
    uri = quote(os.fsencode(path)) if not path.startswith("/") else f"file://{quote(os.fsencode(path))}"
    problem = f"{report.name}/{found.rule}/{found.file}/{found.message}"
    return {
        "ruleId": found.rule,
        "level": _LEVELS[found.severity],
        "message": {"text": plain(f"{found.message}. {found.fix}")},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": found.line}}},
        ],
        "partialFingerprints": {"skillProblem/v2": sha256(problem.encode("utf-8", "surrogateescape")).hexdigest()[:32]},
    }
