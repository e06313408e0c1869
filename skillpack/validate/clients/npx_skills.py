"""``npx skills`` (1.7): what ``add DIR --list`` offers.

The frontmatter is cut out by a regular expression and read by the ``yaml`` package of npm, which
mends nothing; name and description must be there and be text.
"""

from __future__ import annotations

import re
from pathlib import Path

from skillpack.validate.causes import cause_of
from skillpack.validate.clients.javascript import falsy, kind_of, shown_value, trim
from skillpack.validate.clients.npx_places import refusal
from skillpack.validate.clients.reading import Reading
from skillpack.validate.clients.yaml12 import read_yaml12
from skillpack.validate.discover import SkillFolder
from skillpack.validate.source import Block, SkillFile, read_skill
from skillpack.validate.tree import Document

_FENCES = re.compile(r"\A\ufeff?---\r?\n(.*?)\r?\n---", re.DOTALL)
_ESCAPES = (
    re.compile(r"\x1b\].*?(?:\x07|\x1b\\)", re.DOTALL),
    re.compile(r"\x1b[P^_].*?\x1b\\", re.DOTALL),
    re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]"),
    re.compile(r"\x1b[ -~]"),
    re.compile(r"[\x80-\x9f\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]"),
)
"""Terminal codes, in the order in which they are taken out."""


def read(skill: SkillFile) -> Reading:
    """Return what ``npx skills`` makes of a skill below the folder that it is pointed at."""
    reading = Reading()
    folder = skill.folder
    if folder.file_name != "SKILL.md":
        return reading.reject("file-name", f"does not see {folder.file_name}, only SKILL.md")
    refused = refusal(folder, _loads)
    if refused is not None:
        return reading.reject(*refused)
    if skill.unreadable:
        return reading.reject(skill.unreadable_rule, f"cannot read the file: {skill.unreadable}")
    block = cut(skill)
    if block is None:
        rule, line = skill.why_no_block()
        return reading.reject(rule, "finds no frontmatter between two --- lines", line)
    document = read_yaml12(block.text, skill.yaml)
    if document.fault is not None:
        rule, line = cause_of(block.text, document.fault)
        return reading.reject(rule, f"cannot read the YAML: {document.fault.problem}", block.file_line(line))
    return _read_fields(block, document, reading, skill.folder.name)


def _loads(path: Path) -> bool:
    """Tell whether a folder is a skill that is offered."""
    file = path / "SKILL.md"
    return file.is_file() and read(read_skill(SkillFolder(path, path, file.name, depth=0))).verdict != "rejects"


def _read_fields(block: Block, document: Document, reading: Reading, folder: str) -> Reading:
    name, description = document.value("name"), document.value("description")
    for key, node in (("name", name), ("description", description)):
        if falsy(node):
            return reading.reject(f"{key}-missing", f"needs a {key}", block.file_line(document.line(key)))
    for key, node in (("name", name), ("description", description)):
        if kind_of(node) != "string":
            text = f"needs a {key} that is text, this is a {kind_of(node)}"
            return reading.reject(f"{key}-type", text, block.file_line(document.line(key)))
    metadata = document.value("metadata")
    internal = metadata.get("internal") if metadata is not None and metadata.kind == "map" else None
    if internal is not None and kind_of(internal) == "boolean" and internal.value.lower() == "true":
        line = block.file_line(internal.line)
        return reading.reject("metadata-internal", "hides a skill whose metadata says internal: true", line)
    written = (shown_value(name), shown_value(description))
    reading.name, reading.description = (clean(text) for text in written)
    reading.name = reading.name or folder
    for key, before, after in zip(("name", "description"), written, (reading.name, reading.description), strict=True):
        if before != after:
            reading.change(f"{key}-space", f"shows the {key} on one line", block.file_line(document.line(key)))
    return reading


def cut(skill: SkillFile) -> Block | None:
    """Return what stands between a line ``---`` and the next line that begins so."""
    match = _FENCES.match(skill.text)
    return Block(match[1], 1, match.end()) if match else None


def clean(text: str) -> str:
    """Return a value as it is shown: terminal codes gone, line breaks as blanks, trimmed."""
    for escape in _ESCAPES:
        text = escape.sub("", text)
    return trim(re.sub(r"\n+", " ", text))
