"""Bytes and fences: encoding, line ends, the lines that enclose the frontmatter."""

from __future__ import annotations

import codecs
import re

from skillpack.validate.source import BOM

_FIELD = re.compile(r"^[A-Za-z_][\w .-]*:(?:\s|$)")
_FIRST_FIELD = re.compile(r"^(?:name|description)\s*:")
_LOOSE_FENCE = re.compile(r"^[ \t\u00a0]*-{3,}[ \t\u00a0]*$")
_CLOSING_TEXT = re.compile(r"^---+[ \t]*(?=#)")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def _windows(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    wrong = error.object[error.start : error.end]
    return wrong.decode("cp1252", errors="ignore") or wrong.decode("latin-1"), error.end


codecs.register_error("skills-windows", _windows)


def mend_encoding(data: bytes) -> tuple[str, list[str]]:
    """Return the text of a file and the rules that its bytes broke."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace").removeprefix(BOM), ["encoding-utf16"]
    text = data.decode("utf-8", errors="skills-windows")
    broken = []
    if text.encode() != data:
        broken.append("encoding-utf8")
    if text.startswith(BOM):
        text = text.removeprefix(BOM)
        broken.append("encoding-bom")
    return text, broken


def mend_line_ends(text: str) -> tuple[str, list[str]]:
    """Return the text with LF line ends, and the rule that it broke."""
    if "\r" not in text:
        return text, []
    rule = "line-ends-mixed" if "\r\n" in text else "line-ends"
    text = text.replace("\r\n", "\n")
    head = text.split("\n", 1)[0]
    return (text.replace("\r", "\n") if rule == "line-ends" or "\r" in head else text), [rule]


def mend_fences(text: str) -> tuple[str, list[str]]:
    """Return the text with both fences as they should be, and the rules that they broke."""
    broken = []
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return text, []
    if _LOOSE_FENCE.match(lines[first]):
        if first or lines[first] != "---":
            lines[: first + 1] = ["---"]
            broken.append("fence-open")
    elif _FIRST_FIELD.match(lines[first]) and "---" in (line.rstrip() for line in lines[first:]):
        lines[:first] = ["---"]
        broken.append("fence-open")
    else:
        return text, []
    while len(lines) > 1 and not lines[1].strip():
        del lines[1]
        broken.append("fence-open")
    if _close(lines):
        broken.append("fence-close")
    return "\n".join(lines), broken


def _close(lines: list[str]) -> bool:
    """Mend the closing fence in ``lines``; tell whether that changed them."""
    end = 1
    while end < len(lines) and _inside(lines[end]) and not _is_title(lines, end):
        end += 1
    if end < len(lines) and lines[end] == "---":
        return False
    if end < len(lines) and (_LOOSE_FENCE.match(lines[end]) or lines[end].rstrip() == "..."):
        lines[end] = "---"
        return True
    if end < len(lines) and _CLOSING_TEXT.match(lines[end]):
        lines[end : end + 1] = ["---", _CLOSING_TEXT.sub("", lines[end])]
        return True
    closed = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if (
        closed is not None
        and closed < end + 3
        and not any(line.startswith("#") or not line for line in lines[end:closed])
    ):
        return False  # a stray line in the frontmatter: not a matter of fences
    last = end
    while last > 1 and (not lines[last - 1].strip() or lines[last - 1].startswith("#")):
        last -= 1
    if not any(_FIRST_FIELD.match(line) for line in lines[1:last]):
        return False
    lines.insert(last, "---")
    return True


def _is_title(lines: list[str], number: int) -> bool:
    """Tell whether a line is a heading and no comment: blank lines stand around it."""
    around = lines[number - 1 : number] + lines[number + 1 : number + 2]
    return lines[number].startswith("#") and not any(line.strip() for line in around)


def _inside(line: str) -> bool:
    """Tell whether a line can belong to the frontmatter."""
    if _LOOSE_FENCE.match(line) and not line.startswith("  "):
        return False
    return not line.strip() or line[0] in " \t#" or line.startswith("- ") or bool(_FIELD.match(line))


def drop_controls(block: str) -> tuple[str, list[str]]:
    """Return a frontmatter without control characters, and the rule that it broke."""
    clean = _CONTROL.sub("", block)
    return clean, ["encoding-control"] if clean != block else []
