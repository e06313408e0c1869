"""YAML 1.2 as the ``yaml`` package of npm (2.x, strict) and Bun's parser read it.

Both differ from libyaml in the same few places, which were found by reading many files with all
three: a value over several lines must be indented, an alias must have its anchor, odd characters
are just characters, a line of blanks may hold tabs. Where the two differ, ``bun`` tells which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from skillpack.validate.clients import shield
from skillpack.validate.clients.javascript import CORE
from skillpack.validate.tree import Document, Fault, Node

_ANCHOR = re.compile(r"(?<=[ \t])&[^\s,\[\]{}]+")
_TAG = re.compile(r"(?<=[ \t])!(?!<)[^\s,\[\]{}!\"%^|`\\]+(?=\s|$)")
_TAG_OF_BUN = re.compile(r"(?<=[ \t])!(?=[A-Za-z0-9-])[^\s,\[\]{}!\"%|`]+(?=\s|$)")
_KNOWN_TO_BUN = re.compile(rf"!|(?:!|{re.escape(CORE)})[A-Za-z0-9-].*|(?!!)\S+:.*")
_END = re.compile(r"^\.\.\.\s*$", re.MULTILINE)
_EMPTY_KEY = re.compile(r"(^ *(?:- +)*|[\[{,] *):(?=[ \t\n]|$)", re.MULTILINE)
_EMPTY_VALUE = re.compile(r":(?=[,\[\]{}])")
_FLOW_COLON = re.compile(r"([\[{,] *):(?=[^\s,\]}])")
_LEADING_COMMA = re.compile(r"(^ *(?:- +)*|: +),", re.MULTILINE)
_TAB_CONTENT = re.compile(r"(?<=\n)( +)\t(?=[ \t]*\S)")
_TAB_CLOSE = re.compile(r"^\t[ \t]*(?=[\]}])", re.MULTILINE)
_HEADER = re.compile(r"(?:^|[ \t])[|>][-+\d]{0,2}[ \t]*(?:[ \t]#.*)?$")


def read_yaml12(read: Callable[[str], Document], text: str, *, bun: bool = False) -> Document:
    """Return the reading of ``text`` by npm's ``yaml``, or by Bun; ``read`` is libyaml's."""
    document = read(shield.put(text))
    if bun and document.fault is not None and "<document start>" in document.fault.problem and _END.search(text):
        return Document(document.text, documents=2)  # a list of documents to Bun
    if document.fault is not None:
        laxer = _laxer(document.text, document.fault, bun)
        if laxer == document.text:
            return document
        document = read(laxer)
    fault = document.fault or _fault(document, bun)
    return Document(document.text, fault=fault) if fault else document


def _laxer(text: str, fault: Fault, bun: bool) -> str:
    """Return ``text`` with what only libyaml minds put in a way that it takes."""
    if "scanning a block scalar" in fault.problem:
        return _TAB_CONTENT.sub(lambda match: match[1] + shield.TAB, text)
    if "scanning a quoted scalar" in fault.problem and text.endswith('\\"') and not bun:
        return text + '"'  # the package looks at the last character only
    if "unexpected ':'" in fault.problem:
        return _EMPTY_VALUE.sub(shield.COLON, text)
    lines = text.split("\n")
    following = lines[fault.line + 1] if fault.line + 1 < len(lines) else ""
    if not bun and re.match(r" +:( |$)", lines[min(fault.line, len(lines) - 1)]) and not following.startswith(" "):
        lines[fault.line] = '""' + lines[fault.line].lstrip()
        return "\n".join(lines)
    text = _TAB_CLOSE.sub(lambda match: " " * len(match[0]), text)
    text = _ANCHOR.sub(lambda match: "&" + "a" * (len(match[0]) - 1), text)
    text = (_TAG_OF_BUN if bun else _TAG).sub(lambda match: "!" + "t" * (len(match[0]) - 1), text)
    text = _EMPTY_KEY.sub(r'\1"":', text)
    text = _FLOW_COLON.sub(r"\1" + shield.COLON, text)
    if bun:
        text = _LEADING_COMMA.sub(r"\1" + shield.COMMA, text)
    return _without_tab_lines(text)


def _without_tab_lines(text: str) -> str:
    """Return ``text`` with lines of nothing but blanks emptied, but for those that a block scalar ends at."""
    if "\t" not in text:
        return text
    lines = text.split("\n")
    scalar = -1  # indentation of the block scalar's header, or -1 outside of one
    for number, line in enumerate(lines):
        content = line.strip(" \t")
        indent = len(line) - len(line.lstrip(" "))
        if not content or (line[indent] == "\t" and content[0] == "#"):
            if scalar < 0:
                lines[number] = ""
            continue
        if scalar < 0 or indent <= scalar:
            scalar = indent if _HEADER.search(line) else -1
    return "\n".join(lines)


def _fault(document: Document, bun: bool) -> Fault | None:
    """Return what both refuse although libyaml reads it."""
    root = document.root
    if document.documents > 1 and not bun:
        return Fault(0, 0, "it holds more than one YAML document", "yaml-documents")
    if root is None or not (document.odd or document.duplicate):
        return None
    anchors: set[str] = set()
    lines = [line.removesuffix("\r") for line in document.text.split("\n")]
    for node, indent in _indented(root):
        if node.kind == "alias" and node.value not in anchors:
            return Fault(node.line, node.column, f"unresolved alias {node.value}")
        if node.anchor:
            anchors.add(node.anchor)
        if node.tag and (node.tag.startswith(f"{CORE}!") or (bun and not _KNOWN_TO_BUN.fullmatch(node.tag))):
            return Fault(node.line, node.column, f"unknown tag {node.tag.removeprefix(CORE)}", "yaml-tag")
        seen: set[str] = set()
        for key, _ in node.pairs if not bun else ():
            if key.kind == "scalar" and key.value in seen:
                return Fault(key.line, key.column, f"map keys must be unique: {key.value}", "yaml-duplicate")
            seen.add(key.value)
        if node.end_line > node.line and node.style in ("flow", "'", '"'):
            for number in range(node.line + 1, node.end_line + 1):
                if not _deep_enough(lines[number], indent, node, number):
                    return Fault(number, 0, "a value over several lines must be indented", "yaml-indent")
    return None


def _deep_enough(line: str, indent: int, node: Node, number: int) -> bool:
    spaces = len(line) - len(line.lstrip(" "))
    if spaces >= indent or spaces == len(line):
        return True
    if node.style != "flow":
        return False
    return line[spaces] == "#" or (number == node.end_line and spaces == indent - 1 and line[spaces] in "]}")


def _indented(root: Node) -> Iterator[tuple[Node, int]]:
    """Yield every node with the indentation that its further lines need, in the order of the text."""
    pending = [(root, 0)]
    while pending:
        node, indent = pending.pop()
        yield node, indent
        inner = indent if node.style == "flow" else node.column + 1
        children = [(item, inner) for item in node.items]
        for key, value in node.pairs:
            children += ((key, inner), (value, inner))
        pending.extend(reversed(children))
