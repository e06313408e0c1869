"""The bytes of SKILL.md and the folder's own state."""

from __future__ import annotations

from collections.abc import Iterator

from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, problem


def check(skill: Skill) -> Iterator[Problem]:
    """Yield problems of line ends and of folders that could not be listed."""
    data = skill.source.data
    returns = data.count(b"\r\n")
    if returns:
        mixed = returns < data.count(b"\n")
        line = data.count(b"\n", 0, data.index(b"\r\n")) + 1
        yield problem("line-ends-mixed", "mixed" if mixed else "CRLF", line=line)
    for folder in skill.folder.unreadable:
        yield problem("folder-unreadable", folder)
