"""Cut the text of a blueprint into the parts that belong to its fields.

People mark a field by a heading of any level, a bold line, ``name: value`` with or without a
bullet, a table row, ``[name]`` inside a sentence, or YAML frontmatter; in English or Chinese.
Text inside code fences is never taken for a mark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from skillpack.blueprint.durations import BadDuration, parse_duration
from skillpack.blueprint.fields import field_named, fields

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s*(?P<title>.+?)\s*#*\s*$")
_SETEXT = re.compile(r"^\s{0,3}(=+|-{3,})\s*$")
_BOLD = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:\*\*|__)(?P<title>[^*_].*?)(?:\*\*|__)\s*[:：]?\s*(?P<value>.*)$")
_PAIR = re.compile(r"^\s*(?:[-*+•]\s+|\d+[.)、]\s*)?(?P<title>[^:：=|]{2,60}?)\s*(?:[:：]|\s=\s|=)\s*(?P<value>.*)$")
_ROW = re.compile(r"^\s*\|(?P<title>[^|]+)\|(?P<value>[^|]+)\|?\s*$")
_INLINE = re.compile(r"[\[【](?P<title>[^\[\]【】]{2,40})[\]】](?!\()\s*[:：=]?\s*")
_PATH_START = re.compile(r"^[`\"'“<]?(?:~|/|\./|\.\./|\$|[A-Za-z]:\\|[\w.\-]+/|[\w.\-]+\.ya?ml\b)")


@dataclass
class Section:
    """The lines behind one mark. ``name`` is None for notes; ``fenced`` holds blocks of code."""

    name: str | None
    title: str = ""
    lines: list[str] = field(default_factory=list)
    fenced: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The section's own words, without its blocks of code."""
        return "\n".join(self.lines).strip()

    @property
    def empty(self) -> bool:
        """Whether nothing stands behind the mark."""
        return not self.text and not self.fenced


def split_sections(text: str) -> list[Section]:
    """Return the sections of a blueprint's text in order; text before the first mark is notes."""
    sections = [Section(None)]
    lines = text.removeprefix("\ufeff").splitlines()
    fence = ""
    block: list[str] = []
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                sections[-1].fenced.append("\n".join(block))
                fence = ""
            else:
                block.append(line)
        elif mark:
            fence, block = mark[1], []
        elif _SETEXT.match(line):
            continue  # the underline of a title, a rule, or the edge of frontmatter
        else:
            underlined = number + 1 < len(lines) and bool(_SETEXT.match(lines[number + 1])) and bool(line.strip())
            _take_line(sections, line, underlined)
    if fence:
        sections[-1].fenced.append("\n".join(block))
    return sections


def _take_line(sections: list[Section], line: str, underlined: bool) -> None:
    heading = _HEADING.match(line)
    started = _mark(heading["title"] if heading else line)
    if started is None and underlined and field_named(line):
        started = Section(field_named(line), line.strip())
    if started is None and heading:
        started = Section(None, heading["title"])
    if started is None:
        _append(sections, line)
        return
    sections.append(started)
    if started.lines:
        _append(sections, started.lines.pop())


def _mark(line: str) -> Section | None:
    """Return the section that ``line`` opens, or None."""
    if name := field_named(line):
        return Section(name, line.strip())
    for pattern in (_ROW, _BOLD, _PAIR):
        found = pattern.match(line)
        if found and (name := _name_of(found["title"])):
            value = found["value"].strip()
            return Section(name, found["title"].strip(), [] if value in ("", "|", ">", "|-", ">-") else [value])
    inline = _INLINE.match(line.lstrip("-*+• \t"))
    if inline and (name := _name_of(inline["title"])):
        value = line.lstrip("-*+• \t")[inline.end() :].strip()
        return Section(name, inline["title"], [value] if value else [])
    return None


def _name_of(title: str) -> str | None:
    """Return the field that a title names; ``exp_launch_command_2`` names another launch command."""
    name = field_named(title)
    if name is None and (numbered := re.fullmatch(r"(.*?)[\s_#-]*\d+\W*", title.strip())):
        name = field_named(numbered[1])
        if name is not None and fields()[name].kind != "command":
            name = None
    return name


def _append(sections: list[Section], line: str) -> None:
    """Add ``line`` to the last section; a ``[name]`` inside it opens a section for the rest."""
    for found in _INLINE.finditer(line):
        name = _name_of(found["title"])
        rest = line[found.end() :]
        if name is not None and _plausible(name, rest):
            sections[-1].lines.append(line[: found.start()].rstrip())
            sections.append(Section(name, found["title"]))
            _append(sections, rest)
            return
    sections[-1].lines.append(line)


def _plausible(name: str, value: str) -> bool:
    """Tell whether ``value`` can belong to the field: a mention of ``[exp_x]`` in a sentence is no mark."""
    kind = fields()[name].kind
    value = value.strip()
    if kind == "path":
        return bool(_PATH_START.match(value))
    if kind == "url":
        return "://" in value[:12]
    if kind == "duration":
        try:
            parse_duration(value[:40])
        except BadDuration:
            return False
        return True
    return bool(value)
