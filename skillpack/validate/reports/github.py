"""The outcome as GitHub Actions workflow commands, which show as annotations on a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from skillpack.validate.problems import SkillReport
from skillpack.validate.reports.places import shown

_LEVELS = {"error": "error", "warn": "warning", "info": "notice"}


def lines(reports: Iterable[SkillReport]) -> Iterator[str]:
    """Yield a command for each problem."""
    for report in reports:
        for found in report.problems:
            where = f"file={_property(shown(report.path / found.file))},line={found.line},title={_property(found.rule)}"
            yield f"::{_LEVELS[found.severity]} {where}::{_data(f'{found.message}. {found.fix}')}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
