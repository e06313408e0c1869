"""Whether a description lets a model choose the skill, and descriptions that compete."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, problem

MIN_CHARACTERS = 40
COMPETES = 0.75
"""Cosine of two descriptions' tf-idf vectors from which a model is likely to confuse them."""

MAX_GROUP = 100
"""Descriptions with one rare term in common that each is compared with."""

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = re.compile(
    r"[a-z0-9][a-z0-9_+#.-]*[a-z0-9+#]|[a-z0-9]|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]", re.IGNORECASE
)


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
    line, text = skill.line("description"), " ".join(node.value.split())
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


def competing(descriptions: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """Yield the pairs of descriptions (by index) that compete, with their cosine."""
    counts = [Counter(_terms(text)) for text in descriptions]
    spread = Counter(term for counted in counts for term in counted)
    vectors = [_vector(counted, spread, len(descriptions)) for counted in counts]
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for index, vector in enumerate(vectors):
        for term in _prefix(vector, spread):
            holders[term].append(index)
    told: set[tuple[int, int]] = set()
    for group in holders.values():
        for place, one in enumerate(group):
            for other in group[place + 1 : place + MAX_GROUP]:
                if (one, other) in told:
                    continue
                told.add((one, other))
                cosine = sum(weight * vectors[other].get(term, 0.0) for term, weight in vectors[one].items())
                if cosine >= COMPETES:
                    yield one, other, cosine


def _prefix(vector: dict[str, float], spread: Counter[str]) -> Iterator[str]:
    """Yield the rarest terms of a vector, until what is left is too short to reach ``COMPETES`` by itself.

    Two vectors with that cosine share one of these terms (prefix filtering, Bayardo et al. 2007).
    """
    left = 1.0
    for term in sorted(vector, key=lambda term: (spread[term], term)):
        if left < COMPETES**2:
            return
        left -= vector[term] ** 2
        yield term


def _terms(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text.lower()):
        word = match[0].strip(".-")
        if word and word not in words().stop:
            yield word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _vector(counted: Counter[str], spread: Counter[str], total: int) -> dict[str, float]:
    weights = {term: count * (math.log((1 + total) / (1 + spread[term])) + 1) for term, count in counted.items()}
    length = math.sqrt(sum(weight * weight for weight in weights.values()))
    return {term: weight / length for term, weight in weights.items()} if length else {}
