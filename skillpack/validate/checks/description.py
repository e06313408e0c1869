"""Whether a description lets a model choose the skill."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, problem

MIN_CHARACTERS, MAX_CHARACTERS = 40, 10_000
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Words:
    """The words of ``words.yaml``."""

    when: re.Pattern[str]
    when_cjk: re.Pattern[str]
    stop: frozenset[str]


@lru_cache(maxsize=1)
def words() -> Words:
    """Return the words by which a description is judged."""
    data = yaml.safe_load((Path(__file__).parent.parent / "words.yaml").read_text(encoding="utf-8"))
    return Words(
        re.compile("|".join(data["when"]), re.IGNORECASE),
        re.compile("|".join(data["when_cjk"])),
        frozenset(data["stop"].split()),
    )


def check(skill: Skill) -> Iterator[Problem]:
    """Yield problems of the description's words."""
    node = skill.fields.get("description")
    if node is None or node.kind != "scalar" or not node.value.strip():
        return
    line, text = skill.line("description"), " ".join(node.value[:MAX_CHARACTERS].split())
    if node.plain:
        rest = skill.frontmatter.text[node.end :].split("\n")[0]
        if rest.lstrip().startswith("#"):
            yield problem("description-comment", rest.strip()[:60], line=line)
    cjk = len(_CJK.findall(text))
    if len(text) + 2 * cjk < MIN_CHARACTERS:
        yield problem("description-short", f"{len(text)} characters", line=line)
        return
    foreign = cjk * 4 > len(text)
    if not foreign and not text.isascii():
        return  # words of a language that the list may not know
    if not (words().when_cjk if foreign else words().when).search(text):
        yield problem("description-when", line=line)
