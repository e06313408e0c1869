"""Skills against each other: one name twice, descriptions that a model cannot tell apart."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from dataclasses import dataclass

from skillpack.validate.checks.rivals import Descriptions, Rivalry, terms
from skillpack.validate.problems import Problem, SkillReport, problem


@dataclass(frozen=True, slots=True)
class _Described:
    """What has to be known of a skill to tell of its rival."""

    index: int
    name: str
    path: str
    line: int


class Pack:
    """What has to be kept of each skill to compare it with the others."""

    def __init__(self) -> None:
        self._count = 0
        self._first: dict[str, str] = {}
        self._found: defaultdict[int, list[Problem]] = defaultdict(list)
        self._descriptions = Descriptions()
        self._described: list[_Described] = []
        self._offered: set[int] = set()
        self.shadowed: set[int] = set()
        """Indexes of the skills that npx skills leaves out, as one before them in their folder has their name."""

    def add(self, report: SkillReport) -> None:
        """Take note of the next skill."""
        path = str(report.path)
        reading = report.clients.get("npx-skills")
        first = self._first.setdefault(report.name, path)
        if first != path:
            beside = os.path.dirname(first) == os.path.dirname(path)  # noqa: PTH120 - the paths are text already
            detail = f"{report.name} is already the name of {_from(first, path)}"
            severity = "" if beside and reading is not None else "warn"
            found = problem("duplicate-name", detail, line=report.name_line, severity=severity)
            self._found[self._count].append(found)
        if reading is not None and reading.verdict != "rejects":
            offer = hash((report.path.parent, reading.name))
            if offer in self._offered:
                self.shadowed.add(self._count)
            self._offered.add(offer)
        if report.description:
            self._descriptions.add(report.description)
            self._described.append(_Described(self._count, report.name, path, report.description_line))
        self._count += 1

    def problems(self) -> dict[int, list[Problem]]:
        """Return the problems that skills have with each other, by their index, after the last one was added."""
        worst: dict[int, tuple[tuple[bool, float], int, str]] = {}
        rivals: Counter[int] = Counter()
        for rivalry in self._descriptions.rivalries():
            apart = self._apart(rivalry)
            for place, nearest in ((rivalry.one, rivalry.other), (rivalry.other, rivalry.one)):
                rivals[place] += 1
                grade = (not apart, rivalry.cosine)
                if place not in worst or grade > worst[place][0]:
                    worst[place] = grade, nearest, apart
        for place, ((_, cosine), nearest, apart) in worst.items():
            here, rival = self._described[place], self._described[nearest]
            detail = f"with {rival.name} ({_from(rival.path, here.path)}), {cosine:.2f}"
            if apart:
                detail += f", told apart by {apart} alone"
            if rivals[place] > 1:
                detail += f", and {rivals[place] - 1} more"
            severity = "info" if apart else ""
            self._found[here.index].append(problem("description-competes", detail, line=here.line, severity=severity))
        return self._found

    def _apart(self, rivalry: Rivalry) -> str:
        """Return the words that set two rivals apart, if each has one of its own that stands in its name too."""
        one = _in_name(rivalry.only_one, self._described[rivalry.one].name)
        other = _in_name(rivalry.only_other, self._described[rivalry.other].name)
        return f"{', '.join(one)} / {', '.join(other)}" if one and other else ""


def _in_name(words: frozenset[str], name: str) -> list[str]:
    """Return the words that are parts of a name, or end one that is written together, such as webfetch."""
    parts = tuple(terms(name.replace("-", " ").replace("_", " ")))
    return sorted(
        word for word in words if word in parts or (len(word) > 3 and any(part.endswith(word) for part in parts))
    )


def _from(path: str, here: str) -> str:
    """Return a skill's folder as seen from the folder that another one lies in."""
    return os.path.relpath(path, os.path.dirname(here))  # noqa: PTH120
