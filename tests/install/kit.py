"""What the tests of the installer share: a small skill, and what a command line answered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., "Answer"]


class Answer:
    """What a command line printed, and its exit code."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr

    @property
    def document(self) -> dict[str, Any]:
        """The JSON document on stdout."""
        return json.loads(self.stdout)

    @property
    def actions(self) -> list[tuple[str, str]]:
        """(action, path) of each action in it."""
        return [(action["action"], action["path"]) for action in self.document["actions"]]


def make_skill(folder: Path, name: str = "count-things", body: str = "# Count\n", version: str = "1.0") -> Path:
    """Write a skill with one script and return its folder."""
    skill = folder / name
    (skill / "scripts").mkdir(parents=True)
    (skill / "references").mkdir()
    (skill / "SKILL.md").write_text(
        f'---\nname: {name}\ndescription: "Count things. Use when things are to be counted."\n'
        f'metadata:\n  version: "{version}"\n---\n{body}'
    )
    (skill / "references" / "numbers.md").write_text("1 2 3\n")
    script = skill / "scripts" / "count.py"
    script.write_text("#!/usr/bin/env python3\nprint(3)\n")
    script.chmod(0o755)
    return skill


def below(folder: Path) -> dict[str, str]:
    """Return {relative path: text} of the files below a folder; a link by where it points."""
    found = {}
    for parent, folders, files in os.walk(folder):
        for name in [*files, *(name for name in folders if Path(parent, name).is_symlink())]:
            path = Path(parent, name)
            content = f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
            found[str(path.relative_to(folder))] = content
    return found


def installed(folder: Path) -> dict[str, str]:
    """Return the files of an installed skill, its record left out."""
    return {name: text for name, text in below(folder).items() if name != ".agentjet-skills.json"}
