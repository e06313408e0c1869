"""The bytes of a SKILL.md: encoding, line ends, control characters."""

from __future__ import annotations

import codecs
import re

from skillpack.validate.source import BOM

_MARKS = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_UNMARKED = tuple(("---".encode(name), name) for name in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"))
_HIGH_RUN = re.compile(rb"[\x80-\xff]{3,}")
_TERMINAL = re.compile(r"\x1b\][^\n\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]")
"""Colours and links for terminals, as ECMA-48 and xterm write them."""
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")
_OUTER_SEPARATORS = re.compile("^( *)[\x85\u2028\u2029]+", re.MULTILINE)
_SEPARATORS = re.compile("[\x85\u2028\u2029]")


def mend_encoding(data: bytes) -> tuple[str, list[str]] | None:
    """Return the text of a file and the rules that its bytes broke, or None if nobody can tell what they mean.

    Bytes that are not UTF-8 are Windows-1252, if there is no UTF-8 beside them and they stand alone
    or in pairs, as accented letters in Western words do. Longer runs are another script's
    encoding, and stray bytes among UTF-8 are damage: both are left to a person.
    """
    for mark, encoding in (*_MARKS, *_UNMARKED):
        if data.startswith(mark):
            try:
                return data.decode(encoding).removeprefix(BOM), ["encoding-utf16"]
            except UnicodeDecodeError:
                return None
    broken = []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        if _HIGH_RUN.search(data) or not data.decode("utf-8", errors="ignore").isascii():
            return None
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError:
            return None
        broken.append("encoding-utf8")
    if text.startswith(BOM):
        text = text.lstrip(BOM)
        broken.append("encoding-bom")
    return text, broken


def mend_line_ends(text: str) -> tuple[str, list[str]]:
    """Return the text with LF line ends, and the rule that it broke. A lone CR is a line end where no LF is used."""
    if "\r" not in text:
        return text, []
    if "\r\n" in text:
        text, rule = re.sub(r"\r+\n", "\n", text), "line-ends-mixed"
        if "\r" not in text.partition("\n")[0]:
            return text, [rule]
    elif "\r" not in text.partition("\n")[0]:
        return text, []
    return text.replace("\r", "\n"), ["line-ends"]


def drop_controls(block: str) -> tuple[str, list[str]]:
    """Return a frontmatter without control characters, separators that few know as blanks, and the rule."""
    clean = _CONTROL.sub("", _TERMINAL.sub("", block.replace("\r", "\n")))
    clean = _SEPARATORS.sub(" ", _OUTER_SEPARATORS.sub(r"\1", clean))
    return clean, ["encoding-control"] if clean != block else []
