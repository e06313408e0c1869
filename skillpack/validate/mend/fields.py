"""Fields of the specification: name, description and the other texts, metadata."""

from __future__ import annotations

import re

from skillpack.validate.clients.javascript import kind_of
from skillpack.validate.clients.spec import MAX_COMPATIBILITY, MAX_DESCRIPTION, normal_name
from skillpack.validate.mend.edits import (
    Edit,
    block_lines,
    content_end,
    has_comment,
    line_span,
    quoted,
    size,
    source_of,
)
from skillpack.validate.mend.names import allowed, folder_for
from skillpack.validate.tree import Document, Node, read_yaml

_KEY = re.compile(r"[A-Za-z_][\w.-]*")


def _pair(document: Document, key: str) -> tuple[Node, Node] | None:
    pairs = document.root.pairs if document.root else []
    return next((pair for pair in pairs if pair[0].value == key), None)


def mend_name(document: Document, folder: str) -> list[Edit]:
    """Let the name be the folder's, where the folder has one that will do."""
    found, wanted = _pair(document, "name"), normal_name(folder)
    value = document.resolve(found[1]) if found else None
    written = value.value if value is not None and value.kind == "scalar" else ""
    if not allowed(wanted) or folder_for(folder, written) != folder:
        return []
    text = wanted if kind_of(Node("scalar", 0, 0, 0, value=wanted)) == "string" else quoted(wanted)
    if found is None or document.root is None:
        column = document.root.column if document.root else 0
        return [Edit(0, 0, f"{' ' * column}name: {text}\n", "name-missing")]
    if not written.strip():
        rule = "name-type" if value and value.kind != "scalar" else "name-missing"
    elif kind_of(value) != "string" and written == wanted:
        rule = "name-type"
    elif normal_name(written) != wanted:
        rule = "name-folder"
    elif written != written.strip():
        rule = "name-space"
    else:
        return []
    note = f"was {' '.join(written.split())}" if rule == "name-folder" else ""
    return [_replaced(document.text, *found, text, rule, note)]


def _replaced(text: str, key: Node, value: Node, new: str, rule: str, note: str = "") -> Edit:
    """Return the edit that puts a one-line value behind a key's colon, in the place of whatever stands there."""
    return Edit(_colon(text, key), max(content_end(text, value), _colon(text, key)), f" {new}", rule, note)


def _colon(text: str, key: Node) -> int:
    return text.index(":", key.end) + 1


def mend_texts(document: Document, folder: str) -> list[Edit]:
    """Make text of what is due to be text: word for word for the description, items with commas for the others."""
    edits = []
    for name in ("description", "compatibility", "license"):
        found = _pair(document, name)
        if found is None or found[1].kind == "alias" or found[1].tag:
            continue
        key, value = found
        if value.kind == "scalar":
            if name == "description" and kind_of(value) in ("number", "boolean"):
                edits.append(_replaced(document.text, key, value, quoted(value.value), "description-type"))
            elif name == "description" and kind_of(value) == "null":
                edits += _behind_hash(document.text, key, value)
        elif has_comment(document.text, key.end, content_end(document.text, value), value.walk()):
            continue
        elif name == "description":
            edits += _word_for_word(document.text, key, value)
        elif value.style == "flow" or name == "compatibility":
            edits += _joined(document, key, value, "compatibility" if name == "compatibility" else "license-type")
    return edits


def _behind_hash(text: str, key: Node, value: Node) -> list[Edit]:
    """Take what stands behind a ``#`` for the description where there is no other: without one nothing loads."""
    start, end = _colon(text, key), line_span(text, key, value)[1]
    comment = text[start:end].strip()
    return [Edit(start, start + len(text[start:end].rstrip()), f" {quoted(comment)}", "description-comment")] * (
        comment.startswith("#") and len(comment) > 1
    )


def _word_for_word(text: str, key: Node, value: Node) -> list[Edit]:
    """Keep a description that is a list or a mapping as the text that stands there."""
    if value.style == "flow":
        source = " ".join(source_of(text, value).split())
        rule = "yaml-placeholder" if source.startswith("{{") else "description-type"
        return [_replaced(text, key, value, quoted(source), rule)]
    if not (value.items or value.pairs) or value.line == key.line:
        return []
    start = text.rfind("\n", 0, value.start) + 1
    deeper = "" if value.column > key.column else "  "
    lines = [deeper + line if line.strip() else line for line in text[start : content_end(text, value)].split("\n")]
    return [Edit(_colon(text, key), content_end(text, value), "\n".join([" |", *lines]), "description-type")]


def _joined(document: Document, key: Node, value: Node, rule: str) -> list[Edit]:
    """Write a list or mapping of scalars as one text."""
    leaves = value.items or [leaf for pair in value.pairs for leaf in pair]
    leaves = [document.resolve(leaf) for leaf in leaves]
    if not leaves or any(leaf.kind != "scalar" for leaf in leaves):
        return []
    parts = [leaf.value for leaf in leaves]
    if value.pairs:
        parts = [f"{name}: {part}" for name, part in zip(parts[::2], parts[1::2], strict=True)]
    joined = ", ".join(parts)
    return [_replaced(document.text, key, value, quoted(joined), rule)] if len(joined) <= MAX_COMPATIBILITY else []


def mend_metadata(document: Document, folder: str) -> list[Edit]:
    """Make a mapping of metadata that is the text of one, or a list of them, and text of its numbers and booleans."""
    found = _pair(document, "metadata")
    if found is None or document.root is None:
        return []
    key, value = found
    inner, target = document, value
    if value.kind == "scalar" and kind_of(value) == "string":
        inner = read_yaml(value.value)
        if inner.root is None or inner.fault or inner.duplicate:
            return []
        target = inner.root
    if target.kind == "map" and inner is document:
        return [
            Edit(item.start, item.end, quoted(item.value), "metadata-values")
            for _, item in value.pairs
            if item.plain and kind_of(item) in ("number", "boolean") and target.style != "flow"
            if _.value != "internal"
        ]
    pairs = target.pairs or merged(target)
    if not pairs or any(not _KEY.fullmatch(name.value) for name, _ in pairs):
        return []
    if inner is document and has_comment(document.text, key.end, content_end(document.text, value), value.walk()):
        return []
    whole = Node("map", 0, 0, 0, pairs=pairs)
    size(inner, whole)
    lines = block_lines(inner, whole, document.root.column + 2)
    end = content_end(document.text, value)
    return [Edit(_colon(document.text, key), end, "\n" + "\n".join(lines), "metadata-type")]


def merged(node: Node) -> list[tuple[Node, Node]]:
    """Return the pairs of a list of mappings that have no key in common, or nothing."""
    pairs = [pair for item in node.items for pair in item.pairs]
    names = {key.value for key, _ in pairs if key.kind == "scalar"}
    plain = all(item.kind == "map" and not item.anchor and not item.tag for item in node.items)
    return pairs if plain and len(names) == len(pairs) else []


def mend_length(document: Document, folder: str) -> list[Edit]:
    """Fold the runs of blanks of a description that is too long only with them."""
    found = _pair(document, "description")
    if found is None or found[1].kind != "scalar" or len(found[1].value) <= MAX_DESCRIPTION:
        return []
    folded = " ".join(found[1].value.split())
    if len(folded) > MAX_DESCRIPTION:
        return []
    return [_replaced(document.text, *found, quoted(folded), "description-length")]
