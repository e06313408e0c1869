from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from skillpack.cli import skills

DESCRIPTION = '"Counts the words of a text file. Use when the user asks how long a text is."'


@pytest.fixture
def run() -> Callable[..., Result]:
    def call(*arguments: Any) -> Result:
        return CliRunner().invoke(skills, [str(argument) for argument in arguments])

    return call


@pytest.fixture
def validate(run: Callable[..., Result]) -> Callable[..., dict[str, Any]]:
    """Return the JSON of ``skills validate --no-run`` over a path."""

    def call(path: Path, *more: str) -> dict[str, Any]:
        result = run("validate", path, "--json", "--no-run", *more)
        assert result.exit_code in (0, 1), result.output
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    return call


@pytest.fixture
def skill(tmp_path: Path) -> Callable[..., Path]:
    """Write a skill that nobody minds, changed by what is given: the whole text, the body, fields, or other files."""

    def make(
        name: str = "word-count",
        *,
        text: str | bytes | None = None,
        body: str = "# Count words\n\nOpen the file and count.\n",
        fields: str = "",
        description: str = DESCRIPTION,
        files: dict[str, str] | None = None,
    ) -> Path:
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True, exist_ok=True)
        if text is None:
            text = f"---\nname: {name}\ndescription: {description}\n{fields}---\n\n{body}"
        (folder / "SKILL.md").write_bytes(text.encode() if isinstance(text, str) else text)
        for file, content in (files or {}).items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(content, encoding="utf-8")
        return folder

    return make
