"""Codex (0.171): what ``skills/list`` of its app server answers.

The file must be UTF-8 and named SKILL.md. The frontmatter stands between two lines that trim to
``---``. It is read by serde_yaml, a port of libyaml, into a struct of name, description and
metadata; where that fails, values that look like text are quoted and it is read once more.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from skillpack.validate.causes import cause_of
from skillpack.validate.clients.reading import Reading
from skillpack.validate.source import BOM, Block, SkillFile
from skillpack.validate.tree import NULLS, Document, Fault, Node, read_yaml

MAX_DEPTH = 6
MAX_NAME = 64
MAX_VALUE_DEPTH = 128
"""Collections within collections at which serde_yaml gives up on a value of any type."""

_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What Rust's ``trim`` takes off; Python's ``strip`` takes four control characters more."""
_RUN = re.compile(f"[{_BLANKS}]+")
_COLON = re.compile(f":[{_BLANKS}]")
_COMMENT = re.compile(f"(?:^|(?<=[{_BLANKS}]))#")
_KINDS = {"seq": "a list", "map": "a mapping", "scalar": "text"}
_NULL = "tag:yaml.org,2002:null"
_TYPED = {
    _NULL: re.compile("~|null|Null|NULL"),
    "tag:yaml.org,2002:bool": re.compile("true|True|TRUE|false|False|FALSE"),
    "tag:yaml.org,2002:int": re.compile("[-+]?(?:0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+|[0-9]+)"),
    "tag:yaml.org,2002:float": re.compile(
        r"[-+]?(?:\.inf|\.Inf|\.INF|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)|\.nan|\.NaN|\.NAN"
    ),
}
"""What a scalar must look like under a tag of YAML's core schema."""


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
    if lines[0].strip(_BLANKS) != "---":
        return None
    for number, line in enumerate(lines[1:], start=1):
        if line.strip(_BLANKS) == "---":
            text = "\n".join(inner.removesuffix("\r") for inner in lines[1:number])
            end = len("\n".join(lines[: number + 1]))
            return Block(text, 1, end, ragged=line[0] != "-") if text.strip(_BLANKS) else None
    return None


def _read_block(skill: SkillFile, block: Block, reading: Reading) -> Reading:
    document = _parse(skill, block.text)
    fields = _frontmatter(document)
    fault = fields if isinstance(fields, Fault) else None
    if fault is not None:
        mended = repair(block.text)
        document = _parse(skill, mended)
        fields = _frontmatter(document)
        rule, line = cause_of(block.text, fault)
        if mended == block.text or isinstance(fields, Fault):
            return reading.reject(rule, f"cannot read the YAML: {fault.problem}", block.file_line(line))
        reading.change(rule, "has to quote the value itself", block.file_line(line))
    assert not isinstance(fields, Fault)
    name, description = _text(fields.get("name")), _text(fields.get("description"))
    if not description:
        return reading.reject(
            "description-missing", "needs a description", block.file_line(document.line("description"))
        )
    reading.name, reading.description = name or _one_line(skill.folder.name) or "skill", description
    line = block.file_line(document.line("name"))
    if len(reading.name) > MAX_NAME:
        return reading.reject("name-length", f"takes names of at most {MAX_NAME} characters", line)
    if not name:
        reading.change("name-missing", "calls the skill by its folder", line)
    for key, shown in (("name", name), ("description", description)):
        if fault is None and shown and fields[key].value != shown:
            reading.change(
                f"{key}-space", f"shows the {key} on one line, runs of blanks as one", block.file_line(fields[key].line)
            )
    return reading


def _parse(skill: SkillFile, text: str) -> Document:
    """Return libyaml's reading of ``text`` as that of serde_yaml, which does not take a BOM off first."""
    return skill.yaml(BOM + text if text.startswith(BOM) else text)


