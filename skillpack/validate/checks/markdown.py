"""As much of Markdown as the checks need: headings, links and code, each with its line.

The reading is CommonMark's for fenced blocks, also in quotes and lists, and for links on one line. Every step is
linear in the length of the text, whatever the text is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

_FENCE = re.compile(
    r"^(?P<lead>[ \t]*(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]+|>)*)(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$"
)
_QUOTE = re.compile(r" {0,3}> ?")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])(?P<gap>[ \t]+)")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<text>[^\n]*)")
_TARGET = re.compile(
    r"\(\s{0,9}(?:<(?P<angle>[^<>\n]{1,1000})>|(?P<target>[^()\s<>]{1,1000}(?:\([^()\s]{0,200}\)[^()\s<>]{0,200})?))"
    r"(?:\s{1,9}[\"'(][^\n]{0,200}?)?\s{0,9}\)"
)
_DEFINITION = re.compile(r"^ {0,3}\[(?!\^)[^\]\n]{1,1000}\]:[ \t]{1,9}<?(?P<target>[^\s<>]+)>?")
_BRACKET = re.compile(r"[\[\]]")
_TICKS = re.compile(r"`+")
_ANCHOR = re.compile(r"<[^<>]{0,500}\b(?:id|name)=[\"']([^\"'<>]{1,200})[\"']|\{#([\w-]{1,200})\}")
_MARKUP = re.compile(r"[`*]|\[([^\[\]]{0,500})\]\([^()]{0,500}\)|<[^<>]{1,500}>")
_PUNCTUATION = re.compile(r"[^\w\- ]")
MAX_HEADING = 1000
"""Characters of a heading that its anchor is made from."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link's target as written, and its line (from 0)."""

    target: str
    line: int


@dataclass(slots=True)
class Code:
    """A fenced block: its language, the line (from 0) of its first line of code, and the lines without indentation."""

    language: str
    line: int
    lines: list[str] = field(default_factory=list)


@dataclass
class Markdown:
    """What was found in a text."""

    links: list[Link] = field(default_factory=list)
    codes: list[Code] = field(default_factory=list)
    commented: set[int] = field(default_factory=set)
    """Lines (from 0) with an HTML comment on them."""
    _anchored: list[str] = field(default_factory=list)
    """Lines that may hold a heading or an HTML anchor."""

    @cached_property
    def anchors(self) -> frozenset[str]:
        """What a link's ``#`` part may name."""
        found: set[str] = set()
        slugs: Counter[str] = Counter()
        for line in self._anchored:
            heading = _HEADING.match(line)
            if heading:
                slug = slug_of(heading["text"])
                found.add(f"{slug}-{slugs[slug]}" if slugs[slug] else slug)
                slugs[slug] += 1
            found.update((match[1] or match[2]).lower() for match in _ANCHOR.finditer(line))
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Opening:
    """What a fence must be closed by, and the container that ends it where nothing closes it."""

    marks: str
    indent: int
    quotes: int
    item: int
    """Column that the text of the list item begins at which the fence stands in; 0 outside of lists."""

    def holds(self, line: str) -> bool:
        """Tell whether a line still lies in the container of the fence."""
        if self.quotes:
            return _prefix(line, self.quotes).count(">") == self.quotes
        return not self.item or not line.strip() or _indent(line) >= self.item

    def closed_by(self, inner: str) -> bool:
        """Tell whether a line, without its quote marks, is the closing fence."""
        marks = inner.strip()
        return marks.startswith(self.marks) and not marks.strip(self.marks[0]) and _indent(inner) < self.item + 4

    def inner(self, line: str) -> str:
        """Return a line without the quote marks in front of it."""
        return line[len(_prefix(line, self.quotes)) :] if self.quotes else line


@lru_cache(maxsize=64)
def scan(text: str) -> Markdown:
    """Return the parts of a Markdown text with LF line ends."""
    found = Markdown()
    opening: _Opening | None = None
    comment = False
    items: list[int] = []
    for number, line in enumerate(text.split("\n")):
        if opening is not None and opening.holds(line):
            inner = opening.inner(line)
            if opening.closed_by(inner):
                opening = None
            else:
                found.codes[-1].lines.append(_dedent(inner, opening.indent))
            continue
        opening = None
        if comment or ("<!--" in line and "<!--" in _without_code(line)):
            line, comment = _without_comments(line, comment)
            found.commented.add(number)
        fence = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence and (opened := _opening(fence, items)):
            opening = opened
            words = fence["info"].split()
            found.codes.append(Code(words[0].lower() if words else "", number + 1))
            continue
        _note_item(line, items)
        if "#" in line or "<" in line:
            found._anchored.append(line)
        if "](" in line or "]:" in line:
            found.links.extend(Link(target, number) for target in _targets(_without_code(line)))
    return found


