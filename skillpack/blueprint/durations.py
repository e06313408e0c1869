"""Lengths of time as people write them: ``24h``, ``1.5 hours``, ``90min``, ``1 天 6 小时``, ``02:30:00``."""

from __future__ import annotations

import re
from functools import cache

from skillpack.blueprint.fields import vocabulary

SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800}
_NEGATIVE = re.compile(r"(?:^|[\s:=(])[-\u2212\u2013]$")
_CLOCK = re.compile(r"(?<!\d)(\d+):([0-5]\d)(?::([0-5]\d))?(?![\d:])")


class BadDuration(ValueError):
    """The text holds no length of time that can be read."""


@cache
def _units() -> dict[str, int]:
    words = vocabulary()["durations"]
    return {unit.casefold(): factor for name, factor in SECONDS.items() for unit in words[name]}


@cache
def _amount() -> re.Pattern[str]:
    numerals = sorted(vocabulary()["durations"]["numerals"], key=len, reverse=True)
    units = sorted(_units(), key=len, reverse=True)
    latin = "|".join(unit for unit in units if unit.isascii())
    han = "|".join(unit for unit in units if not unit.isascii())
    words = "|".join(rf"\b{word}\b" if word.isascii() else word for word in numerals)
    return re.compile(
        rf"(?P<number>\d+(?:[.,]\d+)?|{words})\s*-?\s*(?P<half>个半|and\s+a\s+half|an?\b)?\s*(?P<unit>{han}|(?:{latin})(?![a-z]))"
        rf"(?P<andhalf>半)?(?P<gap>\s*(?:,|and|又|零)?\s*)",
        re.IGNORECASE,
    )


def parse_duration(text: str) -> float | None:
    """Return the seconds that ``text`` tells, or None for "no limit".

    The first length found counts, made of neighbouring parts (``1 day and 6 hours``); words
    around it are passed over ("at most 24h"). A bare number is refused: its unit would be a
    guess; so is a negative one. Raises BadDuration.
    """
    plain = text.strip().strip("`*\"'“”").strip()
    if plain.casefold() in vocabulary()["durations"]["unlimited"]:
        return None
    seconds = _sum_of_parts(plain)
    if seconds is None:
        clock = _CLOCK.search(plain)
        if clock is None:
            raise BadDuration(f"no length of time in {text.strip()!r}")
        _refuse_negative(plain, clock.start())
        hours, minutes, rest = (int(part or 0) for part in clock.groups())
        seconds = hours * 3600.0 + minutes * 60 + rest
    if seconds <= 0:
        raise BadDuration(f"{text.strip()!r} is not longer than nothing")
    return seconds


def _refuse_negative(text: str, start: int) -> None:
    if _NEGATIVE.search(text, 0, start):
        raise BadDuration(f"{text!r} is less than nothing")


def _sum_of_parts(text: str) -> float | None:
    numerals = vocabulary()["durations"]["numerals"]
    total: float | None = None
    end = 0
    for part in _amount().finditer(text):
        if total is not None and part.start() != end:
            break
        _refuse_negative(text, part.start())
        word = part["number"].casefold()
        number = float(numerals[word]) if word in numerals else float(word.replace(",", "."))
        if (part["half"] or "").endswith(("半", "half")) or part["andhalf"]:
            number += 0.5
        total = (total or 0.0) + number * _units()[part["unit"].casefold()]
        end = part.end()
    return total


def format_duration(seconds: float) -> str:
    """Write seconds as people do: ``45 s``, ``12 min``, ``1 h 30 min``, ``2 d 4 h``."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 and whole < 600 else "")
    if whole < 172800:
        return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 >= 60 else "")
    return f"{whole // 86400} d" + (f" {whole % 86400 // 3600} h" if whole % 86400 >= 3600 else "")
