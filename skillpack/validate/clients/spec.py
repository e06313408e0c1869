"""The Agent Skills specification, as its reference validator skills-ref (0.1.1) applies it.

The text is split at the first two ``---``, wherever they stand; strictyaml reads what is between,
every scalar as text; then keys, name, description and compatibility are checked.
"""

from __future__ import annotations

import re
import unicodedata

import yaml

from skillpack.validate.causes import cause_of
from skillpack.validate.clients.reading import Reading
from skillpack.validate.source import BOM, Block, SkillFile
from skillpack.validate.tree import Document, Fault, Node, read_yaml

KEYS = ("name", "description", "license", "allowed-tools", "metadata", "compatibility")
MAX_TOLD = 20
"""Unknown keys that are told one by one."""

_ODD = re.compile(rf"[\t\x85\u2028\u2029{BOM}]|^ *(?:- +)*:(?=[ \n]|\Z)", re.MULTILINE)
"""What libyaml and strictyaml read differently."""
_COMMENT_ON_LINE = re.compile(r" *: +#")
_EMPTY_LINE = re.compile(r" *\n *(?:\n|\Z)")
_NO_TEXT = ("<<", "=")
"""Plain scalars that strictyaml takes for the merge and the value key of YAML 1.1, and for no text."""
_BREAKS = "\n\x85\u2028\u2029"
MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1024, 500
MAX_ODD = 200_000
"""Characters of a frontmatter with tabs that are still read by the slow scanner."""


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
    document = _read(skill, block)
    fault = _fault(document, block.text)
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


class _Scanner(yaml.SafeLoader):
    """PyYAML's own scanner, an ancestor of strictyaml's, with what YAML 1.2 and a care for comments changed in it."""

    def forward(self, length: int = 1) -> None:
        if self.pointer + length + 1 >= len(self.buffer):
            self.update(length + 1)
        for character in self.buffer[self.pointer : self.pointer + length]:
            if character == "\n":
                self.line, self.column = self.line + 1, 0
            elif character != BOM:
                self.column += 1
        self.pointer += length
        self.index += length

    def scan_to_next_token(self) -> None:
        if self.index == 0 and self.peek() == BOM:
            self.forward()
        while True:
            while self.peek() == " ":
                self.forward()
            comment = self.peek() == "#"
            while comment and self.peek() not in _BREAKS + "\0":
                self.forward()
            if not (self.scan_line_break() or comment):
                return
            self.allow_simple_key = self.allow_simple_key or not self.flow_level
            if comment:
                while self.scan_line_break():
                    pass
            elif self.peek() == "\n":
                while self.peek() in _BREAKS + "\t ":
                    self.forward()

    def parse_block_mapping_key(self) -> yaml.Event:
        if self.check_token(yaml.ValueToken):
            self.state = self.parse_block_mapping_value
            return self.process_empty_scalar(self.peek_token().start_mark)
        return super().parse_block_mapping_key()


def _read(skill: SkillFile, block: Block) -> Document:
    """Return libyaml's reading of a block, or that of a scanner like strictyaml's where the two differ."""
    if not _ODD.search(block.text):
        return skill.yaml(block.text)
    if len(block.text) > MAX_ODD:
        return Document(block.text, fault=Fault(0, 0, "it has tabs and is too long to tell where", "yaml-tab"))
    text = "\n" * block.line + block.text  # what follows the first --- begins with the end of its line
    document = read_yaml(text, _Scanner)
    fault = document.fault
    if fault is not None:
        if "\t" in text.split("\n")[fault.line]:
            fault.rule = "yaml-tab"
        fault.line -= block.line
    for node in document.root.walk() if document.root else ():
        node.line -= block.line
        node.end_line -= block.line
    return document


def _fault(document: Document, text: str) -> Fault | None:
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
    if root is None or root.kind != "map":
        return Fault(0, 0, "it is not key: value lines", "frontmatter-mapping")
    return next((fault for node in root.walk() if node.kind == "map" and (fault := _map_fault(text, node))), None)


