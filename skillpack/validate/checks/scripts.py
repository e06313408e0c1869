"""Scripts, as far as they can be judged without running them."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, problem


def check(skill: Skill) -> Iterator[Problem]:
    """Yield problems of the files in ``scripts/``."""
    for file in skill.folder.files:
        if file.startswith("scripts/") and file.endswith(".py"):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ast.parse(skill.text(file), file)
            except (SyntaxError, ValueError) as error:
                line = getattr(error, "lineno", None) or 1
                yield problem("script-syntax", str(getattr(error, "msg", error)), line=line, file=file)
