"""What steps made in a folder: written down before each begins, so that only that is ever taken back.

One JSON line per step, in the order in which they began. Shell scripts that plan.py prints write the same lines.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import NamedTuple

from skillpack.files import write_atomically
from skillpack.provision.plan import Step

MADE = "made.jsonl"


class Made(NamedTuple):
    """A step that began in a folder, and the shell text that takes back what it made."""

    id: str
    title: str
    undo: str


def line_of(step: Step) -> str:
    """Return the line that stands for a step; ASCII, so that every locale's grep finds it again."""
    return json.dumps({"id": step.id, "title": step.title, "undo": step.undo})


def made_in(folder: Path) -> list[Made]:
    """Return what was made by steps in a folder, in order; a line that cannot be read is passed over."""
    found = []
    for line in _lines(folder):
        with contextlib.suppress(ValueError, TypeError, KeyError):
            entry = json.loads(line)
            found.append(Made(*(str(entry[name]) for name in Made._fields)))
    return found


def is_noted(folder: Path, step: Step) -> bool:
    """Tell whether a step is known to have begun in a folder: what is there of it is ours."""
    return line_of(step) in _lines(folder)


def note(folder: Path, step: Step) -> None:
    """Write down that a step begins."""
    if not is_noted(folder, step):
        write_atomically(folder / MADE, "".join(f"{line}\n" for line in [*_lines(folder), line_of(step)]))


def _lines(folder: Path) -> list[str]:
    try:
        return (folder / MADE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
