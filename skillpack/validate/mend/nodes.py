"""The frontmatter as a tree: flow style, anchors, tags, indentation, ``---`` inside of values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from skillpack.validate.clients.javascript import kind_of
from skillpack.validate.mend import fields, keys
from skillpack.validate.mend.edits import (
    Edit,
    TooLarge,
    apply,
    block_lines,
    content_end,
    has_comment,
    inline,
    properties,
    quoted,
    size,
    source_of,
)
from skillpack.validate.tree import Document, Node, read_yaml

_CORE = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(f"{_CORE}{kind}" for kind in ("str", "int", "float", "bool", "map", "seq"))
_LINE_START = re.compile(r"\n( *)(?=[^\s])")
_DASHES = re.compile(r"-{3,}")

Maker = Callable[[Document, str], list[Edit]]
"""Takes a frontmatter that was read and the folder's name; returns what is to be changed."""


def mend_nodes(block: str, folder: str, ignored: frozenset[str]) -> tuple[str, list[str]]:
    """Mend what needs the frontmatter read, one kind of fault after the other."""
    broken: list[str] = []
    document = read_yaml(block)
    for make in MAKERS:
        if document.fault is not None or document.documents != 1 or document.root is None:
            break
        if document.root.kind != "map" and make is not mend_root:
            break
        try:
            edits = [edit for edit in make(document, folder) if edit.rule not in ignored]
        except TooLarge:
            continue
        mended, rules = apply(block, edits)
        again = read_yaml(mended) if mended != block else document
        if mended != block and again.fault is None:
            block, document, broken = mended, again, broken + rules
    return block, broken


def mend_indent(document: Document, folder: str) -> list[Edit]:
    """Indent the further lines of a quoted or bracketed value that do not stand deeper than what they belong to."""
    text = document.text
    edits = []
    for key, value in _places(document) if document.odd else ():
        if value.end_line == value.line or value.style not in ("'", '"', "flow"):
            continue
        owner = key.start if key is not None else text.rfind("-", 0, value.start)
        column = owner - (text.rfind("\n", 0, owner) + 1)
        for match in _LINE_START.finditer(text, value.start, value.end):
            if len(match[1]) <= column:
                edits.append(Edit(match.start(1), match.end(1), " " * (column + 2), "yaml-indent"))
    return edits


def mend_side_by_side(document: Document, folder: str) -> list[Edit]:
    """Indent the mappings below the keys of one mapping alike, which strict YAML asks for."""
    text = document.text
    edits = []
    for _, node in _places(document):
        columns = [value.column for _, value in node.pairs if value.kind == "map" and value.style != "flow"]
        for _, value in node.pairs:
            if value.kind == "map" and value.style != "flow" and value.column != columns[0]:
                start = text.rfind("\n", 0, value.start) + 1
                end = content_end(text, value)
                shift = columns[0] - value.column
                lines = [_shifted(line, shift) for line in text[start:end].split("\n")]
                edits.append(Edit(start, end, "\n".join(lines), "yaml-indent"))
    return edits


def _shifted(line: str, shift: int) -> str:
    if not line.strip():
        return line
    return " " * shift + line if shift > 0 else line[min(-shift, len(line) - len(line.lstrip(" "))) :]


def mend_root(document: Document, folder: str) -> list[Edit]:
    """Write a frontmatter in braces, or a list of its fields, as lines of ``key: value``."""
    root, text = document.root, document.text
    if root is None or (root.kind == "map" and root.style != "flow"):
        return []
    pairs = root.pairs or fields.merged(root)
    if not any(key.value == "description" for key, _ in pairs) or has_comment(text, 0, root.end, root.walk()):
        return []
    whole = Node("map", 0, 0, 0, pairs=pairs)
    size(document, whole)
    lines = "\n".join(block_lines(document, whole, 0))
    rule = "yaml-flow" if root.style == "flow" else "frontmatter-mapping"
    return [Edit(root.start, content_end(text, root), lines, rule)]


def _places(document: Document) -> Iterator[tuple[Node | None, Node]]:
    """Yield every value outside of flow collections, with its key if it has one (None in a list)."""
    pending: list[tuple[Node | None, Node]] = [(None, document.root)] if document.root else []
    while pending:
        key, node = pending.pop()
        yield key, node
        if node.style != "flow":
            pending += [(None, item) for item in node.items]
            pending += node.pairs


def _written(document: Document, key: Node | None, node: Node, rule: str) -> Edit:
    """Return the edit that writes a list or mapping (or what an alias stands for) as lines in its place."""
    text, target = document.text, document.resolve(node)
    if target.kind == "scalar":
        return Edit(node.start, node.end, inline(text, target), rule)
    size(document, target)
    if key is None:
        lines = list(block_lines(document, target, node.column)) or ['""']
        return Edit(node.start, node.end, "\n".join(lines).lstrip(" "), rule)
    start = text.index(":", key.end) + 1
    line_end = text.find("\n", node.end)
    comment = text[node.end : line_end if line_end >= 0 else len(text)].rstrip()
    lines = list(block_lines(document, target, key.column + 2))
    return Edit(start, node.end + len(comment), "\n".join([comment, *lines]), rule)


