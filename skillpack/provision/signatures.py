"""Recognise known failures in what a tool printed."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from skillpack.provision.data import load


class Signature(NamedTuple):
    """A known failure: its name, what caused it and what mends it."""

    id: str
    cause: str
    mend: str


@cache
def _compiled() -> list[tuple[frozenset[str], re.Pattern[str], Signature]]:
    return [
        (
            frozenset(entry["where"]),
            re.compile(entry["match"], re.IGNORECASE | re.MULTILINE),
            Signature(entry["id"], entry["cause"], entry["mend"]),
        )
        for entry in load("signatures")
    ]


def recognise(text: str, *where: str) -> Signature | None:
    """Return the first known failure that ``text`` shows, or None.

    ``where`` limits the search to outputs of some tools (smi, docker, run, pull, conda, pip, import,
    apt); none means all.
    """
    for places, pattern, signature in _compiled():
        if (not where or places & set(where)) and pattern.search(text):
            return signature
    return None
