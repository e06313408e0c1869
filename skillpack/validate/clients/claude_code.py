"""Claude Code (2.1.332): what the running program tells its model, and what ``plugin validate`` says.

A skill's identity is its folder. The frontmatter ends at the first ``---`` after the opening
line, wherever that stands, and is read by Bun's YAML parser; where that fails, one-line values
with special characters are quoted and tabs become blanks.

What becomes of a skill without a readable description depends on where it stands. In ``.claude/skills``,
a user's or a project's, the first line of its body serves for one. In a plugin the skill is kept as a
slash command that the model never hears of, unless ``when_to_use`` is there.
"""

from __future__ import annotations

import re
import unicodedata

from skillpack.validate.causes import cause_of
from skillpack.validate.clients.javascript import BLANKS, kind_of, shown_value, trim
from skillpack.validate.clients.reading import Reading
from skillpack.validate.clients.yaml12 import read_yaml12
from skillpack.validate.source import BOM, Block, SkillFile
from skillpack.validate.tree import Document, Node

LISTING_LIMIT = 1536
"""UTF-16 units that a skill's line in the listing may have; a longer one is cut (skillListingMaxDescChars)."""

BODY_LIMIT = 100
"""UTF-16 units that a description taken from the body may have."""

_FENCES = re.compile(rf"\A\ufeff?---[{BLANKS}]*\n(.*?)---", re.DOTALL)
_HEADING = re.compile(rf"\A#+[{BLANKS}]+")
_PAIR = re.compile(r"([A-Za-z_-]+):\s+([^\r\n\u2028\u2029]+)")
_QUOTED = re.compile(r"""".*"|'.*'""")
_SPECIAL = re.compile(r"[{}\[\]*&#!|>%@`]|: ")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
_CODES = re.compile(
    r"(?:\x1b\[|\x9b)[^\x18\x1a\x1b\x9c@-~]*[\x18\x1a\x9c@-~]?"
    r"|(?:\x1b\]|\x9d)[^\x07\x18\x1a\x1b\x9c]*[\x07\x18\x1a\x9c]?"
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x18\x1a\x1b\x9c]*[\x18\x1a\x9c]?"
    r"|\x1b(?:[ -/][^\x1b]?|[0-~\x18\x1a\x9c])?",
    re.DOTALL,
)
"""Terminal codes as ``Bun.stripANSI`` takes them out, a string without an end up to the end of the text."""
_A = {"array": "a list", "object": "a mapping", "number": "a number", "boolean": "a boolean", "string": "a text"}
_TRUE = frozenset({"true", "yes", "on", "1"})


def read(skill: SkillFile) -> Reading:
    """Return what Claude Code makes of a skill in a plugin's or a project's folder of skills."""
    reading = Reading()
    folder = skill.folder
    if folder.file_name != "SKILL.md":
        return reading.reject("file-name", f"does not see {folder.file_name}, only SKILL.md")
    if folder.file_is_link:
        target = folder.file.resolve()
        if target.name == "SKILL.md" and target.parent.parent == folder.path.parent.resolve():
            if target.parent.name < folder.name:
                return reading.reject("file-symlink", f"takes a file once, this one for {target.parent.name}")
        elif not folder.personal:
            reading.change("file-symlink", "reads a SKILL.md that is a symlink, but plugin validate passes over it")
    if folder.astray:
        return reading.reject("folder-deep", "looks for skills one folder deep")
    if skill.unreadable:
        return reading.reject(skill.unreadable_rule, f"cannot read the file: {skill.unreadable}")
    reading.name = folder.name if folder.personal else re.sub(r"[^A-Za-z0-9_-]", "-", folder.name)
    block = cut(skill)
    if block is None:
        rule, line = skill.why_no_block()
        _describe_by_body(skill, skill.text.removeprefix(BOM), reading, rule, "finds no frontmatter", line)
        return reading
    if skill.cut_short(block):
        line = block.file_line(block.text.count("\n"))
        reading.change("fence-in-value", "ends the frontmatter at the first ---, inside of a value", line)
    document = _document(skill, block, reading)
    if document is not None:
        _read_fields(skill, block, document, reading)
    return reading


def cut(skill: SkillFile) -> Block | None:
    """Return what stands between the opening line, blank lines behind it included, and the next ``---``."""
    match = _FENCES.match(skill.text)
    if match is None:
        return None
    line = skill.text.count("\n", 0, match.start(1))
    return Block(match[1], line, match.end(), ragged=skill.text[match.end() - 4] != "\n")


def repair(text: str) -> str:
    """Quote the one-line values of top-level keys that hold special characters, and turn leading tabs into blanks."""
    lines = []
    for line in text.split("\n"):
        pair = _PAIR.fullmatch(line)
        if pair and _SPECIAL.search(pair[2]) and not _QUOTED.fullmatch(pair[2]) and not _is_list(pair[2]):
            value = pair[2].replace("\\", "\\\\").replace('"', '\\"')
            line = f'{pair[1]}: "{value}"'
        content = line.lstrip("\t")
        lines.append("  " * (len(line) - len(content)) + content)
    return "\n".join(lines)


def _is_list(value: str) -> bool:
    if value[0] != "[" or value[-1] != "]":
        return False
    document = read_yaml12(value, bun=True)
    return document.root is not None and document.root.kind == "seq"


