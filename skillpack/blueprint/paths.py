"""Look at paths that people wrote, without an exception for what may not be looked at."""

from __future__ import annotations

import os
import stat
from pathlib import Path

FILE, FOLDER, MISSING, HIDDEN = "is a file", "is a directory", "does not exist", "may not be looked at by this user"


def kind(path: Path) -> str:
    """Return what a path is, in words: FILE, FOLDER, MISSING, or HIDDEN (a folder above it is closed). Never raises."""
    try:
        mode = path.stat().st_mode
    except PermissionError:
        return HIDDEN
    except (OSError, ValueError):
        return MISSING
    return FOLDER if stat.S_ISDIR(mode) else FILE


def is_there(path: Path) -> bool:
    """Tell whether a path leads to something that can be seen."""
    return kind(path) in (FILE, FOLDER)


def at_home(path: str) -> Path:
    """Return a path with ``~`` expanded; an unknown user's stays as it is, where ``Path.expanduser`` raises."""
    return Path(os.path.expanduser(path))  # noqa: PTH111
