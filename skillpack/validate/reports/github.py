"""The outcome as GitHub Actions workflow commands, which show as annotations on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from skillpack.validate.outcome import Outcome
from skillpack.validate.reports.places import plain, shown

_LEVELS = {"error": "error", "warn": "warning", "info": "notice"}


def lines(outcome: Outcome) -> Iterator[str]:
    """Yield a command for each problem, errors first, as GitHub shows no more than ten of a kind."""
    for severity, level in _LEVELS.items():
        for report in outcome:
            for found in report.problems:
                if found.severity == severity:
                    file, rule = _property(shown(report.path / found.file)), _property(found.rule)
                    data = _data(f"{found.message}. {found.fix}")
                    yield f"::{level} file={file},line={found.line},title={rule}::{data}"


def _data(text: str) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return plain(escaped)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
