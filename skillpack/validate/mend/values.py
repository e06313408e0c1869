"""Lines of the frontmatter that are no YAML as they stand: blanks, colons, quotes."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from skillpack.validate.clients.spec import KEYS
from skillpack.validate.mend.edits import quoted
from skillpack.validate.tree import read_yaml

_PAIR = re.compile(r"^(?P<head>[ ]*(?:- +)?[A-Za-z_][\w.-]*:)(?P<gap>[ \t\u00a0]+)(?P<value>\S.*?)[ \t]*$")
_ITEM = re.compile(r"^(?P<head>[ ]*(?:- +)*-)(?P<gap> +)(?P<value>[^\s-].*?)[ \t]*$")
_BLOCK = re.compile(r"^(?P<head>[ ]*[A-Za-z_][\w.-]*: +[|>])[ \t]*(?P<text>[^#\s\d+-].*)$")
_HEADER = re.compile(r"(?::|-)[ \t]+[|>][-+\d]{0,2}[ \t]*(?:[ \t]#.*)?$")
_ROOT_KEY = re.compile(r"[A-Za-z_][\w.-]*:(?:\s|$)")
_FIELD = re.compile(rf" +(?:{'|'.join(KEYS)}):(?:\s|$)")
_PROPERTIES = re.compile(r"(?:[&!]\S*\s*)+")
_CLOSING = {"[": "]", "{": "}"}
_BLANKS = "\t\u00a0\u3000"
_GAP = re.compile(rf"^(?P<head>[ ]*(?:- +)?[A-Za-z_][\w-]*) ?:[ ]*[{_BLANKS}][ {_BLANKS}]*")
_NO_GAP = re.compile(rf"^(?P<key>{'|'.join(KEYS)})(?::(?=[^\s:/])|[ ]?\uff1a)[ ]*", re.IGNORECASE)


def _outside_blocks(lines: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of the lines that are not the text of a block scalar."""
    scalar = -1  # indentation of the block scalar's header, or -1 outside of one
    for number, line in enumerate(lines):
        if scalar >= 0 and (not line.strip() or _indent(line) > scalar):
            continue
        scalar = _indent(line) if _HEADER.search(line) else -1
        yield number


def mend_blanks(block: str) -> tuple[str, list[str]]:
    """Make blanks of tabs and of wide or no-break spaces where YAML wants blanks: before a key and behind its colon."""
    broken, lines = [], block.split("\n")
    for number in _outside_blocks(lines):
        line = lines[number]
        indent = line[: len(line) - len(line.lstrip(f" {_BLANKS}"))]
        if indent.strip(" "):
            content = line[len(indent) :]
            line = re.sub(rf"[{_BLANKS}]", lambda match: " " if match[0] == "\u00a0" else "  ", indent) + content
            line = line if content else ""
            broken.append("yaml-tab" if "\t" in indent else "yaml-blank")
        if gap := _GAP.match(line):
            broken.append("yaml-tab" if "\t" in gap[0] else "yaml-blank")
            line = f"{gap['head']}: {line[gap.end() :]}".rstrip()
        elif missing := _NO_GAP.match(line):
            broken.append("yaml-invalid")
            line = f"{missing['key']}: {line[missing.end() :]}".rstrip()
        lines[number] = line
    return "\n".join(lines), broken


def mend_indents(block: str) -> tuple[str, list[str]]:
    """Take back the indentation of a field of the specification that stands below no key, and indent a block's text."""
    broken, lines = [], block.split("\n")
    open_key = ""  # the last line at the root: it takes indented lines only where it ends with its colon
    rooted = any(_ROOT_KEY.match(line) for line in lines)
    for number in _outside_blocks(lines):
        line = lines[number]
        if rooted and _FIELD.match(line) and not open_key.endswith(":"):
            lines[number] = line.lstrip(" ")
            broken.append("yaml-indent")
        if line.strip() and not line.startswith("#") and (line[0] != " " or lines[number] != line):
            open_key = lines[number].split(" #")[0].rstrip()
    for number, line in enumerate(lines):
        if _HEADER.search(line) and line[:1] not in (" ", "#", "-"):
            broken += _indent_text(lines, number + 1)
    return "\n".join(lines), broken


