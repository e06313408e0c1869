"""The Agent Skills specification, as its reference validator skills-ref (0.1.1) applies it.

The text is split at the first two ``---``, wherever they stand; strictyaml reads what is between,
every scalar as text; then keys, name, description and compatibility are checked.
"""

from __future__ import annotations

import re
import unicodedata

from skillpack.validate.causes import cause_of
from skillpack.validate.clients.reading import Reading
from skillpack.validate.source import Block, SkillFile
from skillpack.validate.tree import Document, Fault

KEYS = ("name", "description", "license", "allowed-tools", "metadata", "compatibility")
MAX_TOLD = 20
"""Unknown keys that are told one by one."""

_ODD = re.compile("[\t\x85\u2028\u2029]")
_OLD_BREAK = re.compile("[\x85\u2028\u2029]")
MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1024, 500


def read(skill: SkillFile) -> Reading:
    """Return what skills-ref's ``validate`` makes of a skill's folder."""
    reading = Reading()
    if skill.folder.file_name not in ("SKILL.md", "skill.md"):
        return reading.reject("file-name", f"does not see {skill.folder.file_name}, only SKILL.md and skill.md")
    if skill.unreadable:
        return reading.reject(skill.unreadable_rule, f"cannot read the file: {skill.unreadable}")
    if skill.invalid_at is not None:
        rule = "encoding-utf16" if skill.why_no_block()[0] == "encoding-utf16" else "encoding-utf8"
        line = skill.data.count(b"\n", 0, skill.invalid_at) + 1
        return reading.reject(rule, "ends with a UnicodeDecodeError: the file is not UTF-8", line)
    block = cut(skill)
    if block is None:
        rule, line = skill.why_no_block()
        return reading.reject(rule, "finds no frontmatter between two ---", line)
    document = _read(skill, block.text)
    fault = _fault(document)
    if fault is not None:
        rule, line = cause_of(block.text, fault)
        return reading.reject(rule, f"cannot read the YAML: {fault.problem}", block.file_line(line))
    _check_fields(skill, block, document, reading)
    if skill.cut_short(block):
        line = block.file_line(block.text.count("\n"))
        reading.change("fence-in-value", "ends the frontmatter at the first ---, inside of a value", line)
    return reading


def cut(skill: SkillFile) -> Block | None:
    """Return what stands between the first two ``---``, be they in the middle of a line."""
    text = skill.text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.startswith("---"):
        return None
    end = text.find("---", 3)
    if end < 0:
        return None
    start = 4 if text[3:4] == "\n" else 3
    return Block(text[start:end].removesuffix("\n"), start - 3, max(end, start) + 3, ragged=text[end - 1] != "\n")


def _read(skill: SkillFile, text: str) -> Document:
    """Return libyaml's reading of ``text`` but for tabs and the line breaks of YAML 1.1.

    strictyaml takes these line breaks for blanks, and stumbles on them in comments and block
    scalars; a tab it takes in quotes, block scalars and comments only.
    """
    document = skill.yaml(_OLD_BREAK.sub(" ", text))
    if document.root is None or not _ODD.search(text):
        return document
    leaves = [node for node in document.root.walk() if node.kind == "scalar"]
    for match in _ODD.finditer(text):
        place, line = match.start(), text.count("\n", 0, match.start())
        leaf = next((leaf for leaf in leaves if leaf.start <= place < leaf.end), None)
        block = leaf is not None and leaf.style in ("|", ">") and line > leaf.line
        comment = leaf is None and " #" in " " + text[text.rfind("\n", 0, place) + 1 : place]
        if match[0] == "\t" and not (block or comment or (leaf is not None and leaf.style in ("'", '"'))):
            return Document(text, fault=Fault(line, 0, "a tab where only blanks may stand", "yaml-tab"))
        if match[0] != "\t" and (block or comment) and not text.startswith("\n", match.end()):
            return Document(text, fault=Fault(line, 0, "a line break of an old kind", "encoding-control"))
    return document


