"""The outcome as text for people: what is wrong at which line, how to mend it, and a table."""

from __future__ import annotations

import click

from skillpack.validate.outcome import Outcome
from skillpack.validate.reports.places import shown

_COLORS = {"error": "red", "warn": "yellow", "info": "blue"}
_SHORT = {"loads": "loads", "loads-with-changes": "changes", "rejects": "rejects"}


def write(reports: Outcome, fail_on: str) -> None:
    """Print the outcome to stdout; click leaves the colours out where it is no terminal."""
    for report in reports:
        for found in report.problems:
            severity = click.style(found.severity, fg=_COLORS[found.severity], bold=found.severity == "error")
            rule = click.style(f"[{found.rule}]", dim=True)
            click.echo(f"{shown(report.path / found.file)}:{found.line}: {severity} {found.message} {rule}")
            click.echo(f"    {found.fix}")
    _table(reports, fail_on)


def _table(reports: Outcome, fail_on: str) -> None:
    width = max(reports.widest, len("skill"))
    suppressed = 0
    head = True
    for report in reports:
        if head:
            clients = "  ".join(client.rjust(11) for client in report.clients)
            click.echo(click.style(f"{'skill'.ljust(width)}  {clients}  errors  warnings  cases", bold=True))
            head = False
        bad = report.failed(fail_on)
        suppressed += report.suppressed
        severities = [found.severity for found in report.problems]
        passed = sum(result.ok for result in report.scripts)
        cells = [_SHORT[reading.verdict].rjust(11) for reading in report.clients.values()]
        cells += [str(severities.count("error")).rjust(6), str(severities.count("warn")).rjust(8)]
        cells.append((f"{passed}/{len(report.scripts)}" if report.scripts else "-").rjust(5))
        click.echo("  ".join([click.style(report.name.ljust(width), fg="red" if bad else "green"), *cells]))
    notes = f", {suppressed} problems left out as the files ask" if suppressed else ""
    click.echo(f"{len(reports)} {'skill' if len(reports) == 1 else 'skills'}, {reports.failed(fail_on)} failed{notes}")
