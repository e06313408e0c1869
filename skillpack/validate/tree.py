"""YAML as libyaml reads it, as a tree that remembers where each value stands.

All four clients read YAML with a parser of their own. libyaml's reading is the common ground:
Codex's parser is a port of it, and what the others do otherwise is said in ``clients/``.
The tree is built from events, so that depth costs no stack, aliases are not expanded and
duplicate keys are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML without libyaml: slower, and nearly the same
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
"""Plain scalars that are null in YAML 1.2's core schema."""


@dataclass(slots=True, eq=False)
class Node:
    """A scalar, mapping, sequence or alias. Lines and columns count from 0 within the text."""

    kind: str
    """``scalar``, ``map``, ``seq`` or ``alias``."""
    line: int
    column: int
    start: int
    """Offset of the first character in the text."""
    value: str = ""
    """A scalar's text, or an alias's anchor."""
    style: str = ""
    """A scalar's quote or block character; empty if plain. ``flow`` for ``{}`` and ``[]``."""
    tag: str | None = None
    anchor: str | None = None
    end_line: int = 0
    end: int = 0
    items: list[Node] = field(default_factory=list)
    pairs: list[tuple[Node, Node]] = field(default_factory=list)

    @property
    def plain(self) -> bool:
        """A scalar without quotes, block marker or tag: the kind that becomes a number or a boolean."""
        return self.kind == "scalar" and not self.style and self.tag is None

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, keys included, in the order of the text."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            children = list(node.items)
            for key, value in node.pairs:
                children += (key, value)
            pending.extend(reversed(children))

    def get(self, key: str) -> Node | None:
        """Return the value of the last pair with this plain-text key, or None."""
        found = None
        for name, value in self.pairs:
            if name.kind == "scalar" and name.value == key:
                found = value
        return found


@dataclass(slots=True)
class Fault:
    """Where and why a text is not YAML. Lines and columns count from 0."""

    line: int
    column: int
    problem: str
    rule: str = ""
    """The rule that is broken, where the reader knows it; else it is found from the text."""


@dataclass(slots=True)
class Document:
    """What was read: the root (None for nothing), or the fault that stopped the reading."""

    text: str
    root: Node | None = None
    fault: Fault | None = None
    documents: int = 1
    odd: bool = False
    """Whether there is an anchor, alias, tag, flow collection, or a quoted value over several lines."""
    duplicate: Node | None = None
    """A key that its mapping has already, if any."""
    _anchors: dict[str, list[Node]] | None = None
    _lines: dict[str, int] | None = None

    @property
    def anchors(self) -> dict[str, list[Node]]:
        """The nodes that have an anchor, by its name, in the order of the text."""
        if self._anchors is None:
            self._anchors = {}
            for node in self.root.walk() if self.root and self.odd else ():
                if node.anchor:
                    self._anchors.setdefault(node.anchor, []).append(node)
        return self._anchors

    def value(self, key: str) -> Node | None:
        """Return the node under a key of the root mapping, aliases resolved, or None."""
        node = self.root.get(key) if self.root else None
        return self.resolve(node) if node else None

    def resolve(self, node: Node) -> Node:
        """Return the node that an alias stands for, the last before it of its name, or the node itself."""
        if node.kind != "alias":
            return node
        return next((found for found in reversed(self.anchors.get(node.value, [])) if found.start < node.start), node)

    def line(self, key: str) -> int:
        """Return the line (from 0) of a key of the root mapping; -1, the line of the fence, if it is absent."""
        if self._lines is None:
            self._lines = {name.value: name.line for name, _ in self.root.pairs} if self.root else {}
        return self._lines.get(key, -1)


def read_yaml(text: str, loader: Any = _Loader) -> Document:
    """Read the first document of ``text``, by another scanner if asked. Never raises: a fault is part of the answer."""
    document = Document(text, documents=0)
    stack: list[tuple[Node, list[Node]]] = []
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.DocumentStartEvent):
                document.documents += 1
                continue
            if document.documents > 1 or not isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                continue
            if isinstance(event, yaml.CollectionEndEvent):
                node, children = stack.pop()
                mark: Any = event.end_mark
                node.end, node.end_line = mark.index, mark.line
                if node.kind == "seq":
                    node.items = children
                else:
                    node.pairs = list(zip(children[::2], children[1::2], strict=True))
                    document.duplicate = document.duplicate or _duplicate(node)
            else:
                node = _node(event)
                if _is_odd(node):
                    document.odd = True
                if stack:
                    stack[-1][1].append(node)
                else:
                    document.root = node
                if isinstance(event, yaml.CollectionStartEvent):
                    stack.append((node, []))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.problem, error.context) if part)
        document.fault = Fault(mark.line if mark else 0, mark.column if mark else 0, problem)
        document.root = None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position)
        document.fault = Fault(line, error.position - (text.rfind("\n", 0, error.position) + 1), str(error.reason))
        document.root = None
    return document


def _node(event: Any) -> Node:
    start, end = event.start_mark, event.end_mark
    node = Node("scalar", start.line, start.column, start.index, end_line=end.line, end=end.index, anchor=event.anchor)
    if isinstance(event, yaml.ScalarEvent):
        node.value, node.style, node.tag = event.value, event.style or "", event.tag
    elif isinstance(event, yaml.AliasEvent):
        node.kind, node.value, node.anchor = "alias", str(event.anchor), None
    else:
        node.kind = "map" if isinstance(event, yaml.MappingStartEvent) else "seq"
        node.style = "flow" if event.flow_style else ""
        node.tag = event.tag
    return node


def _is_odd(node: Node) -> bool:
    if node.anchor or node.tag or node.style == "flow" or node.kind == "alias":
        return True
    return node.end_line > node.line and node.style in ("'", '"')


def _duplicate(node: Node) -> Node | None:
    seen: set[str] = set()
    for key, _ in node.pairs:
        if key.kind == "scalar" and key.value in seen:
            return key
        seen.add(key.value)
    return None
