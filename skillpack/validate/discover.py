"""Find the skills below a path, and what lies in each of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from skillpack.script import BadInput

SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".tox", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache"}
)
"""Folders that no client looks for skills in."""

MAX_DEPTH = 32
"""Folders deeper than this are left out; a loop of symlinks ends here at the latest."""


@dataclass(slots=True)
class SkillFolder:
    """A folder that holds a SKILL.md, by whatever spelling, and what the walk saw of it."""

    path: Path
    root: Path
    """The folder that the search began in: what a client would be pointed at."""
    file_name: str
    depth: int
    """Folders between ``root`` and the skill: 0 if ``root`` is the skill itself, 1 for its children."""
    file_is_link: bool = False
    folder_is_link: bool = False
    inside: Path | None = None
    """The skill that this one lies in, if any."""
    hidden: bool = False
    """Whether a folder on the way from ``root`` begins with a dot."""
    astray: bool = False
    """Whether it lies deeper than the other skills of a folder, where clients that look one folder deep miss it."""
    files: list[str] = field(default_factory=list)
    """Every file below the folder but those of nested skills, relative, with ``/``."""
    missing: bool = False
    """Whether there is no SKILL.md, though the folder stands among skills and is furnished like one."""
    unreadable: list[str] = field(default_factory=list)
    """Folders below it that could not be listed."""

    @property
    def file(self) -> Path:
        """The SKILL.md itself."""
        return self.path / self.file_name

    @property
    def name(self) -> str:
        """The folder's own name, even if it was given as ``.``."""
        return self.path.name or self.path.resolve().name

    @property
    def personal(self) -> bool:
        """Whether it stands in a user's or a project's ``.claude/skills`` itself, and not in a plugin's folder."""
        return self.path.parent.parts[-2:] == (".claude", "skills")


def find_skills(path: Path) -> Iterator[SkillFolder]:
    """Yield the skills at and below ``path``: a SKILL.md, its folder, or any folder above.

    Symlinked folders are followed, each real folder once. Raises BadInput if there is no such
    path, or no skill below it.
    """
    if not os.path.lexists(path):
        raise BadInput(
            f"there is no {path}",
            expected="a skill's folder, a folder of skills, or a SKILL.md",
            hint=f"skills list {_nearest(path)}",
        )
    if path.is_dir():
        root = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would rename a linked folder
    elif path.name.lower() == "skill.md":
        root = Path(os.path.abspath(path.parent))  # noqa: PTH100
        skill = next((found for found in _walk(root) if found.depth == 0), None)
        if skill is not None:
            yield skill
            return
    else:
        raise BadInput(
            f"{path} is a file, not a skill",
            expected="a skill's folder, a folder of skills, or a SKILL.md",
            hint=f"skills validate {path.parent}",
        )
    found = False
    for skill in _walk(root):
        found = True
        yield skill
    if not found:
        raise BadInput(
            f"no skill below {path}: no folder holds a SKILL.md",
            expected="<folder>/SKILL.md with a name and a description between --- lines",
            hint=f"write {path}/SKILL.md, or name the folder that holds your skills",
        )


def _nearest(path: Path) -> Path:
    return next((parent for parent in path.parents if parent.is_dir()), Path())


@dataclass(slots=True)
class _Visit:
    path: Path
    depth: int
    skill: SkillFolder | None
    prefix: str
    linked: bool
    hidden: bool


def _walk(root: Path) -> Iterator[SkillFolder]:
    """Yield skills in the order of their paths, each after all that lies below it was listed."""
    seen: set[tuple[int, int]] = set()
    holds: dict[Path, bool] = {}
    pending: list[_Visit | SkillFolder] = [_Visit(root, 0, None, "", root.is_symlink(), False)]
    while pending:
        visit = pending.pop()
        if isinstance(visit, SkillFolder):
            visit.files.sort()
            visit.astray = visit.inside is not None or _astray(visit.path, root, holds)
            yield visit
            continue
        try:
            status = visit.path.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(visit.path) as entries:
                listing = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            if visit.skill:
                visit.skill.unreadable.append(visit.prefix)
            continue
        skill, prefix = visit.skill, visit.prefix
        spelled = [entry for entry in listing if entry.name.lower() == "skill.md" and not _is_dir(entry)]
        if spelled:
            best = next((entry for entry in spelled if entry.name == "SKILL.md"), spelled[-1])
            skill = SkillFolder(
                path=visit.path,
                root=root,
                file_name=best.name,
                depth=visit.depth,
                file_is_link=best.is_symlink(),
                folder_is_link=visit.linked,
                hidden=visit.hidden or (visit.depth == 0 and root.name.startswith(".")),
                inside=visit.skill.path if visit.skill else None,
            )
            prefix = ""
            pending.append(skill)
        elif skill is None and _looks_like_skill(visit, listing, holds):
            yield SkillFolder(visit.path, root, "SKILL.md", visit.depth, missing=True)
        for entry in reversed(listing):
            if _is_dir(entry):
                if entry.name not in SKIPPED and visit.depth < MAX_DEPTH:
                    pending.append(
                        _Visit(
                            visit.path / entry.name,
                            visit.depth + 1,
                            skill,
                            f"{prefix}{entry.name}/",
                            entry.is_symlink(),
                            visit.hidden or entry.name.startswith("."),
                        )
                    )
            elif skill:
                skill.files.append(prefix + entry.name)


def _looks_like_skill(visit: _Visit, listing: list[os.DirEntry[str]], holds: dict[Path, bool]) -> bool:
    """Tell whether a folder without SKILL.md has a skill's folders in it and skills beside it."""
    furnished = any(entry.name in ("scripts", "references") and _is_dir(entry) for entry in listing)
    return furnished and visit.depth > 0 and _holds_skills(visit.path.parent, holds)


def _astray(path: Path, root: Path, holds: dict[Path, bool]) -> bool:
    """Tell whether a folder above the one that a skill stands in holds skills itself."""
    container = path.parent
    if container.name == "skills" or path == root:
        return False
    while container != root:
        container = container.parent
        if _holds_skills(container, holds):
            return True
    return False


def _holds_skills(folder: Path, holds: dict[Path, bool]) -> bool:
    if folder not in holds:
        try:
            holds[folder] = any((child / "SKILL.md").is_file() for child in folder.iterdir())
        except OSError:
            holds[folder] = False
    return holds[folder]


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a loop
        return False
