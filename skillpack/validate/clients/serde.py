"""How Rust's serde_yaml (0.9) fills a struct from a document, and what blanks are to Rust: Codex reads its files so.

A struct is described by readers: ``struct({"name": text, "tags": items(text)})``. A reader gets the
document and a node with aliases resolved; it returns what the field holds, or raises Mismatch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from skillpack.validate.tree import NULLS, Document, Fault, Node

Reader = Callable[[Document, Node], Any]

BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What Rust's ``trim`` takes off; Python's ``strip`` takes four control characters more."""

_RUN = re.compile(f"[{BLANKS}]+")
_CORE = "tag:yaml.org,2002:"
_NULL = f"{_CORE}null"
_FLAG = re.compile("(true|True|TRUE)|false|False|FALSE")
_TYPED = {
    _NULL: re.compile("~|null|Null|NULL"),
    f"{_CORE}bool": _FLAG,
    f"{_CORE}int": re.compile("[-+]?(?:0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+|[0-9]+)"),
    f"{_CORE}float": re.compile(
        r"[-+]?(?:\.inf|\.Inf|\.INF|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)|\.nan|\.NaN|\.NAN"
    ),
}
"""What a scalar must look like under a tag of YAML's core schema."""

MAX_DEPTH = 128
"""Collections within collections at which a value of any type is given up."""

_KINDS = {"seq": "a list", "map": "a mapping", "scalar": "text"}


class Mismatch(Exception):
    """A document that does not fit its reader, or is no YAML at all."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.problem)
        self.fault = fault
        self.path: list[str] = []
        """The fields on the way to the fault, the outermost first."""


def load(document: Document, reader: Reader) -> Any:
    """Return what a text's only document, a mapping, holds. Raises Mismatch."""
    root = document.root
    fault = document.fault or unknown_anchor(document)
    if fault is not None:
        raise Mismatch(fault)
    if document.documents > 1:
        raise Mismatch(Fault(0, 0, "it holds more than one YAML document", "yaml-documents"))
    if root is None or root.kind != "map":
        kind = _kind(root) if root else "nothing"
        raise Mismatch(Fault(0, 0, f"it is {kind}, not key: value lines", "frontmatter-mapping"))
    try:
        return reader(document, root)
    except Mismatch as mismatch:
        mismatch.fault.problem = f"{'.'.join(mismatch.path) or 'it'} {mismatch.fault.problem}"
        raise


def unknown_anchor(document: Document) -> Fault | None:
    """Return the first alias that no anchor stands before, or None."""
    anchors: set[str] = set()
    for node in document.root.walk() if document.root and document.odd else ():
        if node.kind == "alias" and node.value not in anchors:
            return Fault(node.line, node.column, f"unknown anchor {node.value}")
        if node.anchor:
            anchors.add(node.anchor)
    return None


def is_value(document: Document) -> bool:
    """Tell whether a document is a value of any type: no key twice, tags that fit, not too deep."""
    if document.root is None or document.documents > 1 or document.duplicate or unknown_anchor(document):
        return False
    pending = [(document.root, 1)]
    while pending:
        node, depth = pending.pop()
        if node.kind == "scalar" and node.tag in _TYPED and not _TYPED[node.tag].fullmatch(node.value):
            return False
        if node.kind in ("seq", "map") and depth > MAX_DEPTH:
            return False
        pending += [(inner, depth + 1) for inner in (*node.items, *(part for pair in node.pairs for part in pair))]
    return True


def text(document: Document, node: Node) -> str | None:
    """Read an optional text: any scalar, None for null."""
    if _is_null(node):
        return None
    if node.kind != "scalar":
        raise _misfit(node, f"is {_KINDS[node.kind]}, not text")
    return node.value


def flag(document: Document, node: Node) -> bool | None:
    """Read an optional boolean: ``true`` or ``false`` without quotes."""
    if _is_null(node):
        return None
    match = _FLAG.fullmatch(node.value) if node.kind == "scalar" and not node.style else None
    if match is None:
        raise _misfit(node, "is neither true nor false")
    return bool(match[1])


def choice(*names: str) -> Reader:
    """Return a reader of one of these words."""

    def read(document: Document, node: Node) -> str:
        if node.kind != "scalar" or (node.tag or "").startswith("!") or node.value not in names:
            raise _misfit(node, f"is none of {', '.join(names)}")
        return node.value

    return read


def items(reader: Reader) -> Reader:
    """Return a reader of a list; nothing at all is an empty one."""

    def read(document: Document, node: Node) -> list[Any]:
        if node.kind != "seq" and not _is_nothing(node):
            raise _misfit(node, f"is {_kind(node)}, not a list")
        return [reader(document, document.resolve(item)) for item in node.items]

    return read


def struct(readers: Mapping[str, Reader]) -> Reader:
    """Return a reader of a mapping into a dictionary of the fields that are there; other keys are passed over."""

    def read(document: Document, node: Node) -> dict[str, Any]:
        if node.kind != "map" and not _is_nothing(node):
            raise _misfit(node, f"is {_kind(node)}, not key: value lines")
        fields: dict[str, Any] = {}
        for key, value in node.pairs:
            name = document.resolve(key)
            if name.kind != "scalar":
                raise _misfit(key, "has a key that is not text")
            if name.value not in readers:
                continue
            if name.value in fields:
                raise _misfit(key, f"has the field {name.value} twice", "yaml-duplicate")
            try:
                fields[name.value] = readers[name.value](document, document.resolve(value))
            except Mismatch as mismatch:
                mismatch.path.insert(0, name.value)
                raise
        return fields

    return read


def optional(reader: Reader) -> Reader:
    """Return a reader that takes null for None."""

    def read(document: Document, node: Node) -> Any:
        return None if _is_null(node) else reader(document, node)

    return read


def _misfit(node: Node, problem: str, rule: str = "") -> Mismatch:
    return Mismatch(Fault(node.line, node.column, problem, rule))


def _is_null(node: Node) -> bool:
    if node.kind != "scalar" or node.style:
        return False
    if node.tag == _NULL and node.value and not _TYPED[_NULL].fullmatch(node.value):
        raise _misfit(node, "is tagged as null and is none")
    return node.tag in (None, _NULL) and node.value in NULLS


def _is_nothing(node: Node) -> bool:
    return node.kind == "scalar" and not node.style and not node.value


def _kind(node: Node) -> str:
    return "null" if node.kind == "scalar" and not node.style and node.value in NULLS else _KINDS[node.kind]


def one_line(value: str) -> str:
    """Return a text as Codex shows it: runs of blanks, line breaks among them, are one blank."""
    return _RUN.sub(" ", value).strip(" ")
