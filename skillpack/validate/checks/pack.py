"""Skills against each other: one name twice, descriptions that a model cannot tell apart."""

from __future__ import annotations

from collections import defaultdict

from skillpack.validate.checks.description import competing
from skillpack.validate.problems import Problem, SkillReport, problem

MAX_COMPARED = 2000
"""Descriptions that are compared with each other; a pack of more is beyond any client's listing."""


class Pack:
    """What has to be kept of each skill to compare it with the others."""

    def __init__(self) -> None:
        self._count = 0
        self._named: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._described: list[tuple[int, SkillReport]] = []
        self._offered: set[int] = set()
        self.shadowed: set[int] = set()
        """Indexes of the skills that npx skills leaves out, as one before them in their folder has their name."""

    def add(self, report: SkillReport) -> None:
        """Take note of the next skill."""
        self._named[report.name].append((self._count, str(report.path)))
        reading = report.clients.get("npx-skills")
        if reading is not None and reading.verdict != "rejects":
            offer = hash((report.path.parent, reading.name))
            if offer in self._offered:
                self.shadowed.add(self._count)
            self._offered.add(offer)
        if report.description and len(self._described) < MAX_COMPARED:
            self._described.append((self._count, report))
        self._count += 1

    def problems(self) -> dict[int, list[Problem]]:
        """Return the problems that skills have with each other, by their index."""
        found: defaultdict[int, list[Problem]] = defaultdict(list)
        for name, group in self._named.items():
            for index, path in group if len(group) > 1 else ():
                others = [other for _, other in group if other != path]
                more = f" and {len(others) - 3} more" if len(others) > 3 else ""
                detail = f"{name} is also the name of {', '.join(others[:3])}{more}"
                found[index].append(problem("duplicate-name", detail))
        rivals: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        for one, other, cosine in competing([report.description for _, report in self._described]):
            rivals[one].append((cosine, other))
            rivals[other].append((cosine, one))
        for place, competitors in rivals.items():
            cosine, nearest = max(competitors)
            index, report = self._described[place]
            rival = self._described[nearest][1]
            more = f", and {len(competitors) - 1} more" if len(competitors) > 1 else ""
            detail = f"with {rival.name} ({rival.path}), {cosine:.2f}{more}"
            found[index].append(problem("description-competes", detail, line=report.description_line))
        return found
