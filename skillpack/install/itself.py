"""How a user calls this very installation of the ``skills`` command."""

from __future__ import annotations

import shlex
import shutil
import sys
from functools import lru_cache
from pathlib import Path


def skills(*words: str | Path) -> str:
    """Return the line that runs ``skills`` with these words, ready for a shell."""
    return shlex.join([_program(), *map(str, words)])


@lru_cache
def _program() -> str:
    """Return ``skills`` if that is this installation on PATH, else its full path.

    It may not be on PATH at all, and another program has the same name (npm's ``skills``).
    """
    here = Path(sys.executable).with_name("skills")
    found = shutil.which("skills")
    if not here.exists() or (found and Path(found).resolve() == here.resolve()):
        return "skills"
    return str(here)
