"""As much of Markdown as the checks need: headings, links and code, each with its line."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

_FENCE = re.compile(r"^ {0,3}(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<text>.*?)[ \t#]*$")
_LINK = re.compile(
    r"!?\[(?:[^\[\]\n]|\[[^\]\n]*\])*\]\(\s*<?(?P<target>[^()\s<>]+(?:\([^()\s]*\)[^()\s<>]*)?)>?(?:\s+[\"'(][^\n]*?)?\)"
)
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]+\]:[ \t]+<?(?P<target>[^\s<>]+)>?")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?P<code>.+?)(?<!`)\1(?!`)")
_ANCHOR = re.compile(r"<[^>]*\b(?:id|name)=[\"']([^\"']+)[\"']|\{#([\w-]+)\}")
_MARKUP = re.compile(r"[`*]|\[([^\]]*)\]\([^)]*\)|<[^>]+>")
_PUNCTUATION = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class Link:
    """A link's target as written, and its line (from 0)."""

    target: str
    line: int


@dataclass(slots=True)
class Code:
    """A fenced block: its language, the line (from 0) of its first line of code, and the lines."""

    language: str
    line: int
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Markdown:
    """What was found in a text."""

    links: list[Link] = field(default_factory=list)
    codes: list[Code] = field(default_factory=list)
    _anchored: list[str] = field(default_factory=list)
    """Lines that may hold a heading or an HTML anchor."""

    def anchors(self) -> set[str]:
        """Return what a link's ``#`` part may name."""
        found: set[str] = set()
        slugs: Counter[str] = Counter()
        for line in self._anchored:
            heading = _HEADING.match(line)
            if heading:
                slug = slug_of(heading["text"])
                found.add(f"{slug}-{slugs[slug]}" if slugs[slug] else slug)
                slugs[slug] += 1
            found.update((match[1] or match[2]).lower() for match in _ANCHOR.finditer(line))
        return found


@lru_cache(maxsize=64)
def scan(text: str) -> Markdown:
    """Return the parts of a Markdown text with LF line ends."""
    found = Markdown()
    code: Code | None = None
    closing = ""
    for number, line in enumerate(text.split("\n")):
        fence = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if code is not None:
            if fence and fence["marks"].startswith(closing) and not fence["info"].strip():
                code = None
            else:
                code.lines.append(line)
            continue
        if fence:
            words = fence["info"].split()
            code = Code(words[0].lower() if words else "", number + 1)
            closing = fence["marks"]
            found.codes.append(code)
            continue
        if "#" in line or "<" in line:
            found._anchored.append(line)
        if "](" in line or "]:" in line:
            plain = _CODE_SPAN.sub(lambda match: " " * len(match[0]), line)
            for match in (*_LINK.finditer(plain), *_DEFINITION.finditer(plain)):
                found.links.append(Link(match["target"], number))
    return found


def slug_of(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    text = _MARKUP.sub(lambda match: match[1] or "", heading).strip().lower()
    return _PUNCTUATION.sub("", text).replace(" ", "-")
