"""What ``skills list`` tells of each skill."""

from __future__ import annotations

from collections.abc import Iterable
from shutil import get_terminal_size
from textwrap import fill

from skillpack.validate.checks.skill import Skill
from skillpack.validate.discover import SkillFolder
from skillpack.validate.source import read_skill

METADATA = ("version", "author", "soc-code", "soc-title")
"""The metadata that is listed: version, author and occupational class (SOC 2018)."""


def entries(folders: Iterable[SkillFolder]) -> list[dict[str, str]]:
    """Return name, path, description, license and metadata of each skill; an absent value is empty."""
    return [_entry(Skill(read_skill(folder))) for folder in folders]


def _entry(skill: Skill) -> dict[str, str]:
    metadata = skill.fields.get("metadata")
    pairs = metadata.pairs if metadata is not None else []
    values = {key.value: value.value for key, value in pairs if value.kind == "scalar"}
    return {
        "name": skill.name,
        "path": str(skill.folder.path),
        "description": " ".join(skill.description.split()),
        "license": skill.field("license"),
        **{key: values.get(key, "") for key in METADATA},
    }


def text(listed: Iterable[dict[str, str]]) -> str:
    """Return the entries for people: a line of facts and the description below it."""
    width = min(get_terminal_size().columns, 100)
    lines = []
    for entry in listed:
        occupation = f"SOC {entry['soc-code']} {entry['soc-title']}".strip() if entry["soc-code"] else ""
        version = f"v{entry['version']}" if entry["version"] else ""
        lines.append("  ".join(part for part in (entry["name"], version, occupation) if part))
        told = entry["description"] or "(no description)"
        lines.append(fill(told, width, initial_indent="    ", subsequent_indent="    "))
    return "\n".join(lines)
