"""What an installed skill remembers: who runs its scripts, where it came from, and what its files were."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from skillpack.files import write_atomically

NAME = ".agentjet-skills.json"
"""The record in the folder of a copied skill. ``scripts/_pack.py`` reads it too."""

LINKS = ".agentjet-skills"
"""The folder beside linked skills that holds their records: a link has no place for one of its own."""

OWN = "agentjet-skills"
"""``source`` of the skills that this pack brings; of others it is the folder that they came from."""


@dataclass(frozen=True)
class Record:
    """``files`` are {relative path: SHA-256} of a copy, ``link`` is where a link points.

    ``origin`` is where the pack of that ``python`` came from, to make another one of.
    """

    python: str
    version: str
    source: str
    origin: str = ""
    files: dict[str, str] = field(default_factory=dict)
    link: str = ""


def copy_record(skill: Path) -> Path:
    """Return where the record of a copied skill lies."""
    return skill / NAME


def link_record(folder: Path, name: str) -> Path:
    """Return where the record of a linked skill lies."""
    return folder / LINKS / f"{name}.json"


def read(path: Path) -> Record | None:
    """Return the record in a file, or None if there is none that can be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Record(
            python=str(data["python"]),
            version=str(data["version"]),
            source=str(data["source"]),
            origin=str(data.get("origin", "")),
            files=dict(data["files"]),
            link=str(data.get("link", "")),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(path: Path, record: Record) -> None:
    """Write a record. Raises OSError."""
    write_atomically(path, json.dumps(asdict(record), indent=2) + "\n")


def forget_link(folder: Path, name: str) -> None:
    """Remove the record of a linked skill, and the folder of such records if it was the last. Raises OSError."""
    link_record(folder, name).unlink(missing_ok=True)
    links = folder / LINKS
    if links.is_dir() and not any(links.iterdir()):
        links.rmdir()