def _map_fault(text: str, node: Node) -> Fault | None:
    """Return what strictyaml refuses in a mapping: odd keys, the same key twice, children at different depths."""
    keys: set[str] = set()
    indent: int | None = None
    for key, value in node.pairs:
        if key.kind != "scalar":
            return Fault(key.line, key.column, "a key must be text")
        if key.value in keys:
            return Fault(key.line, key.column, f"duplicate key {key.value!r}", "yaml-duplicate")
        keys.add(key.value)
        if _is_merge(key) and not _can_merge(value):
            return Fault(value.line, value.column, "<< takes a mapping")
        if _stumbles(text, key, value):
            return Fault(key.line, key.column, "a comment before a value that an empty line follows is too much for it")
        if value.kind == "map":
            indent = value.column if indent is None else indent
            if value.column != indent:
                return Fault(value.line, value.column, "mappings side by side must be indented alike", "yaml-indent")
    return None


def _is_merge(key: Node) -> bool:
    return key.plain and key.value == "<<"


def _can_merge(node: Node) -> bool:
    return node.kind == "map" or (node.kind == "seq" and all(item.kind == "map" for item in node.items))


def _stumbles(text: str, key: Node, value: Node) -> bool:
    """Tell whether strictyaml ends with a NotImplementedError: two comments, an empty line being one, for one value."""
    if value.line == key.line or value.kind != "scalar" or value.style not in ("", "|", ">"):
        return False
    if not _COMMENT_ON_LINE.match(text, key.end) or (value.style and "+" in text[value.start : value.start + 3]):
        return False
    return bool(_EMPTY_LINE.match(text, len(text[: value.end].rstrip())))


def _check_fields(skill: SkillFile, block: Block, document: Document, reading: Reading) -> None:
    def refuse(rule: str, key: str, text: str) -> None:
        reading.reject(rule, text, block.file_line(document.line(key)))

    assert document.root is not None
    unknown = sorted({key.value for key, _ in document.root.pairs if not _is_merge(key)} - set(KEYS))
    for key in unknown[:MAX_TOLD]:
        refuse("key-unknown", key, f"does not know the key {key[:80]}")
    if len(unknown) > MAX_TOLD:
        refuse("key-unknown", unknown[MAX_TOLD], f"does not know {len(unknown) - MAX_TOLD} more keys")
    name = document.value("name")
    if name is None:
        refuse("name-missing", "name", "needs a name")
    elif not _is_text(name) or not name.value.strip():
        refuse("name-missing" if _is_text(name) else "name-type", "name", "needs a name that is text")
    else:
        reading.name = normal_name(name.value)
        for rule, text in name_faults(reading.name):
            refuse(rule, "name", text)
        if unicodedata.normalize("NFKC", skill.folder.name) != reading.name:
            refuse("name-folder", "name", f"wants the name to be the folder's, {skill.folder.name!r}")
        if reading.name != name.value:
            reading.change("name-space", "trims and normalises the name", block.file_line(document.line("name")))
    description = document.value("description")
    if description is None or (description.kind == "scalar" and not description.value.strip()):
        refuse("description-missing", "description", "needs a description")
    elif not _is_text(description):
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
    if compatibility is not None and (not _is_text(compatibility) or len(compatibility.value) > MAX_COMPATIBILITY):
        refuse(
            "compatibility", "compatibility", f"takes compatibility as text of at most {MAX_COMPATIBILITY} characters"
        )


def _is_text(node: Node) -> bool:
    return node.kind == "scalar" and not (node.plain and node.value in _NO_TEXT)


def normal_name(name: str) -> str:
    """Return a name as it is compared: trimmed, and in NFKC."""
    return unicodedata.normalize("NFKC", name.strip())


def name_faults(name: str) -> list[tuple[str, str]]:
    """Return why a name that is not empty is refused, whatever the folder is called: rules and what they want."""
    faults = []
    if len(name) > MAX_NAME:
        faults.append(("name-length", f"takes names of at most {MAX_NAME} characters, this has {len(name)}"))
    if name != name.lower():
        faults.append(("name-characters", "takes names in lower case only"))
    if name.startswith("-") or name.endswith("-") or "--" in name:
        faults.append(("name-characters", "takes a hyphen only between two other characters"))
    if not all(character.isalnum() or character == "-" for character in name):
        faults.append(("name-characters", "takes only letters, digits and hyphens in a name"))
    return faults
