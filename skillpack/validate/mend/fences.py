"""The lines that enclose the frontmatter."""

from __future__ import annotations

import re

from skillpack.validate.clients.spec import KEYS
from skillpack.validate.tree import read_yaml

_FIELD = re.compile(r"^[A-Za-z_][\w .-]*:(?:\s|$)")
_FIRST_FIELD = re.compile(r"^(?:name|description)\s*:", re.IGNORECASE)
_DESCRIPTION = re.compile(r"^[\"']?description[\"']?\s*:", re.IGNORECASE)
_BLANK = "[ \t\u00a0\u3000]*"
_DASH = "[-\u2010-\u2015\u2212]"
_LOOSE_FENCE = re.compile(rf"^(?:{_BLANK}-{{3,}}|{_DASH}*[\u2010-\u2015\u2212]{_DASH}*){_BLANK}$")
_TWO_HYPHENS = re.compile(rf"^--{_BLANK}$")
_WITH_COMMENT = re.compile(rf"^---{_BLANK}[ \t](?P<comment>#.*)$")
_CLOSING_TEXT = re.compile(rf"^-{{3,}}{_BLANK}(?=#)")


def split(text: str) -> tuple[str, str] | None:
    """Return the lines between two fences as they should be and the text from the closing one on, or None."""
    end = text.find("\n---", 3)
    if text.startswith("---\n") and end >= 4 and text[end + 4 : end + 5] in ("\n", ""):
        return text[4 : end + 1], text[end + 1 :]
    return None


def mend_fences(text: str) -> tuple[str, list[str]]:
    """Return the text with both fences as they should be, and the rules that they broke."""
    lines = text.split("\n")
    opened = _open(lines)
    if opened is None:
        return text, []
    broken = ["fence-open"] if opened else []
    if _close(lines):
        broken.append("fence-close")
    return "\n".join(lines), broken


def _open(lines: list[str]) -> bool | None:
    """Mend the opening fence in ``lines``; tell whether that changed them, or None if there is no frontmatter."""
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return None
    follows = any(_FIRST_FIELD.match(line) for line in lines[first + 1 : first + 3])
    comment = _WITH_COMMENT.match(lines[first])
    fence, taken = ["---"], first + 1
    if comment:
        fence.append(comment["comment"])
    elif _FIRST_FIELD.match(lines[first]) and any(_ends(line) for line in lines[first:]):
        taken = first
    elif not _LOOSE_FENCE.match(lines[first]) and not (_TWO_HYPHENS.match(lines[first]) and follows):
        return None
    changed = lines[:taken] != fence
    lines[:taken] = fence
    while len(lines) > 1 and not lines[1].strip():
        del lines[1]
        changed = True
    return changed


def _ends(line: str) -> bool:
    return line.rstrip() == "---" or _CLOSING_TEXT.match(line) is not None


def _close(lines: list[str]) -> bool:
    """Mend the closing fence in ``lines``; tell whether that changed them."""
    end = 1
    while end < len(lines) and _inside(lines[end]) and not _is_title(lines, end):
        end += 1
    exact = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), len(lines))
    if exact > end and exact < len(lines) and not _is_body(lines[end:exact]):
        end = exact  # what stands before it are lines of the frontmatter that are no fields
    closed = next((number for number in range(end, len(lines)) if _closing(lines, number)), None)
    if closed is not None and (closed == end or not _is_body(lines[end - 1 : closed])):
        fence = _closing(lines, closed)
        changed = lines[closed : closed + 1] != fence
        lines[closed : closed + 1] = fence
        return changed
    last = end
    while last > 1 and (not lines[last - 1].strip() or lines[last - 1].startswith("#")):
        last -= 1
    last = next((number for number in range(2, last) if _body_begins(lines, number, last)), last)
    if not any(_DESCRIPTION.match(line) for line in lines[1:last]) or lines[last - 1].rstrip()[-1:] in ("|", ">", ":"):
        return False  # without a description, the fence would make nothing load
    fault = read_yaml("\n".join(lines[1:last])).fault
    if fault is not None and "quoted scalar" in fault.problem:
        return False  # the fence would stand inside of a value
    if lines[last - 1].endswith("---"):
        lines[last - 1] = lines[last - 1][:-3].rstrip()  # the fence stands at the end of the last value
    lines.insert(last, "---")
    return True


def _closing(lines: list[str], number: int) -> list[str]:
    """Return the closing fence that a line was meant for, with the heading that follows it on the line, or nothing."""
    line = lines[number]
    if _CLOSING_TEXT.match(line):
        return ["---", _CLOSING_TEXT.sub("", line)]
    last = not "".join(lines[number + 1 : number + 2]).strip()
    typo = line.rstrip() == "..." or (_TWO_HYPHENS.match(line) and last)
    return ["---"] if typo or _LOOSE_FENCE.match(line) else []


def _is_body(lines: list[str]) -> bool:
    """Tell whether lines before a ``---`` are text of the body: paragraphs or a heading, and no field among them."""
    text = "\n".join(lines).rstrip()
    apart = re.search(r"^[ \t]*\n(?=\S)|^#", text, re.MULTILINE)
    return apart is not None and not any(line.partition(":")[0] in KEYS for line in lines)


def _body_begins(lines: list[str], number: int, last: int) -> bool:
    """Tell whether a blank line stands behind name and description, and no field of the specification behind it."""
    if lines[number].strip() or lines[number + 1][:1] in (" ", "\t", ""):
        return False
    first = {line.partition(":")[0].strip().lower() for line in lines[1:number] if _FIRST_FIELD.match(line)}
    return len(first) == 2 and not any(line.partition(":")[0] in KEYS for line in lines[number:last])


def _is_title(lines: list[str], number: int) -> bool:
    """Tell whether a line is a heading and no comment: blank lines stand around it."""
    around = lines[number - 1 : number] + lines[number + 1 : number + 2]
    return lines[number].startswith("#") and not any(line.strip() for line in around)


def _inside(line: str) -> bool:
    """Tell whether a line can belong to the frontmatter."""
    if _LOOSE_FENCE.match(line) and not line.startswith("  "):
        return False
    return not line.strip() or line[0] in " \t#" or line.startswith("- ") or bool(_FIELD.match(line))
