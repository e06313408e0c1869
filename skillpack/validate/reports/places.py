"""Paths as they are shown: from the working directory where they lie below it."""

from __future__ import annotations

from pathlib import Path


def shown(path: Path) -> str:
    """Return ``path`` relative to the working directory if it lies below it, else as it is."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