def repair(text: str) -> str:
    """Quote the one-line values that libyaml would stumble on, as Codex does before its second try."""
    lines, scalar = [], -1  # indentation of the block scalar that is being passed over, or -1
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if scalar >= 0 and (indent > scalar or not line.strip(_BLANKS)):
            lines.append(line)
            continue
        scalar = -1
        key, _, rest = line.partition(":")
        content = rest.lstrip(_BLANKS)
        comment = _COMMENT.search(content)
        value = content[: comment.start() if comment else None].rstrip(_BLANKS)
        if key.strip(_BLANKS) and content != rest and value:
            if value[0] in "|>":
                scalar = indent
            elif _needs_quotes(value):
                tail = content[len(value) :] if comment else ""
                line = line[: len(line) - len(content)] + "'" + value.replace("'", "''") + "'" + tail
        lines.append(line)
    return "\n".join(lines)


def _needs_quotes(value: str) -> bool:
    if value[0] in "\"'":
        return False
    return bool(_COLON.search(value)) or (value[0] in "[{@`" and not _is_value(read_yaml(value)))


def _is_value(document: Document) -> bool:
    """Tell whether serde_yaml takes a document for a value of any type: no key twice, tags that fit, not too deep."""
    if document.root is None or document.documents > 1 or document.duplicate or _unknown_anchor(document):
        return False
    pending = [(document.root, 1)]
    while pending:
        node, depth = pending.pop()
        if node.kind == "scalar" and node.tag in _TYPED and not _TYPED[node.tag].fullmatch(node.value):
            return False
        if node.kind in ("seq", "map") and depth > MAX_VALUE_DEPTH:
            return False
        pending += [(inner, depth + 1) for inner in (*node.items, *(part for pair in node.pairs for part in pair))]
    return True


def _frontmatter(document: Document) -> dict[str, Node] | Fault:
    """Return the fields that serde_yaml would fill the frontmatter's struct with, or why it would not."""
    root = document.root
    if document.fault is not None:
        return document.fault
    if document.documents > 1:
        return Fault(0, 0, "it holds more than one YAML document", "yaml-documents")
    if root is None or root.kind != "map":
        kind = _KINDS[root.kind] if root else "nothing"
        return Fault(0, 0, f"it is {kind} and not key: value lines", "frontmatter-mapping")
    fields = _unknown_anchor(document) or _struct(document, root, ("name", "description", "metadata"))
    if isinstance(fields, Fault):
        return fields
    metadata = fields.get("metadata")
    if metadata is not None and metadata.kind == "map":
        inner = _struct(document, metadata, ("short-description",))
        return inner if isinstance(inner, Fault) else fields
    if metadata is not None and (metadata.kind != "scalar" or metadata.style or metadata.value):
        return Fault(metadata.line, metadata.column, f"metadata is {_KINDS[metadata.kind]}", "metadata-type")
    return fields


def _unknown_anchor(document: Document) -> Fault | None:
    anchors: set[str] = set()
    for node in document.root.walk() if document.root and document.odd else ():
        if node.kind == "alias" and node.value not in anchors:
            return Fault(node.line, node.column, f"unknown anchor {node.value}")
        if node.anchor:
            anchors.add(node.anchor)
    return None


def _struct(document: Document, node: Node, known: Collection[str]) -> dict[str, Node] | Fault:
    """Return the known fields of a mapping, aliases resolved, all but ``metadata`` text; or the first fault."""
    fields: dict[str, Node] = {}
    for key, value in node.pairs:
        name, target = document.resolve(key), document.resolve(value)
        if name.kind != "scalar":
            return Fault(key.line, key.column, "a key must be text")
        if name.value not in known:
            continue
        if name.value in fields:
            return Fault(key.line, key.column, f"duplicate field `{name.value}`", "yaml-duplicate")
        rule = f"{'metadata' if name.value == 'short-description' else name.value}-type"
        if name.value != "metadata" and target.kind != "scalar":
            return Fault(value.line, value.column, f"{name.value} is {_KINDS[target.kind]}", rule)
        if target.tag == _NULL and not target.style and target.value and not _TYPED[_NULL].fullmatch(target.value):
            return Fault(value.line, value.column, f"{name.value} is tagged as null and is none", rule)
        fields[name.value] = target
    return fields


def _text(node: Node | None) -> str:
    """Return a field as Codex shows it: on one line, and null as nothing."""
    if node is None or (not node.style and node.tag in (None, _NULL) and node.value in NULLS):
        return ""
    return _one_line(node.value)


def _one_line(text: str) -> str:
    return _RUN.sub(" ", text).strip(" ")
