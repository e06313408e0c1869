"""The bytes of SKILL.md, the folder's own state, and the marks in its files."""

from __future__ import annotations

from collections.abc import Iterator

from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, marks, problem
from skillpack.validate.rules import rules


def check(skill: Skill) -> Iterator[Problem]:
    """Yield problems of line ends, of folders that could not be listed, and of marks that name no rule."""
    data = skill.source.data
    returns = data.count(b"\r\n")
    if returns:
        mixed = returns < data.count(b"\n")
        line = data.count(b"\n", 0, data.index(b"\r\n")) + 1
        yield problem("line-ends-mixed", "mixed" if mixed else "CRLF", line=line)
    for folder in skill.folder.unreadable:
        yield problem("folder-unreadable", folder)
    for file in skill.text_files:
        for line, named in marks(skill.text(file)):
            wrong = [name for name in named if name not in rules()]
            if wrong:
                yield problem("ignore-unknown", ", ".join(wrong)[:80], line=line, file=file)
