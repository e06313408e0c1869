"""Which program runs a file of a skill."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from skillpack.script import BadInput

ASK = "import sys; print(sys.version_info[0])"
ASK_SECONDS = 60

INTERPRETERS = {".bash": "bash", ".cjs": "node", ".js": "node", ".mjs": "node", ".sh": "bash"}
"""Suffix: the program that runs such files. Python files are run by the interpreter that is asked for."""


def words(file: Path, python: str) -> list[str]:
    """Return the words that start ``file``: its interpreter and it, or it alone if its first line is to choose."""
    interpreter = python if file.suffix == ".py" else INTERPRETERS.get(file.suffix)
    return [interpreter, str(file)] if interpreter else [str(file)]


def interpreter(given: str) -> Path:
    """Return the absolute path of the Python that a user means by a path or a name on PATH. Raises BadInput."""
    found = shutil.which(os.path.expanduser(given))  # noqa: PTH111 - it may be no path
    expected = "a Python 3 interpreter: its path, or its name on PATH"
    if found is None:
        raise BadInput(f"there is no program {given}", expected=expected, hint="--python python3")
    path = Path(os.path.abspath(found))  # noqa: PTH100 - a virtual environment is known by the link
    try:
        asked = subprocess.run([path, "-c", ASK], capture_output=True, text=True, check=False, timeout=ASK_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        asked = None
    if asked is None or asked.stdout.strip() != "3":
        raise BadInput(f"{path} is no Python 3", expected=expected, hint="--python python3")
    return path
