"""Skills against each other: one name twice, descriptions that a model cannot tell apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from skillpack.validate.checks.description import competing
from skillpack.validate.problems import SkillReport, problem


def check(reports: Sequence[SkillReport]) -> None:
    """Add the problems that skills have with each other to their reports."""
    _check_names(reports)
    _check_descriptions([report for report in reports if report.description])


def _check_descriptions(reports: Sequence[SkillReport]) -> None:
    rivals: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
    for one, other, cosine in competing([report.description for report in reports]):
        rivals[one].append((cosine, other))
        rivals[other].append((cosine, one))
    for index, found in rivals.items():
        cosine, nearest = max(found)
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        detail = f"with {reports[nearest].name} ({reports[nearest].path}), {cosine:.2f}{more}"
        reports[index].add(problem("description-competes", detail, line=reports[index].description_line))


def _check_names(reports: Sequence[SkillReport]) -> None:
    named: defaultdict[str, list[SkillReport]] = defaultdict(list)
    for report in reports:
        named[report.name].append(report)
    for name, group in named.items():
        if len(group) > 1:
            for report in group:
                others = ", ".join(str(other.path) for other in group if other is not report)
                report.add(problem("duplicate-name", f"{name} is also the name of {others}"))
    for report in _shadowed(reports):
        report.clients["npx-skills"].reject("duplicate-name", "offers the first skill of a name and folder only")


def _shadowed(reports: Sequence[SkillReport]) -> list[SkillReport]:
    """Return the skills that npx skills does not offer as one before them in their folder has their name."""
    seen: set[tuple[object, str]] = set()
    shadowed = []
    for report in reports:
        reading = report.clients.get("npx-skills")
        if reading is None or reading.name is None or reading.verdict == "rejects":
            continue
        key = (report.path.parent, reading.name)
        if key in seen:
            shadowed.append(report)
        seen.add(key)
    return shadowed