def _indent_text(lines: list[str], first: int) -> list[str]:
    """Indent the lines from ``first`` on up to the next key, if the first that is not blank stands in column 0."""
    start = next((number for number in range(first, len(lines)) if lines[number].strip()), None)
    if start is None or lines[start][0] in " #-" or _ROOT_KEY.match(lines[start]):
        return []
    end = next((number for number in range(start, len(lines)) if _ROOT_KEY.match(lines[number])), len(lines))
    lines[start:end] = ["  " + line if line.strip() else line for line in lines[start:end]]
    return ["yaml-indent"]


def mend_quotes(block: str) -> tuple[str, list[str]]:
    """Quote the values that are no YAML by themselves, and move text behind a block marker down."""
    if read_yaml(block).fault is None:
        return block, []
    broken: list[str] = []
    lines, out = deque(block.split("\n")), list[str]()
    scalar = -1  # indentation of the block scalar's header, or -1 outside of one
    while lines:
        line = lines.popleft()
        indent = _indent(line)
        if scalar >= 0 and (not line.strip() or indent > scalar):
            out.append(line)
            continue
        moved, pair = _BLOCK.match(line), _PAIR.match(line) or _ITEM.match(line)
        scalar = indent if moved or _HEADER.search(line) else -1
        if moved:
            deeper = _indent(lines[0]) if lines and lines[0].strip() else 0
            out += [moved["head"], " " * (deeper if deeper > indent else indent + 2) + moved["text"]]
            broken.append("yaml-block")
            continue
        if pair and pair["value"][0] in "\"'" and (rest := _to_closing_quote(lines, pair["value"])):
            out += [line, *rest]
            _drop(lines, len(rest))
            continue
        more = _more(lines, indent, pair["value"]) if pair else []
        value = " ".join([pair["value"], *(part.strip() for part in more)]) if pair else ""
        loose = any(_indent(part) <= indent for part in more) and value[0] not in _CLOSING
        if pair and (loose or _breaks(value)):
            _drop(lines, len(more))
            line = f"{pair['head']} {_requoted(value)}"
            broken.append("yaml-colon")
        out.append(line)
    return "\n".join(out), broken


def _drop(lines: deque[str], count: int) -> None:
    for _ in range(count):
        lines.popleft()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _to_closing_quote(lines: Sequence[str], value: str) -> list[str]:
    """Return the lines at the head of ``lines`` that end a value which is quoted over several lines."""
    if len(value) > 1 and value.endswith(value[0]):
        return []
    for number, line in enumerate(lines):
        if line.rstrip().endswith(value[0]) and value.count(value[0]) == 1:
            return list(islice(lines, number + 1))
        if re.match(r"[A-Za-z_][\w.-]*:(?:\s|$)", line):
            break
    return []


def _more(lines: Sequence[str], indent: int, value: str) -> list[str]:
    """Return the lines at the head of ``lines`` that carry on a value, which may end with a bracket in column 0."""
    if value[0] in "\"'|>" or _PROPERTIES.fullmatch(value):
        return []
    if value[0] not in _CLOSING:
        return _continuation(lines, indent)
    end = next((number for number, line in enumerate(lines) if _ROOT_KEY.match(line)), len(lines))
    closed = next((n for n, line in enumerate(islice(lines, end)) if line.rstrip().endswith(_CLOSING[value[0]])), None)
    if closed is not None and not value.endswith(_CLOSING[value[0]]):
        return list(islice(lines, closed + 1))
    return list(takewhile(lambda line: line.strip() and _indent(line) > indent, lines))


def _continuation(lines: Sequence[str], indent: int) -> list[str]:
    """Return the lines at the head of ``lines`` that carry on an unquoted value."""
    more: list[str] = []
    for line in lines:
        loose = indent == 0 and line[:1] not in ("#", "-") and not re.search(r":(?:\s|$)", line)
        carried = line.strip() and (_indent(line) > indent or loose)
        if not carried:
            break
        more.append(line)
    return more


def _breaks(value: str) -> bool:
    """Tell whether a value, alone on its line, is not the one scalar or collection that it seems to be."""
    if value[0] in "|>":
        return not _HEADER.search(f"key: {value}")
    document = read_yaml(f"key: {value}")
    root = document.root
    return document.fault is not None or root is None or root.kind != "map" or document.documents > 1


def _requoted(value: str) -> str:
    """Return a broken value in quotes; an inner pair of quotes around all of it is dropped."""
    if value[0] in "\"'" and value[-1] == value[0] and len(value) > 1:
        value = value[1:-1].replace('\\"', '"')
    return quoted(value)
