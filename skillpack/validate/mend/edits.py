"""Changes to a frontmatter, and how a value is written so that every client reads it alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from skillpack.validate.tree import Document, Node, read_yaml

MAX_NODES, MAX_DEPTH = 1000, 20
"""How large a value may be that is written anew: aliases may multiply what looks small."""

_PROPERTY = re.compile(r"[&!]\S*(?:[ \t]+|(?=\n|$))")
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_NO_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that some version of YAML takes for something else."""
_DASHES = re.compile(r"-{3,}")
_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


class TooLarge(Exception):
    """A value has more nodes, or lies deeper, than anybody would write by hand."""


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Put ``new`` in the place of the characters from ``start`` to ``end``, which broke ``rule``."""

    start: int
    end: int
    new: str
    rule: str
    note: str = ""
    """What the user should hear of it beyond the rule."""

    @property
    def told(self) -> str:
        """The rule, with the note in parentheses."""
        return f"{self.rule} ({self.note})" if self.note else self.rule


def apply(text: str, edits: Iterable[Edit]) -> tuple[str, list[str]]:
    """Return the text after the edits, and what was mended; of two that overlap the later one is left out."""
    rules: list[str] = []
    limit = len(text) + 1
    for edit in sorted(edits, reverse=True):
        if edit.end <= limit:
            text = text[: edit.start] + edit.new + text[edit.end :]
            limit = edit.start
            rules.append(edit.told)
    return text, rules[::-1]


def quoted(text: str) -> str:
    """Return a text as a double-quoted scalar that every client reads alike.

    Where it holds ``---``, at which two of them end the frontmatter, every other hyphen is escaped.
    """
    written = _BREAKS.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))
    return _DASHES.sub(lambda match: match[0].replace("--", "-\\x2d"), written)


def source_of(text: str, node: Node) -> str:
    """Return a value as it is written, without anchor and tag."""
    return text[node.start + properties(text, node) : node.end]


def properties(text: str, node: Node) -> int:
    """Return how many characters of a value are its anchor and its tag."""
    length = 0
    for _ in range(bool(node.anchor) + bool(node.tag)):
        match = _PROPERTY.match(text, node.start + length)
        length += len(match[0]) if match else 0
    return length


def content_end(text: str, node: Node) -> int:
    """Return the offset behind a value's last character: libyaml ends a block where the next thing begins."""
    while node.kind != "scalar" and node.style != "flow" and (node.items or node.pairs):
        node = node.items[-1] if node.items else node.pairs[-1][1]
    if node.style in ("|", ">"):
        return node.start + len(text[node.start : node.end].rstrip("\n "))
    return node.end


def line_span(text: str, key: Node, value: Node) -> tuple[int, int]:
    """Return where the lines of a pair begin and end, the last line break included."""
    start = text.rfind("\n", 0, key.start) + 1
    end = text.find("\n", max(content_end(text, value), key.end))
    return start, len(text) if end < 0 else end + 1


def inline(text: str, node: Node) -> str:
    """Return a scalar on one line, as it is written where that reads the same anywhere."""
    source = source_of(text, node)
    if "\n" in source or not source or node.style in ("|", ">"):
        return quoted(node.value)
    root = read_yaml(f"key: {source}").root
    alone = root.pairs[0][1] if root is not None and root.kind == "map" else None
    same = alone is not None and alone.kind == "scalar" and alone.value == node.value and alone.end == 5 + len(source)
    return source if same else quoted(node.value)


def _key(text: str, node: Node) -> str:
    """Return a key without the quotes that JSON asks for, where it is a word."""
    bare = _WORD.fullmatch(node.value) and node.value.lower() not in _NO_WORDS
    return node.value if bare else inline(text, node)


def block_lines(document: Document, node: Node, indent: int, depth: int = 0) -> Iterator[str]:
    """Yield the lines of a list or mapping in block style, aliases written out. Raises TooLarge."""
    if depth > MAX_DEPTH:
        raise TooLarge
    pad, text = " " * indent, document.text
    for item in node.items:
        item = document.resolve(item)
        if item.kind == "scalar":
            yield f"{pad}- {inline(text, item)}"
        else:
            lines = list(block_lines(document, item, indent + 2, depth + 1)) or ['""']
            yield f"{pad}- {lines[0].lstrip(' ')}"
            yield from lines[1:]
    for key, value in node.pairs:
        value = document.resolve(value)
        name = _key(text, document.resolve(key))
        if value.kind == "scalar":
            yield f"{pad}{name}: {inline(text, value)}" if value.value or value.style else f"{pad}{name}:"
        else:
            yield f"{pad}{name}:"
            yield from block_lines(document, value, indent + 2, depth + 1)


def size(document: Document, node: Node) -> int:
    """Return the number of nodes at and below a value, aliases written out. Raises TooLarge."""
    count, pending = 0, [(node, 0)]
    while pending:
        here, depth = pending.pop()
        here = document.resolve(here)
        count += 1
        if count > MAX_NODES or depth > MAX_DEPTH or here.kind == "alias":
            raise TooLarge
        pending += [(child, depth + 1) for child in here.items]
        pending += [(child, depth + 1) for pair in here.pairs for child in pair]
    return count


def has_comment(text: str, start: int, end: int, leaves: Iterable[Node]) -> bool:
    """Tell whether there is a comment between two offsets, beside the scalars that stand there."""
    rest = text[start:end]
    for leaf in leaves:
        if leaf.kind == "scalar":
            rest = rest[: leaf.start - start] + "x" * (leaf.end - leaf.start) + rest[leaf.end - start :]
    return re.search(r"(?:^|\s)#", rest) is not None
