"""The pack as somebody else's repository or job gets it: a clean clone, installed from the package index."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from skillpack.pack import skills_dir

PACK = skills_dir().parent
NO_INDEX = re.compile(
    "Could not find a version|Failed to establish a new connection|ConnectionError|NewConnectionError"
)
PARTS = (
    ".pre-commit-hooks.yaml",
    "LICENSE.txt",
    "README.md",
    "action.yml",
    "ajet",
    "pyproject.toml",
    "skillpack",
    "skills",
)


def git(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run git in a folder as a user whom nobody knows."""
    known = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", "-C", folder, *known, *words], capture_output=True, text=True, check=check)


def clone(folder: Path) -> Path:
    """Make a repository of what is published of the pack, as it is now, and return it."""
    folder.mkdir(parents=True)
    for part in PARTS:
        if (PACK / part).is_dir():
            shutil.copytree(PACK / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(PACK / part, folder / part)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "The pack")
    return folder


def skip_without_index(output: str) -> None:
    """Skip the test if pip says that it cannot reach a package index."""
    if NO_INDEX.search(output):
        pytest.skip("no package index can be reached")