def _opening(fence: re.Match[str], items: list[int]) -> _Opening | None:
    """Return what a fence in these list items opens, or None where it is indented so far that it is code itself."""
    lead = fence["lead"]
    quotes = lead.count(">")
    if not lead[:1].isspace():
        items.clear()
    if quotes:
        return _Opening(fence["marks"], len(lead) - len(_prefix(lead, quotes)), quotes, 0)
    if lead.strip():
        items.append(len(lead))
        return _Opening(fence["marks"], len(lead), 0, len(lead))
    indent = _indent(lead)
    while items and items[-1] > indent:
        items.pop()
    item = items[-1] if items else 0
    return _Opening(fence["marks"], indent, 0, item) if indent - item < 4 else None


def _note_item(line: str, items: list[int]) -> None:
    """Bring up to date which list items are open behind a line: the columns that their texts begin at."""
    if not line:
        return
    item = _ITEM.match(line) if line[0] in " \t-*+0123456789" else None
    if item:
        indent = _indent(item["indent"])
        while items and items[-1] > indent:
            items.pop()
        items.append(_indent(item[0]) if len(item["gap"]) < 5 else indent + 2)
    elif not line[0].isspace():
        items.clear()


def _prefix(line: str, most: int) -> str:
    """Return the quote marks in front of a line, not more than so many."""
    end = 0
    for _ in range(most):
        match = _QUOTE.match(line, end)
        if match is None:
            break
        end = match.end()
    return line[:end]


def _indent(line: str) -> int:
    """Return the column that the text of a line, or what follows a list marker, begins at; a tab ends at fours."""
    match = _ITEM.fullmatch(line)
    return len((line if match else line[: len(line) - len(line.lstrip(" \t"))]).expandtabs(4))


def _dedent(line: str, indent: int) -> str:
    blanks = min(indent, len(line) - len(line.lstrip(" ")))
    return line[blanks:]


def _without_comments(line: str, inside: bool) -> tuple[str, bool]:
    """Return a line without HTML comments, and whether one is still open at its end."""
    kept, start = [], 0
    while True:
        end = line.find("-->" if inside else "<!--", start)
        if not inside:
            kept.append(line[start : end if end >= 0 else len(line)])
        if end < 0:
            return "".join(kept), inside
        start = end + (3 if inside else 4)
        inside = not inside


def code_spans(line: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Yield the opening and closing backticks of each code span on a line: two runs of the same length."""
    runs = list(_TICKS.finditer(line)) if "`" in line else []
    later: dict[int, list[int]] = {}
    for place in range(len(runs) - 1, -1, -1):
        later.setdefault(len(runs[place][0]), []).append(place)
    place = 0
    while place < len(runs):
        same = later[len(runs[place][0])]
        while same and same[-1] <= place:
            same.pop()
        if same:
            yield runs[place], runs[same[-1]]
            place = same[-1]
        place += 1


def _without_code(line: str) -> str:
    """Return a line with its code spans blanked."""
    kept: list[str] = []
    end = 0
    for opening, closing in code_spans(line):
        kept += (line[end : opening.start()], " " * (closing.end() - opening.start()))
        end = closing.end()
    return "".join((*kept, line[end:]))


def _targets(line: str) -> Iterator[str]:
    """Yield the targets of the links and images on a line, and that of a definition."""
    depth = 0
    for bracket in _BRACKET.finditer(line):
        if bracket[0] == "[":
            depth += 1
        elif depth:
            depth -= 1
            match = _TARGET.match(line, bracket.end())
            if match:
                yield match["angle"] or match["target"]
    definition = _DEFINITION.match(line)
    if definition:
        yield definition["target"]


def slug_of(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    text = _MARKUP.sub(lambda match: match[1] or "", heading[:MAX_HEADING].rstrip(" \t#")).strip().lower()
    return _PUNCTUATION.sub("", text).replace(" ", "-")
