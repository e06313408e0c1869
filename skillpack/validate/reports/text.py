"""The outcome as text for people: what is wrong at which line, how to mend it, and a table of skills and clients."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator

import click

from skillpack.validate.outcome import Outcome
from skillpack.validate.problems import Problem, SkillReport
from skillpack.validate.reports.places import plain, shown

_COLORS = {"error": "red", "warn": "yellow", "info": "blue"}
_SHORT = {"loads": "loads", "loads-with-changes": "changes", "rejects": "rejects"}
_TABLE, _ROWS = 12, 60
"""Skills up to which each has its line in the table; of more, so many of those that fail or that a client rejects."""

_WIDEST = 48
"""Characters of a name that the table shows."""

_RULES = 12
"""Rules that are counted below the table, the most frequent first."""


def write(outcome: Outcome, fail_on: str) -> None:
    """Print the outcome to stdout, errors before all else. There are colours on a terminal, unless NO_COLOR is set."""
    color = False if os.environ.get("NO_COLOR") else None  # None: click looks whether it is a terminal
    for line in (*_problems(outcome), *_table(outcome, fail_on)):
        click.echo(line, color=color)


def _problems(outcome: Outcome) -> Iterator[str]:
    """Yield two lines for each problem: errors of all skills first; a mend that was told already is not repeated."""
    told: set[str] = set()
    for grave in (True, False):
        for report in outcome:
            for found in report.problems:
                if (found.severity == "error") is grave:
                    yield _line(report, found)
                    if found.fix not in told:
                        yield f"    {plain(found.fix)}"
                    told.add(found.fix)


def _line(report: SkillReport, found: Problem) -> str:
    severity = click.style(found.severity, fg=_COLORS[found.severity], bold=found.severity == "error")
    rule = click.style(f"[{found.rule}]", dim=True)
    return f"{plain(shown(report.path / found.file))}:{found.line}: {severity} {plain(found.message)} {rule}"


def _table(outcome: Outcome, fail_on: str) -> Iterator[str]:
    """Yield a line for each skill that is worth one, the sums, and how many problems each rule has."""
    width = min(_WIDEST, max(outcome.widest, len("skill" if len(outcome) <= _TABLE else "all 00000 skills")))
    rules: Counter[tuple[str, str]] = Counter()
    sums: Counter[tuple[str, str]] = Counter()
    severities: Counter[str] = Counter()
    rows = suppressed = cases = passed = 0
    clients: list[str] = []
    for report in outcome:
        if not clients:
            clients = list(report.clients)
            head = "  ".join(client.rjust(11) for client in clients)
            yield click.style(f"{'skill'.ljust(width)}  {head}  errors  warnings  cases", bold=True)
        rules.update((found.rule, found.severity) for found in report.problems)
        severities.update(found.severity for found in report.problems)
        sums.update((client, reading.verdict) for client, reading in report.clients.items())
        suppressed += report.suppressed
        cases += len(report.scripts)
        passed += sum(result.ok for result in report.scripts)
        if len(outcome) > _TABLE and not _is_bad(report, fail_on):
            continue
        rows += 1
        if len(outcome) <= _TABLE or rows <= _ROWS:
            yield _row(report, width, fail_on)
    if len(outcome) > _TABLE and rows > _ROWS:
        yield f"… and {rows - _ROWS} more that fail or that a client rejects (--json tells of each)"
    if len(outcome) > _TABLE:
        cells = ["/".join(str(sums[client, verdict]) for verdict in _SHORT).rjust(11) for client in clients]
        cells += _counts(severities, passed, cases)
        yield click.style("  ".join([f"all {len(outcome)} skills".ljust(width), *cells]), bold=True)
        yield click.style("of each client: loads/with changes/rejects", dim=True)
        yield from _most(rules)
    notes = f", {suppressed} problems left out as the files ask" if suppressed else ""
    yield outcome.summary(fail_on) + notes


def _is_bad(report: SkillReport, fail_on: str) -> bool:
    return report.failed(fail_on) or any(reading.verdict == "rejects" for reading in report.clients.values())


def _row(report: SkillReport, width: int, fail_on: str) -> str:
    name = plain(report.name)
    name = name if len(name) <= width else name[: width - 1] + "…"
    severities = Counter(found.severity for found in report.problems)
    passed = sum(result.ok for result in report.scripts)
    cells = [_SHORT[reading.verdict].rjust(11) for reading in report.clients.values()]
    cells += _counts(severities, passed, len(report.scripts))
    return "  ".join([click.style(name.ljust(width), fg="red" if report.failed(fail_on) else "green"), *cells])


def _counts(severities: Counter[str], passed: int, cases: int) -> list[str]:
    errors, warnings = severities["error"], severities["warn"]
    return [str(errors).rjust(6), str(warnings).rjust(8), (f"{passed}/{cases}" if cases else "-").rjust(5)]


def _most(rules: Counter[tuple[str, str]]) -> Iterable[str]:
    """Yield the rules with the most problems, a line each, the gravest first."""
    counted = sorted(rules.items(), key=lambda item: (list(_COLORS).index(item[0][1]), -item[1]))
    for (rule, severity), count in counted[:_RULES]:
        yield f"{str(count).rjust(6)}  {click.style(severity.ljust(5), fg=_COLORS[severity])}  {rule}"
    if len(counted) > _RULES:
        yield f"        and {len(counted) - _RULES} more rules"
