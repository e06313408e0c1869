"""Descriptions that a model cannot tell apart: cosine of tf-idf vectors, in arrays, as there may be many."""

from __future__ import annotations

import itertools
import math
import operator
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest

from skillpack.validate.checks.description import MAX_CHARACTERS, words

COMPETES = 0.75
"""Cosine of two descriptions' tf-idf vectors from which a model is likely to confuse them."""

REST = 0.6
"""Length of a vector's commonest terms that two descriptions are not matched by."""

MAX_MATCHED, MAX_COMPARED = 500, 20
"""How many holders of its rare terms a description is matched with, and how many it is then compared with.

Only where more share their rare terms may a pair stay unseen, and then each of the two has others."""

_WORD = re.compile(
    r"[a-z0-9][a-z0-9_+#.-]{0,60}[a-z0-9+#]|[a-z0-9]|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Rivalry:
    """Two descriptions, by the order that they were added in, their cosine, and the words that only one of them has."""

    one: int
    other: int
    cosine: float
    only_one: frozenset[str]
    only_other: frozenset[str]


class Descriptions:
    """Descriptions, added one by one, and the pairs of them that compete."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._known: list[str] = []
        self._spread = array("I")
        self._starts = array("I", [0])
        self._terms = array("I")
        self._weights = array("f")

    def add(self, text: str) -> None:
        """Add the next description, of which no more than ``MAX_CHARACTERS`` count."""
        for term, count in Counter(terms(text[:MAX_CHARACTERS])).items():
            number = self._ids.setdefault(term, len(self._ids))
            if number == len(self._spread):
                self._spread.append(0)
            self._spread[number] += 1
            self._terms.append(number)
            self._weights.append(count)
        self._starts.append(len(self._terms))

    def rivalries(self) -> Iterator[Rivalry]:
        """Yield the pairs that compete. No description can be added afterwards.

        Each is matched with those before it by their rarest terms, until what is left of a vector is no longer than
        ``REST``: the cosine of two is at most that of the rarest terms plus the longer rest (prefix filtering, Bayardo
        et al. 2007). The few for which that reaches ``COMPETES`` are compared in full.
        """
        self._weigh()
        self._known = list(self._ids)
        holders: defaultdict[int, tuple[array[int], array[float]]] = defaultdict(lambda: (array("I"), array("f")))
        rests = array("f")
        for one in range(len(self._starts) - 1):
            vector = self._vector(one)
            shared: defaultdict[int, float] = defaultdict(float)
            rarest, rest = self._rarest(vector)
            rests.append(rest)
            most = -max(1, MAX_MATCHED // max(1, len(rarest)))
            for term in rarest:
                weight = vector[term]
                others, weights = holders[term]
                for other, its_weight in zip(others[most:], weights[most:], strict=True):
                    shared[other] += weight * its_weight
                others.append(one)
                weights.append(weight)
            near = [other for other, cosine in shared.items() if cosine + max(rests[one], rests[other]) >= COMPETES]
            for other in nlargest(MAX_COMPARED, near, key=shared.__getitem__):
                against = self._vector(other)
                cosine = sum(weight * against.get(term, 0.0) for term, weight in vector.items())
                if cosine >= COMPETES:
                    here, there = self._words(vector), self._words(against)
                    yield Rivalry(other, one, min(cosine, 1.0), there - here, here - there)

    def _weigh(self) -> None:
        """Turn counts into weights: by the rarity of the term, and each vector of length 1."""
        total = len(self._starts) - 1
        rarity = [math.log((1 + total) / (1 + spread)) + 1 for spread in self._spread]
        weighted = array("f", map(operator.mul, self._weights, map(rarity.__getitem__, self._terms)))
        for start, end in itertools.pairwise(self._starts):
            vector = weighted[start:end]
            length = math.sqrt(sum(weight * weight for weight in vector)) or 1.0
            weighted[start:end] = array("f", [weight / length for weight in vector])
        self._weights = weighted

    def _vector(self, index: int) -> dict[int, float]:
        start, end = self._starts[index], self._starts[index + 1]
        return dict(zip(self._terms[start:end], self._weights[start:end], strict=True))

    def _rarest(self, vector: dict[int, float]) -> tuple[list[int], float]:
        """Return the rarest terms that others have too and the length of what is left of those, at most ``REST``.

        There are none where a description's own words alone keep it apart from all others.
        """
        spread = self._spread
        common = sorted([(spread[term], term) for term in vector if spread[term] > 1])
        left = sum(vector[term] ** 2 for _, term in common)
        if left < COMPETES**2:
            return [], 0.0
        rarest: list[int] = []
        for _, term in common:
            if left <= REST**2:
                break
            left -= vector[term] ** 2
            rarest.append(term)
        return rarest, math.sqrt(max(left, 0.0))

    def _words(self, vector: dict[int, float]) -> frozenset[str]:
        return frozenset(self._known[term] for term in vector)


def terms(text: str) -> list[str]:
    """Return the words of a text that say something, in lower case and the singular."""
    stop = words().stop
    found = []
    for match in _WORD.findall(text.lower()):
        word = match.strip(".-")
        if word and word not in stop:
            found.append(word[:-1] if word[-1] == "s" and len(word) > 3 and word[-2] != "s" else word)
    return found