def _document(skill: SkillFile, block: Block, reading: Reading) -> Document | None:
    """Return the mapping that was read, perhaps after the repair, or None if the skill is left without any."""
    body = skill.text[block.end :]
    document = read_yaml12(block.text, skill.yaml, bun=True)
    if document.fault is not None:
        rule, line = cause_of(block.text, document.fault)
        document = read_yaml12(repair(block.text), skill.yaml, bun=True)
        if document.fault is not None:
            _describe_by_body(skill, body, reading, rule, "cannot read the YAML", block.file_line(line))
            return None
        reading.change(rule, "has to quote the value itself", block.file_line(line))
    root = document.root
    if document.documents > 1 or (root is not None and root.kind != "map" and kind_of(root) != "null"):
        _describe_by_body(skill, body, reading, "frontmatter-mapping", "finds no key: value lines", block.line + 1)
        return None
    return document


def _describe_by_body(
    skill: SkillFile, body: str, reading: Reading, rule: str, why: str, line: int, when: str = ""
) -> None:
    """Note what becomes of a skill without a description, and the one that is shown instead, if any."""
    if not skill.folder.personal and not when:
        reading.lose(rule, why, line)
        return
    reading.change(rule, f"{why} and takes the first line of the body for a description", line)
    first = next((line for line in map(trim, body.split("\n")) if line), "")
    first = _HEADING.sub("", first) or ("Skill" if skill.folder.personal else "Plugin skill")
    reading.description = listing(_CODES.sub("", _shortened(first, BODY_LIMIT, "...")) + when)


def _read_fields(skill: SkillFile, block: Block, document: Document, reading: Reading) -> None:
    def change(rule: str, key: str, text: str) -> None:
        reading.change(rule, text, block.file_line(document.line(key)))

    for key, rule, text in _type_faults(document):
        change(rule, key, text)
    name = document.value("name")
    if kind_of(name) in ("undefined", "null"):
        change("name-missing", "name", "calls the skill by its folder")
    elif shown_value(name) != reading.name:
        reading.title = _title(shown_value(name))
        beside = "shows the name beside it" if reading.title else "drops the name"
        change("name-folder", "name", f"calls the skill by its folder, {reading.name}, and {beside}")
    node, hint = document.value("description"), document.value("when_to_use")
    written = shown_value(node) if node is not None and kind_of(node) not in ("null", "array", "object") else ""
    when = "" if kind_of(hint) == "null" else _CODES.sub("", shown_value(hint))
    when = f" - {when}" if trim(when) else ""
    line = block.file_line(document.line("description"))
    if _truth(document.value("disable-model-invocation")):
        reading.description = listing(_CODES.sub("", trim(written)) + when)
        line = block.file_line(document.line("disable-model-invocation"))
        reading.lose("model-invocation", "does as the file asks", line)
    elif not trim(written):
        rule = "description-type" if kind_of(node) in ("array", "object") else "description-missing"
        _describe_by_body(skill, skill.text[block.end :], reading, rule, "finds no description", line, when)
        return
    else:
        listed = trim(written) + when
        reading.description = listing(_CODES.sub("", trim(written)) + when)
        if node is not None and node.end >= len(document.text):
            written = written.removesuffix("\n")  # the fence's line break, not the value's
        for rule, text in _listing_changes(written, listed, reading.description):
            change(rule, "description", text)
    if node is not None and written != node.value and node.plain:
        change("description-type", "description", f"takes {node.value} for a number and shows {written}")


def _title(name: str) -> str | None:
    """Return the name as it is shown in parentheses behind the folder's, or None if it is not fit to be shown."""
    fit = all(character in "._:-" or unicodedata.category(character)[0] in "LNM" for character in name)
    return name if name and fit else None


def _shortened(text: str, limit: int, tail: str) -> str:
    """Cut a text to so many UTF-16 units, the tail among them."""
    units = text.encode("utf-16-le", "surrogatepass")
    if len(units) <= 2 * limit:
        return text
    return units[: 2 * (limit - len(tail))].decode("utf-16-le", "replace") + tail


def _type_faults(document: Document) -> list[tuple[str, str, str]]:
    """Return key, rule and words for the fields whose type ``plugin validate`` objects to."""
    faults = []
    for key, allowed in (
        ("name", ("string", "null")),
        ("allowed-tools", ("string", "null", "array")),
        ("metadata", ("object", "null")),
        ("shell", ("string", "null")),
    ):
        node = document.value(key)
        kind = kind_of(node)
        if node is None:
            continue
        if kind not in allowed:
            rule = "tools-type" if key == "allowed-tools" else "key-value" if key == "shell" else f"{key}-type"
            faults.append((key, rule, f"drops or rewrites {key}, {_A[kind]}"))
        elif key == "allowed-tools" and kind == "array":
            if any(kind_of(document.resolve(item)) != "string" for item in node.items):
                faults.append((key, "tools-type", "wants only text in the list of allowed-tools"))
        elif key == "shell" and kind == "string" and node.value.strip().lower() not in ("bash", "powershell"):
            faults.append((key, "key-value", f"knows the shells bash and powershell, not {node.value!r}"))
    return faults


def _truth(node: Node | None) -> bool:
    return node is not None and node.kind == "scalar" and shown_value(node).strip().lower() in _TRUE


def listing(text: str) -> str:
    """Return a description as the model sees it: unseen characters as blanks, < and > escaped, cut to the limit."""
    text = _UNSEEN.sub(" ", text).replace("<", "&lt;").replace(">", "&gt;")
    return _shortened(text, LISTING_LIMIT, "…")


def _listing_changes(written: str, listed: str, shown: str) -> list[tuple[str, str]]:
    changes = []
    if shown.endswith("…") and not listed.endswith("…"):
        changes.append(("description-listing", f"shows its model the first {LISTING_LIMIT - 1} characters only"))
    if "<" in listed or ">" in listed:
        changes.append(("description-angle", "shows its model &lt; and &gt; for < and >"))
    if _UNSEEN.search(listed) or written != trim(written):
        changes.append(("description-space", "shows its model the description on one line"))
    return changes
