"""Find the skills below a path, and what lies in each of them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from skillpack.script import BadInput

SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".tox", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache"}
)
"""Folders that are not looked into: nobody keeps skills of their own below them, though Codex would find some there."""

PLUGIN_FOLDERS = frozenset({".codex-plugin", ".claude-plugin", ".cursor-plugin"})
"""Folders that a plugin's plugin.json may lie in."""

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
    """Whether it, or a folder on the way from ``root``, is a symlink."""
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
    plugin: Path | None = None
    """The nearest folder below ``root``, perhaps its own, that holds a plugin's manifest."""
    places: Places | None = None
    """Where skills lie below ``root``, as far as somebody asked."""

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


class Places:
    """Which folders of one search hold skills, found out once each."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, int, bool], bool] = {}

    def hold(self, folder: Path, levels: int = 1, *, links: bool = True) -> bool:
        """Tell whether a SKILL.md lies in a folder at most ``levels`` below, symlinked folders counted if ``links``."""
        key = (folder, levels, links)
        if key not in self._known:
            self._known[key] = self._look(folder, levels, links)
        return self._known[key]

    def _look(self, folder: Path, levels: int, links: bool) -> bool:
        try:
            with os.scandir(folder) as entries:
                folders = [entry for entry in entries if _is_dir(entry) and (links or not entry.is_symlink())]
        except OSError:
            return False
        if any(os.path.isfile(f"{entry.path}/SKILL.md") for entry in folders):  # noqa: PTH113 - quicker than Path's
            return True
        deeper = (Path(entry.path) for entry in folders if levels > 1 and entry.name not in SKIPPED)
        return any(self.hold(child, levels - 1, links=links) for child in deeper)


def find_skills(path: Path) -> Iterator[SkillFolder]:
    """Yield the skills at and below ``path``: a SKILL.md, its folder, or any folder above.

    Symlinked folders are followed, after all others and each real folder once. Raises BadInput if there is no such
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
    skill: SkillFolder | None = None
    prefix: str = ""
    linked: bool = False
    hidden: bool = False
    plugin: Path | None = None


def _walk(root: Path) -> Iterator[SkillFolder]:
    """Yield skills in the order of their paths, each after all that lies below it was listed; linked ones last."""
    seen: set[tuple[int, int]] = set()
    places = Places()
    real_root = os.path.realpath(root)
    pending: list[_Visit | SkillFolder] = [_Visit(root, 0)]
    links: deque[_Visit] = deque()
    while pending or links:
        visit = pending.pop() if pending else links.popleft()
        if isinstance(visit, SkillFolder):
            visit.files.sort()
            visit.astray = visit.inside is not None or _astray(visit.path, root, places)
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
        plugin = visit.plugin
        if visit.depth and any(entry.name in PLUGIN_FOLDERS for entry in listing):
            plugin = visit.path
        closed = visit.depth > 0 and visit.path.name in SKIPPED
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
                plugin=plugin,
                places=places,
            )
            prefix = ""
            pending.append(skill)
        elif closed:
            continue
        elif skill is None and _looks_like_skill(visit, listing, places):
            yield SkillFolder(visit.path, root, "SKILL.md", visit.depth, missing=True)
        for entry in reversed(listing):
            if not _is_dir(entry):
                if skill:
                    skill.files.append(prefix + entry.name)
                continue
            if closed or visit.depth >= MAX_DEPTH:
                continue
            child = _Visit(
                visit.path / entry.name,
                visit.depth + 1,
                skill,
                f"{prefix}{entry.name}/",
                visit.linked or entry.is_symlink(),
                visit.hidden or entry.name.startswith("."),
                plugin,
            )
            if not entry.is_symlink():
                pending.append(child)
            elif skill is None:
                links.append(child)
            elif _is_below(os.path.realpath(child.path), real_root):
                skill.files += _files_of_link(child)
            else:
                pending.append(child)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _files_of_link(visit: _Visit) -> list[str]:
    """Return the files behind a link that leads to another place of the search, but not to a folder that it lies in."""
    if _is_below(os.path.realpath(visit.path.parent), os.path.realpath(visit.path)):
        return []
    found = []
    for folder, folders, files in os.walk(visit.path):
        folders[:] = [name for name in folders if name not in SKIPPED]
        inner = os.path.relpath(folder, visit.path)
        prefix = visit.prefix if inner == os.curdir else f"{visit.prefix}{inner}/"
        found += [prefix + name for name in files]
    return found


def _looks_like_skill(visit: _Visit, listing: list[os.DirEntry[str]], places: Places) -> bool:
    """Tell whether a folder without SKILL.md has a skill's folders in it and skills beside it."""
    furnished = any(entry.name in ("scripts", "references") and _is_dir(entry) for entry in listing)
    return furnished and visit.depth > 0 and places.hold(visit.path.parent)


def _astray(path: Path, root: Path, places: Places) -> bool:
    """Tell whether a folder above the one that a skill stands in holds skills itself.

    A folder named ``skills`` is one to look into even so, unless it stands below another that holds skills.
    """
    if path == root:
        return False
    container = folder = path.parent
    while folder != root:
        folder = folder.parent
        if places.hold(folder) and (container.name != "skills" or folder.name == "skills"):
            return True
    return False


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a loop
        return False
