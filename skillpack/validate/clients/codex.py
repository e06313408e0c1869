"""Codex (0.171): what ``skills/list`` of its app server answers.

The file must be UTF-8 and named SKILL.md. The frontmatter stands between two lines that trim to
``---``. It is read by serde_yaml, a port of libyaml, into a struct of name, description and
metadata; where that fails, values that look like text are quoted and it is read once more.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from skillpack.validate.causes import cause_of
from skillpack.validate.clients import openai_yaml
from skillpack.validate.clients.reading import Reading
from skillpack.validate.clients.serde import BLANKS, Mismatch, is_value, load, one_line, struct, text
from skillpack.validate.source import BOM, OPENAI_FILE, Block, SkillFile
from skillpack.validate.tree import Document, read_yaml

MANIFESTS = (".codex-plugin/plugin.json", ".claude-plugin/plugin.json", ".cursor-plugin/plugin.json")
MAX_DEPTH = 6
MAX_NAME = 64

_COLON = re.compile(f":[{BLANKS}]")
_COMMENT = re.compile(f"(?:^|(?<=[{BLANKS}]))#")
_FRONTMATTER = struct({"name": text, "description": text, "metadata": struct({"short-description": text})})


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
    _read_block(skill, block, reading)
    plugin = _plugin(folder.plugin) if folder.plugin and reading.name else None
    if plugin:
        reading.name = f"{plugin}:{reading.name}"
        reading.change("name-plugin", f"puts the name of its plugin before it: {reading.name}")
    taken = openai_yaml.read(skill)
    if isinstance(taken, openai_yaml.OpenAI) and not taken.for_codex:
        products = ", ".join(taken.products)
        reading.reject("openai-products", f"leaves out a skill that {OPENAI_FILE} keeps for {products}")
    return reading


def cut(skill: SkillFile) -> Block | None:
    """Return what stands between the first line and the next that trims to ``---``; a blank block is none."""
    lines = skill.text.split("\n")
    if lines[0].strip(BLANKS) != "---":
        return None
    for number, line in enumerate(lines[1:], start=1):
        if line.strip(BLANKS) == "---":
            text = "\n".join(inner.removesuffix("\r") for inner in lines[1:number])
            end = len("\n".join(lines[: number + 1]))
            return Block(text, 1, end, ragged=line[0] != "-") if text.strip(BLANKS) else None
    return None


def _read_block(skill: SkillFile, block: Block, reading: Reading) -> Reading:
    document = _parse(skill, block.text)
    repaired = False
    try:
        fields = load(document, _FRONTMATTER)
    except Mismatch as mismatch:
        fault = mismatch.fault
        if mismatch.path and not fault.rule:
            fault.rule = f"{mismatch.path[0]}-type"
        rule, line = cause_of(block.text, fault)
        mended = repair(block.text)
        document = _parse(skill, mended)
        try:
            fields = load(document, _FRONTMATTER) if mended != block.text else None
        except Mismatch:
            fields = None
        if fields is None:
            return reading.reject(rule, f"cannot read the YAML: {fault.problem}", block.file_line(line))
        reading.change(rule, "has to quote the value itself", block.file_line(line))
        repaired = True
    shown = {key: one_line(fields.get(key) or "") for key in ("name", "description")}
    if not shown["description"]:
        line = block.file_line(document.line("description"))
        return reading.reject("description-missing", "needs a description", line)
    reading.name = shown["name"] or one_line(skill.folder.name) or "skill"
    reading.description = shown["description"]
    line = block.file_line(document.line("name"))
    if len(reading.name) > MAX_NAME:
        return reading.reject("name-length", f"takes names of at most {MAX_NAME} characters", line)
    if not shown["name"]:
        reading.change("name-missing", "calls the skill by its folder", line)
    for key in shown if not repaired else ():
        if shown[key] and shown[key] != fields[key]:
            line = block.file_line(document.line(key))
            reading.change(f"{key}-space", f"shows the {key} on one line, runs of blanks as one", line)
    return reading


def _plugin(folder: Path) -> str | None:
    """Return the name by the manifest of a plugin's folder, else the folder's; None if the manifest cannot be read."""
    for place in MANIFESTS:
        try:
            manifest = json.loads((folder / place).read_bytes())
            name = manifest.get("name", "")
        except FileNotFoundError:
            continue
        except (OSError, ValueError, AttributeError, RecursionError):
            return None
        return (name.strip() or folder.name) if isinstance(name, str) else None
    return None


def _parse(skill: SkillFile, block: str) -> Document:
    """Return libyaml's reading of a block as that of serde_yaml, which does not take a BOM off first."""
    return skill.yaml(BOM + block if block.startswith(BOM) else block)


def repair(block: str) -> str:
    """Quote the one-line values that libyaml would stumble on, as Codex does before its second try."""
    lines, scalar = [], -1  # indentation of the block scalar that is being passed over, or -1
    for line in block.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if scalar >= 0 and (indent > scalar or not line.strip(BLANKS)):
            lines.append(line)
            continue
        scalar = -1
        key, _, rest = line.partition(":")
        content = rest.lstrip(BLANKS)
        comment = _COMMENT.search(content)
        value = content[: comment.start() if comment else None].rstrip(BLANKS)
        if key.strip(BLANKS) and content != rest and value:
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
    return bool(_COLON.search(value)) or (value[0] in "[{@`" and not is_value(read_yaml(value)))