def _fault(document: Document) -> Fault | None:
    """Return what strictyaml refuses although libyaml reads it, or libyaml's own fault."""
    if document.fault is not None:
        return document.fault
    root = document.root
    for node in root.walk() if root and (document.odd or document.duplicate) else ():
        if node.style == "flow":
            return Fault(node.line, node.column, "{} and [] are not allowed", "yaml-flow")
        if node.anchor or node.kind == "alias":
            return Fault(node.line, node.column, "anchors and aliases are not allowed", "yaml-anchor")
        if node.tag:
            return Fault(node.line, node.column, "tags are not allowed", "yaml-tag")
        keys: set[str] = set()
        for key, _ in node.pairs:
            if key.kind == "scalar" and key.value in keys:
                return Fault(key.line, key.column, f"duplicate key {key.value!r}", "yaml-duplicate")
            keys.add(key.value)
    if root is None or root.kind != "map":
        return Fault(0, 0, "it is not key: value lines", "frontmatter-mapping")
    return None


def _check_fields(skill: SkillFile, block: Block, document: Document, reading: Reading) -> None:
    def refuse(rule: str, key: str, text: str) -> None:
        reading.reject(rule, text, block.file_line(document.line(key)))

    assert document.root is not None
    unknown = sorted({key.value for key, _ in document.root.pairs} - set(KEYS))
    for key in unknown[:MAX_TOLD]:
        refuse("key-unknown", key, f"does not know the key {key[:80]}")
    if len(unknown) > MAX_TOLD:
        refuse("key-unknown", unknown[MAX_TOLD], f"does not know {len(unknown) - MAX_TOLD} more keys")
    name = document.value("name")
    if name is None:
        refuse("name-missing", "name", "needs a name")
    elif name.kind != "scalar" or not name.value.strip():
        refuse("name-type" if name.kind != "scalar" else "name-missing", "name", "needs a name that is text")
    else:
        reading.name = unicodedata.normalize("NFKC", name.value.strip())
        for rule, text in _name_faults(reading.name, skill.folder.name):
            refuse(rule, "name", text)
        if reading.name != name.value:
            reading.change("name-space", "trims and normalises the name", block.file_line(document.line("name")))
    description = document.value("description")
    if description is None or (description.kind == "scalar" and not description.value.strip()):
        refuse("description-missing", "description", "needs a description")
    elif description.kind != "scalar":
        refuse("description-type", "description", "needs a description that is text")
    else:
        reading.description = description.value.strip()
        if len(description.value) > MAX_DESCRIPTION:
            text = f"takes {MAX_DESCRIPTION} characters of description, these are {len(description.value)}"
            refuse("description-length", "description", text)
        if reading.description != description.value:
            line = block.file_line(document.line("description"))
            reading.change("description-space", "trims the description", line)
    compatibility = document.value("compatibility")
    if compatibility is not None and (compatibility.kind != "scalar" or len(compatibility.value) > MAX_COMPATIBILITY):
        refuse(
            "compatibility", "compatibility", f"takes compatibility as text of at most {MAX_COMPATIBILITY} characters"
        )


def _name_faults(name: str, folder: str) -> list[tuple[str, str]]:
    faults = []
    if len(name) > MAX_NAME:
        faults.append(("name-length", f"takes names of at most {MAX_NAME} characters, this has {len(name)}"))
    if name != name.lower():
        faults.append(("name-characters", "takes names in lower case only"))
    if name.startswith("-") or name.endswith("-") or "--" in name:
        faults.append(("name-characters", "takes a hyphen only between two other characters"))
    if not all(character.isalnum() or character == "-" for character in name):
        faults.append(("name-characters", "takes only letters, digits and hyphens in a name"))
    if unicodedata.normalize("NFKC", folder) != name:
        faults.append(("name-folder", f"wants the name to be the folder's, {folder!r}"))
    return faults
