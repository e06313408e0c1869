"""Keys of the frontmatter: their case, those that stand twice, those that the specification does not know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import yaml

from skillpack.validate.clients.javascript import kind_of
from skillpack.validate.clients.spec import KEYS
from skillpack.validate.mend.edits import Edit, content_end, inline, line_span, quoted
from skillpack.validate.tree import Document, Node

_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_CASELESS = frozenset(KEYS) - {"allowed-tools"}
"""Keys whose case is mended. ``Allowed-Tools`` grants nothing as it stands, and no mend should."""


@lru_cache(maxsize=1)
def claude_keys() -> dict[str, str]:
    """Return the keys beyond the specification that Claude Code acts on, and what each does."""
    path = Path(__file__).with_name("claude_keys.yaml")
    known: dict[str, str] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return known


def mend_case(document: Document, folder: str) -> list[Edit]:
    """Write ``Name`` and the like in lower case."""
    pairs = document.root.pairs if document.root else []
    there = {key.value for key, _ in pairs}
    return [
        Edit(key.start, key.end, key.value.lower(), "key-unknown")
        for key, _ in pairs
        if key.plain and key.value.lower() in _CASELESS - there
    ]


def mend_duplicates(document: Document, folder: str) -> list[Edit]:
    """Delete what stands twice in the same words or says nothing; a second name goes: the folder decides."""
    if document.duplicate is None or document.root is None:
        return []
    edits = []
    for node in document.root.walk():
        if node.kind != "map" or node.style == "flow":
            continue
        kept: dict[str, Node] = {}
        for key, value in node.pairs:
            first = kept.setdefault(key.value, value)
            if first is value or key.kind != "scalar":
                continue
            if _empty(first):
                gone = next(pair for pair in node.pairs if pair[1] is first)
                kept[key.value] = value
            elif _empty(value) or (node is document.root and key.value == "name" and folder) or _same(first, value):
                gone = (key, value)
            else:
                continue
            start, end = line_span(document.text, *gone)
            if not document.text[start : gone[0].start].strip():
                edits.append(Edit(start, end, "", "yaml-duplicate"))
    return edits


def _empty(node: Node) -> bool:
    return kind_of(node) == "null"


def _same(one: Node, other: Node) -> bool:
    """Tell whether two values are alike in every way that a client could see."""
    mine, theirs = (
        [(node.kind, node.value, node.tag, node.plain and kind_of(node)) for node in root.walk()]
        for root in (one, other)
    )
    return mine == theirs


def unknown_keys(document: Document) -> list[tuple[Node, Node]]:
    """Return the pairs whose key is not of the specification."""
    pairs = document.root.pairs if document.root else []
    return [(key, value) for key, value in pairs if key.value not in KEYS]


def mend_unknown(document: Document, folder: str) -> list[Edit]:
    """Move keys that no client knows below ``metadata``, as text where they are no mappings: all of them or none."""
    text, root = document.text, document.root
    moved = unknown_keys(document)
    metadata = root.get("metadata") if root else None
    kind = kind_of(metadata)
    if root is None or not moved or kind not in ("undefined", "null", "object") or document.duplicate:
        return []
    if any(not key.plain or not _KEY.fullmatch(key.value) or key.value in claude_keys() for key, _ in moved):
        return []
    inner = {key.value: value for key, value in metadata.pairs} if metadata else {}
    if any(key.value in inner and not _same(inner[key.value], value) for key, value in moved):
        return []
    indent = metadata.pairs[0][0].column if metadata and metadata.pairs else root.column + 2
    lines = "".join(
        line + "\n" for key, value in moved if key.value not in inner for line in _moved(text, key, value, indent)
    )
    edits = [Edit(*line_span(text, key, value), "", "key-unknown", f"{key.value} to metadata") for key, value in moved]
    if metadata is None:
        added = Edit(len(text), len(text), f"{' ' * root.column}metadata:\n{lines}", "key-unknown", edits[-1].note)
        return [*edits, added]
    last = metadata.pairs[-1] if metadata.pairs else next(pair for pair in root.pairs if pair[1] is metadata)
    end = line_span(text, *last)[1]
    return [*edits, Edit(end, end, lines, "key-unknown", edits[-1].note)]


def _moved(text: str, key: Node, value: Node, indent: int) -> Iterator[str]:
    """Yield the lines of a pair for its place below ``metadata``."""
    head = f"{' ' * indent}{key.value}:"
    if value.kind == "seq" and all(item.kind == "scalar" and "," not in item.value for item in value.items):
        yield f"{head} {quoted(', '.join(item.value for item in value.items))}"
    elif value.plain and kind_of(value) != "string":
        yield f"{head} {quoted(value.value)}"
    elif value.kind == "scalar" and value.style not in ("|", ">"):
        yield f"{head} {inline(text, value)}"
    else:
        start = text.rfind("\n", 0, key.start) + 1
        lines = text[start : content_end(text, value)].split("\n")
        yield from (" " * (indent - key.column) + line if line.strip() else line for line in lines)
