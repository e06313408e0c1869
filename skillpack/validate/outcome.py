"""The reports of a whole validation, kept in a file so that memory does not grow with the skills."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from skillpack.validate.checks.pack import Pack
from skillpack.validate.problems import GRAVE, Problem, SkillReport, left_out, problem

if TYPE_CHECKING:
    from skillpack.validate.evals import CaseResult

IN_MEMORY = 4 << 20
"""Bytes of reports that are kept in memory before they go to a temporary file."""


class Outcome(Collection[SkillReport]):
    """Reports in the order they were added; iterating yields them with what was found out about them later."""

    def __init__(self, reports: Iterable[SkillReport]) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed in close()
        self._pack = Pack()
        self._scripts: dict[int, list[CaseResult]] = {}
        self.with_scripts: list[tuple[int, Path]] = []
        """Index and folder of the skills that have scripts."""
        self._count = 0
        self._failing: dict[str, set[int]] = {severity: set() for severity in GRAVE}
        self._ignored: dict[int, frozenset[str]] = {}
        self.widest = 0
        """Characters of the longest name."""
        for report in reports:
            self._pack.add(report)
            if report.has_scripts:
                self.with_scripts.append((self._count, report.path))
            pickle.dump(report, self._file, pickle.HIGHEST_PROTOCOL)
            if report.ignored:
                self._ignored[self._count] = report.ignored
            for severity, failing in self._failing.items():
                if report.failed(severity):
                    failing.add(self._count)
            self._count += 1
            self.widest = max(self.widest, len(report.name))
        self._later = self._pack.problems()

    def __len__(self) -> int:
        return self._count

    def __contains__(self, report: object) -> bool:
        return any(report == other for other in self)

    def __iter__(self) -> Iterator[SkillReport]:
        place = 0
        for index in range(self._count):
            self._file.seek(place)  # another iteration may have moved it
            report: SkillReport = pickle.load(self._file)
            place = self._file.tell()
            self._complete(index, report)
            yield report

    def _complete(self, index: int, report: SkillReport) -> None:
        for found in self._later.get(index, ()):
            report.add(found)
        if index in self._pack.shadowed:
            report.clients["npx-skills"].reject("duplicate-name", "offers the first skill of a name and folder only")
        report.scripts = self._scripts.get(index, [])
        for found, mend in _script_problems(report.scripts):
            report.add(found, mend=mend)

    def failed(self, fail_on: str) -> int:
        """Return how many skills have a problem as grave as ``fail_on``."""
        found_later = {index: list(found) for index, found in self._later.items()}
        for index, results in self._scripts.items():
            found_later.setdefault(index, []).extend(found for found, _ in _script_problems(results))
        later = {
            index
            for index, found in found_later.items()
            if any(
                one.severity in GRAVE[fail_on] and not left_out(one.rule, self._ignored.get(index, frozenset()))
                for one in found
            )
        }
        return len(self._failing[fail_on] | later)

    def summary(self, fail_on: str) -> str:
        """Return how many skills there are and how many failed, as words."""
        return f"{len(self)} {'skill' if len(self) == 1 else 'skills'}, {self.failed(fail_on)} failed"

    def run_scripts(self, python: Path | None) -> None:
        """Run the scripts of the skills that have any: their help for the commands of SKILL.md, and their cases."""
        from skillpack.validate.checks.helps import check_helps
        from skillpack.validate.evals import run_scripts

        for index, path in self.with_scripts:
            self._later.setdefault(index, []).extend(check_helps(path, python, os.cpu_count() or 1))
        results = run_scripts([path for _, path in self.with_scripts], python=python)
        self._scripts = {index: results[path] for index, path in self.with_scripts if path in results}

    def close(self) -> None:
        """Drop the reports."""
        self._file.close()

    def __enter__(self) -> Outcome:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _script_problems(results: Iterable[CaseResult]) -> Iterator[tuple[Problem, str]]:
    """Yield what the runs of a skill's scripts showed, each with its own mend or an empty text."""
    for result in results:
        if not result.ok:
            run_it = f"Run it yourself, in the skill's folder: {result.command}" if result.command else ""
            found = problem("script-case", f"{result.case}: {result.why}", file=result.file, line=result.line)
            yield found, run_it or "Write it as docs/evals.md of this pack says."
        if result.advice:
            yield problem("script-help", result.advice, file=result.file, line=result.line), ""
