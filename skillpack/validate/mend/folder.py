"""The folder of a skill whose name the specification refuses: what it is called instead, and whether that is safe."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from skillpack.validate.discover import SKIPPED, SkillFolder
from skillpack.validate.mend.names import folder_for

MAX_FILES, MAX_BYTES = 5000, 1 << 20
"""How many files are searched for the folder's old name, and how large one may be."""

_TEXTS = frozenset({".md", ".json", ".yaml", ".yml", ".toml", ".txt", ".py", ".sh", ".js", ".ts", ""})


class TooMany(Exception):
    """There are more files than are searched."""


def new_name(folder: SkillFolder, name: str) -> str:
    """Return what the folder is to be called so that every client takes it, or "" if it may stay or nobody knows.

    A folder with a leading dot is hidden on purpose, as far as anybody can tell.
    """
    wanted = folder_for(folder.name, name)
    return "" if wanted == folder.name or folder.name.startswith(".") else wanted


def is_checkout(folder: SkillFolder) -> bool:
    """Tell whether the folder is a repository's root: what somebody called his copy says nothing of the skill."""
    return (folder.path / ".git").exists()


def hindrance(folder: SkillFolder, wanted: str) -> str:
    """Return why the folder must not be renamed by a program, or "" if nothing stands in the way."""
    if folder.path == folder.root:
        return "it is the folder that was asked for"
    if folder.folder_is_link:
        return "it is a symlink"
    target = folder.path.with_name(wanted)
    if os.path.lexists(target) and not target.samefile(folder.path):
        return f"there is a {wanted} already"
    try:
        named = next(_mentions(folder), None)
    except TooMany:
        return f"there are more than {MAX_FILES:,} files that may name it"
    return f"{named} names it" if named else ""


def _mentions(folder: SkillFolder) -> Iterator[str]:
    """Yield the files and links below the search's root, and manifests beside it, that name the folder in a path."""
    pattern = re.compile(rf"[/\\]{re.escape(folder.name)}(?![\w-])|(?<![\w./-]){re.escape(folder.name)}[/\\]")
    for path in _texts(folder.root):
        try:
            if path.is_symlink():
                text = f"/{os.readlink(path)}"  # noqa: PTH115 - as it is written
            else:
                text = path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size <= MAX_BYTES else ""
            if pattern.search(text):
                yield os.path.relpath(path, folder.root)
        except OSError:
            continue


def _texts(root: Path) -> Iterator[Path]:
    for manifests in (root / ".claude-plugin", root.parent / ".claude-plugin"):
        yield from sorted(manifests.glob("*.json"))
    count = 0
    for place, folders, files in os.walk(root):
        folders[:] = [folder for folder in folders if folder not in SKIPPED]
        for name in (*folders, *files):
            count += 1
            if count > MAX_FILES:
                raise TooMany
            path = Path(place, name)
            if path.is_symlink() or (name in files and path.suffix.lower() in _TEXTS):
                yield path
