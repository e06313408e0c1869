"""Characters that libyaml refuses or takes for line breaks, and YAML 1.2's parsers do not.

They are swapped for characters of a private area before libyaml reads a text, and back in what it read.
"""

from __future__ import annotations

import re

_ODD = "".join(map(chr, (*range(9), 11, 12, *range(14, 32), *range(127, 160), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)))
TAB, COMMA, COLON = "\uf6fd", "\uf6fe", "\uf6ff"
"""Stand for characters that belong to a value where libyaml takes them for syntax."""

_PUT = {ord(character): 0xF700 + number for number, character in enumerate(_ODD)}
_TAKE = {ord(TAB): "\t", ord(COMMA): ",", ord(COLON): ":"} | {swapped: original for original, swapped in _PUT.items()}
_ANY = re.compile(f"[{re.escape(_ODD)}]")


def put(text: str) -> str:
    """Return ``text`` with the odd characters swapped, position for position."""
    return text.translate(_PUT) if _ANY.search(text) else text


def take(text: str) -> str:
    """Return ``text`` with the odd characters back."""
    return text if text.isascii() else text.translate(_TAKE)
