"""Where ``npx skills add DIR`` (1.7) looks for skills below the folder that it is pointed at.

A skill in DIR itself is the only one. Else the usual places are looked through: DIR one level
deep, ``skills`` and the agents' own folders three. Only if nothing is there, everything is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from skillpack.validate.discover import SkillFolder

MAX_DEPTH = 5
SKIPPED = frozenset({"node_modules", ".git", "dist", "build", "__pycache__"})

AGENTS = (
    *("agents", "claude", "cline", "codebuddy", "codex", "commandcode", "continue", "factory", "github", "goose"),
    *("grok", "iflow", "junie", "kilo", "kilocode", "kimchi", "kiro", "minimax", "mux", "neovate", "opencode"),
    *("openhands", "pi", "qoder", "roo", "trae", "windsurf", "zcode", "zencoder"),
)
"""Agents whose skills lie in ``.<agent>/skills``."""
USUAL = (
    ((), 1),
    (("skills",), 3),
    *((("skills", inner), 3) for inner in (".curated", ".experimental", ".system")),
    *(((f".{agent}", "skills"), 3) for agent in AGENTS),
    ((".posit", "assistant", "skills"), 3),
)
"""The folders that are looked through first, from DIR, and how many levels deep."""


def refusal(folder: SkillFolder, loads: Callable[[Path], bool]) -> tuple[str, str] | None:
    """Return the rule and the words for a skill that is not looked for, or None; ``loads`` tells of DIR's own skill."""
    if folder.folder_is_link:
        return "folder-symlink", "does not follow a symlinked folder"
    way = folder.path.relative_to(folder.root).parts
    if not way:
        return None
    inside = folder.inside.relative_to(folder.root).parts if folder.inside else None
    if inside is not None and loads(folder.root):
        return "skill-nested", f"takes {folder.root.name} for the only skill"
    if any(_finds(container, levels, way, inside) for container, levels in USUAL):
        return None
    if folder.places is not None and any(
        folder.places.hold(folder.root.joinpath(*container), levels, links=False) for container, levels in USUAL
    ):
        if inside:
            return "skill-nested", f"does not look inside another skill ({inside[-1]})"
        return "folder-deep", "does not look this deep"
    if len(way) > MAX_DEPTH or SKIPPED & set(way):
        return "folder-deep", "does not look this deep"
    return None


def _finds(container: tuple[str, ...], levels: int, way: tuple[str, ...], inside: tuple[str, ...] | None) -> bool:
    """Tell whether a skill is met when a container is looked through; no skill below another is."""
    between = way[len(container) : -1]
    if way[: len(container)] != container or not len(container) < len(way) <= len(container) + levels:
        return False
    return not SKIPPED & set(between) and (inside is None or len(inside) <= len(container))
