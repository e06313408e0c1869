"""The files that need no model: so plain that every client reads them alike, which most are meant to be.

What is accepted here is a narrow subset, recognised without a YAML parser. The models are asked
about everything else; that they agree on the subset is tested.
"""

from __future__ import annotations

import re

from skillpack.validate.clients import openai_yaml
from skillpack.validate.source import SkillFile

_PLAIN = r"[A-Za-z][A-Za-z0-9 ,.()/_+-]*(?::[^\s:#\"'][A-Za-z0-9 ,.()/_+*-]*)?"
_QUOTED = r'"[^"\\<>\n\t]*"'
_FIELD = re.compile(
    rf"(?:license|compatibility|allowed-tools): (?:{_PLAIN}|{_QUOTED})\n"
    rf"|metadata:\n(?:  [a-z][a-z0-9-]*: (?:{_PLAIN}|{_QUOTED})\n)+"
)
_INNER = r'[^"\\<>\n\t]'
_FILE = re.compile(
    r"---\nname: (?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)\n"
    rf'description: "(?P<description>(?! ){_INNER}{{1,1024}}(?<! ))"\n'
    rf"(?P<rest>(?:{_FIELD.pattern})*)---\n"
)
_UNUSUAL = re.compile(r"[^\n -~]|---")
_KEY = re.compile(r"^ *([a-z][a-z0-9-]*):", re.MULTILINE)
_NO_TEXT = frozenset({"true", "false", "null"})
MAX_NAME, MAX_REST = 64, 500


def portable(skill: SkillFile) -> tuple[str, str] | None:
    """Return the name and description that every client shows unchanged, or None where the models must be asked."""
    folder = skill.folder
    if folder.file_name != "SKILL.md" or folder.depth > 1 or folder.missing or skill.unreadable:
        return None
    if folder.file_is_link or folder.folder_is_link or folder.hidden or folder.astray or folder.inside:
        return None
    if folder.plugin is not None:
        return None
    match = _FILE.match(skill.text)
    if match is None or match["name"] != folder.name or len(match["name"]) > MAX_NAME or len(match["rest"]) > MAX_REST:
        return None
    name, keys = match["name"], _KEY.findall(match["rest"])
    if not name[0].isalpha() or name in _NO_TEXT or _UNUSUAL.search(skill.text, 3, match.end() - 4):
        return None
    if "  " in match["description"]:  # Codex shows one blank
        return None
    if skill.invalid_at is not None or len(set(keys)) < len(keys) or "internal" in keys:
        return None
    if skill.openai is not None:
        taken = openai_yaml.read(skill)
        if isinstance(taken, openai_yaml.OpenAI) and not taken.for_codex:
            return None
    return name, match["description"]
