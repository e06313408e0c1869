"""What a skill says of itself in the head of its SKILL.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FILE = "SKILL.md"


@dataclass(frozen=True)
class Card:
    """A skill's name, description, licence and metadata, and the folder it lies in."""

    path: Path
    name: str
    description: str
    license: str = ""
    metadata: dict[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The version in the metadata, or nothing."""
        return self.metadata.get("version", "")

    @property
    def references(self) -> list[str]:
        """The names of its reference pages."""
        return sorted(page.name for page in (self.path / "references").glob("*.md"))

    @property
    def scripts(self) -> list[str]:
        """The names of its scripts; helpers (``_x.py``) left out."""
        folder = self.path / "scripts"
        found = folder.iterdir() if folder.is_dir() else []
        return sorted(script.name for script in found if script.suffix in (".py", ".sh") and script.name[0] != "_")


class NotASkill(ValueError):
    """A folder whose SKILL.md is missing or has no readable head; the message says which."""


def read_card(skill: Path) -> Card:
    """Return the card of the skill in a folder. Raises NotASkill."""
    try:
        text = (skill / FILE).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotASkill(f"{skill} has no {FILE}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise NotASkill(f"{skill / FILE} cannot be read: {error}") from None
    first, *lines = text.splitlines() or [""]
    end = next((number for number, line in enumerate(lines) if line.rstrip() == "---"), None)
    if first.strip() != "---" or end is None:
        raise NotASkill(f"{skill / FILE} has no frontmatter between two lines of ---")
    try:
        head: Any = yaml.safe_load("\n".join(lines[:end]))
    except (yaml.YAMLError, ValueError) as error:
        raise NotASkill(f"the frontmatter of {skill / FILE} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(head, dict) or not head.get("name") or not head.get("description"):
        raise NotASkill(f"the frontmatter of {skill / FILE} has no name and description")
    metadata = head.get("metadata")
    return Card(
        path=skill,
        name=str(head["name"]),
        description=" ".join(str(head["description"]).split()),
        license=str(head.get("license", "")),
        metadata={str(key): str(value) for key, value in metadata.items()} if isinstance(metadata, dict) else {},
    )


def read_cards(folder: Path) -> list[Card]:
    """Return the cards of the skills directly below a folder, by name; what is no skill is passed over."""
    cards = []
    for skill in sorted(folder.iterdir()) if folder.is_dir() else []:
        try:
            cards.append(read_card(skill))
        except NotASkill:
            continue
    return cards
