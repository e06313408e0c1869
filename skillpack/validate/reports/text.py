"""The outcome as text for people: what is wrong at which line, how to mend it, and a table."""

from __future__ import annotations

from collections.abc import Iterable

import click

from skillpack.validate.problems import SkillReport
from skillpack.validate.reports.places import shown

_COLORS = {"error": "red", "warn": "yellow", "info": "blue"}
_SHORT = {"loads": "loads", "loads-with-changes": "changes", "rejects": "rejects"}


def write(reports: Iterable[SkillReport], fail_on: str) -> None:
    """Print the outcome to stdout; click leaves the colours out where it is no terminal."""
    reports = list(reports)
    for report in reports:
        for found in report.problems:
            severity = click.style(found.severity, fg=_COLORS[found.severity], bold=found.severity == "error")
            rule = click.style(f"[{found.rule}]", dim=True)
            click.echo(f"{shown(report.path / found.file)}:{found.line}: {severity} {found.message} {rule}")
            click.echo(f"    {found.fix}")
    _table(reports, fail_on)


def _table(reports: list[SkillReport], fail_on: str) -> None:
    clients = list(reports[0].clients) if reports else []
    width = max([len(report.name) for report in reports] + [5])
    head = ["skill".ljust(width), *(client.rjust(11) for client in clients), "errors", "warnings", "cases"]
    click.echo(click.style("  ".join(head), bold=True))
    for report in reports:
        severities = [found.severity for found in report.problems]
        passed = sum(result.ok for result in report.scripts)
        cells = [_SHORT[report.clients[client].verdict].rjust(11) for client in clients]
        cells += [str(severities.count("error")).rjust(6), str(severities.count("warn")).rjust(8)]
        cells.append((f"{passed}/{len(report.scripts)}" if report.scripts else "-").rjust(5))
        color = "red" if report.failed(fail_on) else "green"
        click.echo("  ".join([click.style(report.name.ljust(width), fg=color), *cells]))
    failed = sum(report.failed(fail_on) for report in reports)
    suppressed = sum(report.suppressed for report in reports)
    notes = f", {suppressed} problems left out as the files ask" if suppressed else ""
    click.echo(f"{len(reports)} {'skill' if len(reports) == 1 else 'skills'}, {failed} failed{notes}")
