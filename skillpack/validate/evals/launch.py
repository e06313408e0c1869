"""Which program runs a file of a skill."""

from __future__ import annotations

from pathlib import Path

INTERPRETERS = {".bash": "bash", ".cjs": "node", ".js": "node", ".mjs": "node", ".sh": "bash"}
"""Suffix: the program that runs such files. Python files are run by the interpreter that is asked for."""


def words(file: Path, python: str) -> list[str]:
    """Return the words that start ``file``: its interpreter and it, or it alone if its first line is to choose."""
    interpreter = python if file.suffix == ".py" else INTERPRETERS.get(file.suffix)
    return [interpreter, str(file)] if interpreter else [str(file)]
