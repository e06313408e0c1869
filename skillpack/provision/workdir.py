"""Where a plan works."""

from __future__ import annotations

from pathlib import Path


def inside_skill(folder: Path) -> bool:
    """Tell whether a folder is a skill's, or lies in one."""
    return any((above / "SKILL.md").is_file() for above in (folder, *folder.parents))


def default_workdir(recipe: str, here: Path) -> Path:
    """Return where a plan works unless the user says: below ``here``, but never inside a skill's folder.

    An environment in there would count as a change of the skill, and hinder its update.
    """
    return (Path.home() if inside_skill(here) else here) / f"agentjet-{recipe}"
