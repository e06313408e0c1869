"""The text of YAML 1.2's scalars: lines folded, escapes replaced, indentation taken off."""

from __future__ import annotations

import re

_FOLD = re.compile(r"[ \t]*\n[ \t\n]*")
_DOUBLE = re.compile(r"\\(?:\n[ \t]*|x.{0,2}|u.{0,4}|U.{0,8}|.)|[ \t]*\n[ \t\n]*", re.DOTALL)
_HEX = re.compile(r"[0-9A-Fa-f]+")
_ESCAPES = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "\t": "\t",
    "v": "\v",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
}
_DIGITS = {"x": 2, "u": 4, "U": 8}


def fold(text: str) -> str:
    """Return a plain or single-quoted text with one line break as a blank, more as one break less."""
    return _FOLD.sub(lambda match: _folded(match[0]), text)


def _folded(gap: str) -> str:
    return "\n" * (gap.count("\n") - 1) or " "


def unescape(text: str) -> str:
    """Return what stands between double quotes as it is meant. Raises ValueError for an escape that is none."""

    def replaced(match: re.Match[str]) -> str:
        found = match[0]
        if found[0] != "\\":
            return _folded(found)
        if found[1] == "\n":
            return ""
        digits = _DIGITS.get(found[1])
        if digits is None:
            if found[1] not in _ESCAPES:
                raise ValueError(found)
            return _ESCAPES[found[1]]
        if len(found) < digits + 2 or not _HEX.fullmatch(found, 2) or int(found[2:], 16) > 0x10FFFF:
            raise ValueError(found)
        return chr(int(found[2:], 16))

    return _DOUBLE.sub(replaced, text)


def block_text(lines: list[str], indent: int, *, folded: bool, chomp: str) -> str:
    """Return the value of a block scalar.

    ``lines`` are those of its content, indentation included and line breaks not; those at the end
    that are blank are chomped: ``-`` all, ``+`` none, else all but one line break.
    """
    content = [line[indent:] for line in lines]
    end = len(content)
    while end and not content[end - 1]:
        end -= 1
    text = _folded_lines(content[:end]) if folded else "\n".join(content[:end])
    if chomp == "-":
        return text
    if chomp == "+":
        return text + "\n" * (len(content) - end + (end > 0))
    return text + "\n" if end else ""


def _folded_lines(lines: list[str]) -> str:
    """Join lines by blanks, but for blank lines and for those that are indented further."""
    text, breaks, deeper = "", 0, False
    for number, line in enumerate(lines):
        if not line:
            breaks += 1
            continue
        indented = line[0] in " \t"
        if number == breaks:
            text = "\n" * breaks  # nothing before it but blank lines
        elif indented or deeper:
            text += "\n" * (breaks + 1)
        else:
            text += "\n" * breaks or " "
        text += line
        breaks, deeper = 0, indented
    return text
