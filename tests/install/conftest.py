"""A clean home, a small skill, and the command line in this process."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from skillpack.cli import skills
from tests.install.kit import Answer, Run, make_skill


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty HOME that is set, with no variable that points elsewhere, and a working directory below it.

    Hints say ``skills``, as they do to a user who has it on PATH.
    """
    monkeypatch.setattr("skillpack.install.itself._program", lambda: "skills")
    folder = tmp_path / "home of a user"
    (folder / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(folder / "work")
    return folder


@pytest.fixture
def run(home: Path) -> Run:
    """Return a function that runs ``skills ARGUMENTS`` in this process."""

    def call(*arguments: str | Path) -> Answer:
        result = CliRunner().invoke(skills, [str(argument) for argument in arguments], standalone_mode=False)
        code, stderr = result.return_value or 0, result.stderr
        if isinstance(result.exception, click.ClickException):
            code = result.exception.exit_code
            error = result.exception
            parts = (error.message, getattr(error, "expected", ""), getattr(error, "hint", ""))
            stderr += "\n".join(filter(None, parts))
        elif result.exception is not None:
            raise result.exception
        return Answer(code, result.stdout, stderr)

    return call


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """Return a skill that is not of this pack."""
    return make_skill(tmp_path / "elsewhere")
