"""Codex (0.171): what ``skills/list`` of its app server answers.

The file must be UTF-8 and named SKILL.md. The frontmatter stands between two lines that trim to
``---``. It is read by serde_yaml, a port of libyaml, into a struct of name, description and
metadata; where that fails, values that look like text are quoted and it is read once more.
"""

from __future__ import annotations

import re

from skillpack.validate.causes import cause_of
from skillpack.validate.clients.reading import Reading
from skillpack.validate.source import Block, SkillFile
from skillpack.validate.tree import NULLS, Document, Fault, Node, read_yaml

MAX_DEPTH = 6
MAX_NAME = 64

_PAIR = re.compile(r"^(?P<head>\s*(?:-\s+)?[^\s:#][^:]*:[ \t]+)(?P<value>\S.*?)\s*$")
_COLON = re.compile(r":\s")
_KINDS = {"seq": "a list", "map": "a mapping", "scalar": "text", "alias": "an alias"}


def read(skill: SkillFile) -> Reading:
    """Return what Codex makes of a skill below a folder of skills."""
    reading = Reading()
    folder = skill.folder
    if folder.file_name != "SKILL.md":
        return reading.reject("file-name", f"does not see {folder.file_name}, only SKILL.md")
    if folder.file_is_link:
        return reading.reject("file-symlink", "does not read a SKILL.md that is a symlink")
    if folder.hidden:
        return reading.reject("folder-hidden", "skips folders that begin with a dot")
    if folder.depth > MAX_DEPTH:
        return reading.reject("folder-deep", f"looks {MAX_DEPTH} folders deep, this one lies {folder.depth} deep")
    if skill.unreadable:
        return reading.reject(skill.unreadable_rule, f"cannot read the file: {skill.unreadable}")
    if skill.invalid_at is not None:
        line = skill.data.count(b"\n", 0, skill.invalid_at) + 1
        return reading.reject("encoding-utf8", f"refuses bytes that are not UTF-8 (offset {skill.invalid_at})", line)
    block = cut(skill)
    if block is None:
        rule, line = skill.why_no_block()
        return reading.reject(rule, "finds no frontmatter between two --- lines", line)
    if skill.cut_short(block):
        line = block.file_line(block.text.count("\n") + 1)
        reading.change("fence-in-value", "ends the frontmatter at an indented ---, inside of a value", line)
    return _read_block(skill, block, reading)


def cut(skill: SkillFile) -> Block | None:
    """Return what stands between the first line and the next that trims to ``---``; a blank block is none."""
    lines = skill.text.split("\n")
    if lines[0].strip() != "---":
        return None
    for number, line in enumerate(lines[1:], start=1):
        if line.strip() == "---":
            text = "\n".join(lines[1:number])
            end = len("\n".join(lines[: number + 1]))
            return Block(text, 1, end, ragged=line[0].isspace()) if text.strip() else None
    return None


def _read_block(skill: SkillFile, block: Block, reading: Reading) -> Reading:
    document = skill.yaml(block.text)
    fault = _fault(document)
    if fault is not None:
        mended = repair(block.text)
        document = skill.yaml(mended)
        rule, line = cause_of(block.text, fault)
        if mended == block.text or _fault(document) is not None:
            return reading.reject(rule, f"cannot read the YAML: {fault.problem}", block.file_line(line))
        reading.change(rule, "has to quote the value itself", block.file_line(line))
    name, description = _text(document, "name"), _text(document, "description")
    if not description:
        return reading.reject(
            "description-missing", "needs a description", block.file_line(document.line("description"))
        )
    reading.name, reading.description = name or skill.folder.name, description
    line = block.file_line(document.line("name"))
    if len(reading.name) > MAX_NAME:
        return reading.reject("name-length", f"takes names of at most {MAX_NAME} characters", line)
    if not name:
        reading.change("name-missing", "calls the skill by its folder", line)
    for key, shown in (("name", name), ("description", description)):
        node = document.value(key)
        if fault is None and node is not None and shown and node.value != shown:
            reading.change(
                f"{key}-space", f"shows the {key} on one line, runs of blanks as one", block.file_line(node.line)
            )
    return reading


def repair(text: str) -> str:
    """Quote the one-line values that libyaml would stumble on, as Codex does before its second try."""
    lines = []
    for line in text.split("\n"):
        pair = _PAIR.match(line)
        if pair:
            value = re.split(r"\s#", f" {pair['value']}")[0].strip()
            if _needs_quotes(value):
                line = pair["head"] + "'" + value.replace("'", "''") + "'"
        lines.append(line)
    return "\n".join(lines)


def _needs_quotes(value: str) -> bool:
    if not value or value[0] in "\"'|>":
        return False
    if _COLON.search(value) or value[0] in "@`":
        return True
    return value[0] in "[{" and read_yaml(value).fault is not None


def _fault(document: Document) -> Fault | None:
    """Return why serde_yaml would not fill its struct from this document, or None."""
    root = document.root
    if document.fault is not None:
        return document.fault
    if document.documents > 1:
        return Fault(0, 0, "it holds more than one YAML document", "yaml-documents")
    if root is None or root.kind != "map":
        kind = _KINDS[root.kind] if root else "nothing"
        return Fault(0, 0, f"it is {kind} and not key: value lines", "frontmatter-mapping")
    anchors: set[str] = set()
    for node in root.walk() if document.odd else ():
        if node.kind == "alias" and node.value not in anchors:
            return Fault(node.line, node.column, f"unknown anchor {node.value}")
        if node.anchor:
            anchors.add(node.anchor)
    return _field_fault(document, root)


def _field_fault(document: Document, root: Node) -> Fault | None:
    seen: set[str] = set()
    for key, value in root.pairs:
        key, target = document.resolve(key), document.resolve(value)
        if key.kind != "scalar":
            return Fault(key.line, key.column, "a key must be text")
        if key.value not in ("name", "description", "metadata"):
            continue
        if key.value in seen:
            return Fault(key.line, key.column, f"duplicate field `{key.value}`", "yaml-duplicate")
        seen.add(key.value)
        wanted = "map" if key.value == "metadata" else "scalar"
        if target.kind != wanted and not (target.plain and target.value in NULLS):
            return Fault(value.line, value.column, f"{key.value} is {_KINDS[target.kind]}", f"{key.value}-type")
        short = target.get("short-description") if target.kind == "map" else None
        if short is not None and document.resolve(short).kind != "scalar":
            return Fault(short.line, short.column, "metadata.short-description is not text", "metadata-type")
    return None


def _text(document: Document, key: str) -> str:
    """Return a field as Codex shows it: runs of whitespace are one blank, null is nothing."""
    node = document.value(key)
    return "" if node is None or (node.plain and node.value in NULLS) else " ".join(node.value.split())
