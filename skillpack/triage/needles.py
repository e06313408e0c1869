"""Find the lines of a block that hold any of many short texts, in one pass over memory.

Python searches for one text at a time, so the time would grow with the number of signatures.
Instead each text (needle) is known by four of its bytes, the rarest that it has; every four
bytes of the block are looked up in a table of hashes, by numpy. Where numpy is missing the
needles are searched for one by one: slower, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

GRAM = 4
HASH_BITS = 20
MULTIPLIER = 0x9E3779B1  # Knuth's multiplicative hashing: 2**32 divided by the golden ratio
COMMON = " etaoinsrhldcumfpgwybvkxjqz_0123456789.:/-"
"""Bytes of logs, the most common first; what is not here is rarer still."""
CHATTER = (
    "cached claimed worker working episode reward agent response prompt token update weights sync engine server "
    "client task rollout step policy tool call connection connected training INFO WARNING actor default chat request"
)
"""Words that logs of healthy trainings are full of."""


def line_end(block: bytes, at: int) -> int:
    """Return where the line around ``at`` ends: at a line feed, or at a return that a progress bar makes."""
    end = block.find(b"\n", at)
    end = len(block) if end < 0 else end
    back = block.find(b"\r", at, end)
    return back if 0 <= back < end - 1 else end


def line_start(block: bytes, at: int) -> int:
    """Return where the line around ``at`` starts."""
    start = block.rfind(b"\n", 0, at) + 1
    return max(start, block.rfind(b"\r", start, at) + 1)


class Needles:
    """A set of texts of at least four bytes each."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = {text: text.encode() for text in texts}
        self._by_gram: dict[bytes, list[str]] = {}
        for text, raw in self._texts.items():
            if len(raw) < GRAM:
                raise ValueError(f"{text!r} has fewer than {GRAM} bytes")
            self._by_gram.setdefault(_rarest(raw), []).append(text)

    def lines(self, block: bytes) -> dict[int, set[str]]:
        """Return, by the start of its line in ``block``, which of the texts each line holds; in order."""
        places = self._places(block) if self._numpy else self._places_one_by_one(block)
        found: dict[int, set[str]] = {}
        start, end, line = -1, -1, b""
        for place in places:
            if place >= end:
                start, end = line_start(block, place), line_end(block, place)
                line = block[start:end]
            for text in self._by_gram[block[place : place + GRAM]]:
                if self._texts[text] in line:
                    found.setdefault(start, set()).add(text)
        return found

    @cached_property
    def _numpy(self) -> Any:
        try:
            import numpy
        except ImportError:
            return None
        return numpy

    @cached_property
    def _table(self) -> tuple[Any, Any]:
        """The grams as numbers, sorted, and the table that is true at their hashes."""
        numpy = self._numpy
        grams = numpy.sort(numpy.array([int.from_bytes(gram, "little") for gram in self._by_gram], dtype="<u4"))
        table = numpy.zeros(1 << HASH_BITS, dtype=bool)
        table[_hashes(numpy, grams)] = True
        return grams, table

    def _places(self, block: bytes) -> list[int]:
        """Return the places of all grams in the block, sorted."""
        numpy = self._numpy
        grams, table = self._table
        places = []
        for shift in range(min(GRAM, max(0, len(block) - GRAM + 1))):
            words = numpy.frombuffer(block, dtype="<u4", offset=shift, count=(len(block) - shift) // GRAM)
            likely = numpy.nonzero(table[_hashes(numpy, words)])[0]
            sure = likely[numpy.isin(words[likely], grams)]
            places.append(sure * GRAM + shift)
        joined: list[int] = numpy.sort(numpy.concatenate(places)).tolist() if places else []
        return joined

    def _places_one_by_one(self, block: bytes) -> list[int]:
        places = []
        for gram in self._by_gram:
            at = block.find(gram)
            while at >= 0:
                places.append(at)
                at = block.find(gram, at + 1)
        return sorted(places)


def _hashes(numpy: Any, words: Any) -> Any:
    return (words * numpy.uint32(MULTIPLIER)) >> numpy.uint32(32 - HASH_BITS)


def _rarest(raw: bytes) -> bytes:
    """Return the four bytes in a row that logs have least often, by the ranks of their characters."""

    def rank(character: int) -> int:
        place = COMMON.find(chr(character))
        return len(COMMON) if place < 0 else place

    def rarity(gram: bytes) -> tuple[bool, int]:
        return gram.decode("latin-1") not in CHATTER, sum(map(rank, gram))

    return max((raw[at : at + GRAM] for at in range(len(raw) - GRAM + 1)), key=rarity)