def mend_aliases(document: Document, folder: str) -> list[Edit]:
    """Write out what an alias stands for; one without an anchor was meant as text."""
    edits = []
    anchors: set[str] = set()
    for node in document.root.walk() if document.odd and document.root else ():
        if node.kind == "alias" and node.value not in anchors:
            edits.append(Edit(node.start, node.end, quoted(document.text[node.start : node.end]), "yaml-start"))
        if node.anchor:
            anchors.add(node.anchor)
    if edits:
        return edits
    return [
        _written(document, key, node, "yaml-anchor")
        for key, node in (_places(document) if document.odd else ())
        if node.kind == "alias" and (key is None or (key.kind == "scalar" and key.value != "<<"))
    ]


def mend_properties(document: Document, folder: str) -> list[Edit]:
    """Delete anchors that no alias names, and tags that change nothing a client shows."""
    if not document.odd or document.root is None:
        return []
    edits = []
    used = {node.value for node in document.root.walk() if node.kind == "alias"}
    for _, node in _places(document):
        length = properties(document.text, node)
        if not length or node.anchor in used or not _droppable(node):
            continue
        rule = "yaml-tag" if node.tag else "yaml-anchor"
        value = source_of(document.text, node)
        if node.kind == "scalar" and not node.style and node.tag not in _PLAIN_TAGS - {f"{_CORE}str"}:
            alone = Node("scalar", 0, 0, 0, value=node.value)
            if node.tag and kind_of(alone) != "string":
                edits.append(Edit(node.start, node.end, quoted(node.value), rule))
                continue
        if value:
            edits.append(Edit(node.start, node.start + length, "", rule))
    return edits


def _droppable(node: Node) -> bool:
    if node.tag is None or node.tag in _PLAIN_TAGS:
        return True
    return node.kind == "scalar" and not node.tag.startswith(("tag:", "!!"))


def mend_flow(document: Document, folder: str) -> list[Edit]:
    """Write lists in brackets and mappings in braces as lines, and placeholders in quotes."""
    text = document.text
    edits = []
    for key, node in _places(document) if document.odd else ():
        if node.style != "flow" or node.tag or node.anchor or node is document.root:
            continue
        if any(name.kind != "scalar" for child in node.walk() for name, _ in child.pairs):
            source = " ".join(text[node.start : node.end].split())
            rule = "yaml-placeholder" if source.startswith("{{") else "yaml-flow"
            edits.append(Edit(node.start, node.end, quoted(source), rule))
        elif not has_comment(text, node.start, node.end, node.walk()) and (key is None or key.kind == "scalar"):
            edits.append(_written(document, key, node, "yaml-flow"))
    return edits


def mend_dashes(document: Document, folder: str) -> list[Edit]:
    """Escape hyphens so that no value holds ``---`` and yet reads the same; in a comment they become ``===``."""
    text = document.text
    if "---" not in text or document.root is None:
        return []
    edits, taken = [], list[tuple[int, int]]()
    for key, node in _places(document):
        if key is not None:
            taken.append((key.start, key.end))
        if node.kind == "scalar" and node.end > node.start:
            end = content_end(text, node)
            taken.append((node.start, end))
            if "---" in text[node.start : end] and not node.tag and not node.anchor:
                edits.append(Edit(node.start, end, quoted(node.value), "fence-in-value"))
        elif node.style == "flow" or node.kind == "alias":
            taken.append((node.start, node.end))
    for match in _DASHES.finditer(text):
        if not any(start <= match.start() < end for start, end in taken):
            edits.append(Edit(*match.span(), "=" * len(match[0]), "fence-in-value"))
    return edits


def mend_tabs(document: Document, folder: str) -> list[Edit]:
    """Quote plain values that hold a tab, which strict YAML refuses."""
    return [
        Edit(node.start, node.end, quoted(node.value), "yaml-tab")
        for _, node in _places(document)
        if node.plain and "\t" in document.text[node.start : node.end]
    ]


MAKERS: tuple[Maker, ...] = (
    mend_root,
    mend_indent,
    keys.mend_case,
    keys.mend_duplicates,
    mend_aliases,
    mend_properties,
    fields.mend_name,
    fields.mend_texts,
    fields.mend_metadata,
    mend_flow,
    mend_tabs,
    keys.mend_unknown,
    mend_side_by_side,
    mend_dashes,
    fields.mend_length,
)
"""In an order in which a later one finds what an earlier one has made readable."""
