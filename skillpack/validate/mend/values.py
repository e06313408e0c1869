"""Values of the frontmatter: quotes, tabs, flow style, indentation, name."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Sequence
from itertools import islice

from skillpack.validate.clients.javascript import kind_of
from skillpack.validate.tree import Document, Node, read_yaml

_PAIR = re.compile(r"^(?P<head>[ ]*(?:- +)?[A-Za-z_][\w.-]*:)(?P<gap>[ \t\u00a0]+)(?P<value>\S.*?)[ \t]*$")
_ITEM = re.compile(r"^(?P<head>[ ]*(?:- +)*-)(?P<gap> +)(?P<value>[^\s-].*?)[ \t]*$")
_BLOCK = re.compile(r"^(?P<head>[ ]*[A-Za-z_][\w.-]*: +[|>])[ \t]*(?P<text>[^#\s\d+-].*)$")
_HEADER = re.compile(r":[ \t]+[|>][-+\d]{0,2}[ \t]*(?:#.*)?$")
_PORTABLE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def quoted(text: str) -> str:
    """Return a text as a double-quoted scalar that every client reads alike."""
    return json.dumps(text, ensure_ascii=False)


def mend_tabs(block: str) -> tuple[str, list[str]]:
    """Turn tabs of the indentation into two blanks each, and no-break spaces behind a colon into blanks."""
    broken, lines = [], block.split("\n")
    for number, line in enumerate(lines):
        content = line.lstrip(" \t")
        indent = line[: len(line) - len(content)]
        if "\t" in indent:
            lines[number] = indent.replace("\t", "  ") + content if content else ""
            broken.append("yaml-tab")
        if re.match(r"\s*[A-Za-z_][\w-]*:\u00a0", line):
            lines[number] = lines[number].replace(":\u00a0", ": ", 1)
            broken.append("yaml-blank")
    return "\n".join(lines), broken


def mend_quotes(block: str) -> tuple[str, list[str]]:
    """Quote the values that are no YAML by themselves, and move text behind a block marker down."""
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
        more = _continuation(lines, indent) if pair and pair["value"][0] not in "\"'|>[{" else []
        value = " ".join([pair["value"], *(part.strip() for part in more)]) if pair else ""
        if pair and (_breaks(value) or any(_indent(part) <= indent for part in more)):
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
        return False
    document = read_yaml(f"key: {value}")
    root = document.root
    if document.fault is not None or root is None or root.kind != "map" or document.documents > 1:
        return True
    target = root.pairs[0][1]
    return target.kind == "alias" or target.anchor is not None or (target.tag is not None and value[0] == "!")


def _requoted(value: str) -> str:
    """Return a broken value in quotes; an inner pair of quotes around all of it is dropped."""
    if value[0] in "\"'" and value[-1] == value[0] and len(value) > 1:
        value = value[1:-1].replace('\\"', '"')
    return quoted(value)


def mend_nodes(block: str, name: str, ignored: frozenset[str]) -> tuple[str, list[str]]:
    """Mend what needs the block read: types, a comment in a description, flow style, indentation, the name."""
    document = read_yaml(block)
    root = document.root
    if document.fault is not None or root is None or root.kind != "map" or root.style == "flow":
        return block, []
    edits = _name_edits(document, name)
    for key, value in root.pairs:
        if key.value != "name" or not edits:
            edits += _value_edits(document, key.value, value)
    edits = [edit for edit in edits if edit[3] not in ignored]
    for start, end, new, _ in sorted(edits, reverse=True):
        block = block[:start] + new + block[end:]
    return block, [rule for _, _, _, rule in edits]


def _value_edits(document: Document, key: str, value: Node) -> list[tuple[int, int, str, str]]:
    text = document.text
    if value.end_line > value.line and value.style in ("'", '"', "flow"):
        return _indent_edits(text, value)
    if value.style == "flow" and key == "description" and not text.startswith("{{", value.start):
        return [(value.start, value.end, quoted(text[value.start : value.end]), "description-type")]
    if value.style == "flow" and (value.pairs or value.items):
        return _flow_edits(text, value, as_text=key == "metadata")
    if value.kind == "map" and key == "metadata":
        return [
            (item.start, item.end, quoted(item.value), "metadata-values")
            for _, item in value.pairs
            if item.plain and kind_of(item) in ("number", "boolean")
        ]
    if key in ("name", "description") and value.plain and value.line == value.end_line:
        if kind_of(value) in ("number", "boolean"):
            return [(value.start, value.end, quoted(value.value), f"{key}-type")]
        end = text.find("\n", value.end)
        rest = text[value.end : end if end >= 0 else len(text)]
        if key == "description" and value.value and rest.lstrip().startswith("#"):
            return [(value.start, value.end + len(rest), quoted(value.value + rest.rstrip()), "description-comment")]
    return []


def _indent_edits(text: str, value: Node) -> list[tuple[int, int, str, str]]:
    """Indent the further lines of a value over several lines that begin in column 0."""
    starts = [place + 1 for place in range(value.start, value.end) if text[place] == "\n"]
    return [(start, start, "  ", "yaml-indent") for start in starts if not text[start : start + 1].isspace()]


def _flow_edits(text: str, value: Node, *, as_text: bool) -> list[tuple[int, int, str, str]]:
    """Write a one-line list or mapping of scalars as lines."""
    leaves = value.items or [item for pair in value.pairs for item in pair]
    if (
        any(leaf.kind != "scalar" or leaf.tag or leaf.anchor for leaf in leaves)
        or text[value.end :].split("\n")[0].strip()
    ):
        return []
    source = [text[leaf.start : leaf.end] if leaf.value else '""' for leaf in leaves]
    if as_text:
        source = [
            quoted(leaf.value) if kind_of(leaf) != "string" else part for leaf, part in zip(leaves, source, strict=True)
        ]
    if value.items:
        lines = [f"\n  - {item}" for item in source]
    else:
        lines = [f"\n  {key}: {item}" for key, item in zip(source[::2], source[1::2], strict=True)]
    start = len(text[: value.start].rstrip(" "))
    return [(start, value.end, "".join(lines), "yaml-flow")]


def _name_edits(document: Document, folder: str) -> list[tuple[int, int, str, str]]:
    if not _PORTABLE.fullmatch(folder) or len(folder) > 64:
        return []
    written = folder if kind_of(Node("scalar", 0, 0, 0, value=folder)) == "string" else quoted(folder)
    root = document.root
    found = next(((key, value) for key, value in root.pairs if key.value == "name"), None) if root else None
    if found is None:
        return [(0, 0, f"name: {written}\n", "name-missing")]
    value = found[1]
    if (
        (value.kind == "scalar" and value.value == folder)
        or value.kind == "alias"
        or value.anchor
        or value.style in ("|", ">")
    ):
        return []
    if value.kind == "scalar" and not value.value:
        return [(found[0].end, value.end, f": {written}", "name-missing")]
    return [(value.start, value.end, written, "name-folder")] if value.line == value.end_line else []
