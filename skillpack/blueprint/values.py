"""Read a section's text as the kind of value that its field holds."""

from __future__ import annotations

import os
import re
from pathlib import Path

from skillpack.blueprint.paths import at_home, is_there
from skillpack.blueprint.sections import Section

_SPAN = re.compile(r"(`+)(?P<code>.+?)\1")
_LINK = re.compile(r"\[(?P<label>[^\]]*)\]\((?P<target>[^()\s]+)\)")
_BULLET = re.compile(r"^\s*(?:[-*+•]\s+|\d+[.)、]\s+)")
_REMARK = re.compile(r"\s*(?:[(（][^()（）]*[)）]|\s#\s.*|[—–]\s.*|\s-\s.*)\s*$")
_CLAUSE = re.compile(r"[,;]\s|[，；。]|\s+(?:and|with|then|和|以及|并)\s*$")
_QUOTES = "\"'“”‘’"
_ENDS = ",;。，；"


def as_text(section: Section) -> str:
    """Return running text: paragraphs as they are, ends stripped; blocks of code keep their place at the end."""
    return "\n".join([section.text, *section.fenced]).strip()


def as_path(section: Section, base: Path) -> Path | None:
    """Return the path that the section names, made absolute against ``base``; None if it names none.

    ``~`` and ``$VARIABLES`` are expanded. Spaces belong to the path. A code span is taken
    literally; without one, a remark behind the path ("/x/y (the tuned one)") is cut off
    unless the whole is the name of something that exists.
    """
    raw = _first_line(section)
    if not raw:
        return None
    span = _SPAN.search(raw)
    link = _LINK.search(raw)
    if span:
        candidates = [span["code"]]
    elif link:
        candidates = [link["target"]]
    else:
        bare = raw.strip().strip("<>")
        cut = _REMARK.sub("", bare)
        candidates = [bare, bare.rstrip(_ENDS), cut, _CLAUSE.split(cut)[0].rstrip(_ENDS).rstrip(".")]
    paths = [_absolute(candidate, base) for candidate in candidates]
    return next((path for path in paths if is_there(path)), paths[-1])


def _absolute(text: str, base: Path) -> Path:
    plain = text.strip().strip(_QUOTES).strip().replace("\\ ", " ")
    return Path(os.path.normpath(base / at_home(os.path.expandvars(plain))))


def as_url(section: Section) -> str | None:
    """Return the first ``http(s)://…`` of the section; a bare ``host:port`` becomes one."""
    text = as_text(section)
    found = re.search(r"https?://[^\s`\"'<>)\]，。]+", text)
    if found:
        return found[0].rstrip(".,;/")
    address = re.search(r"(?<![\w.])([A-Za-z0-9][\w.\-]*|\[[0-9a-f:]+\]):(\d{2,5})(?!\d)", text)
    return f"http://{address[0]}" if address else None


def as_commands(section: Section) -> list[str]:
    """Return the shell commands of the section.

    A block of code is one command (it may be a script of many lines); without one, every
    code span that stands as a bullet or line of its own is one; else the text itself is.
    """
    if section.fenced:
        return [command for block in section.fenced if (command := _without_prompts(block))]
    lines = [line for line in section.text.splitlines() if line.strip()]
    bare = [_BULLET.sub("", line).strip() for line in lines]
    bulleted = sum(bool(_BULLET.match(line)) for line in lines)
    spans = [span["code"].strip() for line in bare if (span := _SPAN.match(line))]
    if spans:
        return [command for span_ in spans if (command := _without_prompts(span_))]
    if bulleted == len(lines) and bulleted > 1:
        return [command for line in bare if (command := _without_prompts(line))]
    command = _without_prompts("\n".join(bare))
    return [command] if command else []


def _without_prompts(block: str) -> str:
    lines = [re.sub(r"^\s*[$>]\s+(?=\S)", "", line) for line in block.strip("\n").splitlines()]
    return "\n".join(line.rstrip() for line in lines).strip()


def _first_line(section: Section) -> str:
    for line in [*section.lines, *"\n".join(section.fenced).splitlines()]:
        if stripped := _BULLET.sub("", line).strip():
            return stripped
    return ""
