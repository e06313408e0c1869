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
    """``files`` are {relative path: SHA-256} of a copy, ``executable`` those of them that are (None: not known).

    ``link`` is where a link points.

    ``origin`` is where the pack of that ``python`` came from, to make another one of.
    """

    python: str
    version: str
    source: str
    origin: str = ""
    files: dict[str, str] = field(default_factory=dict)
    executable: list[str] | None = None
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
            executable=list(data["executable"]) if data.get("executable") is not None else None,
            link=str(data.get("link", "")),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(path: Path, record: Record) -> None:
    """Write a record. Raises OSError."""
    write_atomically(path, json.dumps(asdict(record), indent=2) + "\n")


def next_link_record(folder: Path, name: str) -> Path:
    """Return where the record of a link lies until the link stands."""
    return folder / LINKS / f"{name}.next"


def read_link(folder: Path, name: str) -> Record | None:
    """Return the record of the link that stands in a folder under a name, or None if there is none. Raises OSError."""
    found = (read(path) for path in (link_record(folder, name), next_link_record(folder, name)))
    return next((known for known in found if known is not None and _stands(folder / name, known)), None)


def stale_links(folder: Path) -> list[Path]:
    """Return what lies among the records of links and is none of a link that stands, or their folder if it is empty.

    Raises OSError.
    """
    links = folder / LINKS
    if not links.is_dir():
        return []
    records = sorted(links.iterdir())
    return [path for path in records if not _is_current(path)] if records else [links]


def settle_links(folder: Path) -> None:
    """Make the records of links agree with the links that stand. Raises OSError."""
    for path in stale_links(folder):
        known = read(path)
        if path.is_dir():
            continue
        if path.suffix == ".next" and known is not None and _stands(folder / path.stem, known):
            path.replace(link_record(folder, path.stem))
        else:
            path.unlink()
    _drop_if_empty(folder / LINKS)


def forget_link(folder: Path, name: str) -> None:
    """Remove the record of a linked skill, and the folder of such records if it was the last. Raises OSError."""
    link_record(folder, name).unlink(missing_ok=True)
    _drop_if_empty(folder / LINKS)


def _is_current(path: Path) -> bool:
    known = read(path)
    return path.suffix == ".json" and known is not None and _stands(path.parent.parent / path.stem, known)


def _stands(place: Path, known: Record) -> bool:
    return place.is_symlink() and str(place.readlink()) == known.link


def _drop_if_empty(links: Path) -> None:
    if links.is_dir() and not any(links.iterdir()):
        links.rmdir()
