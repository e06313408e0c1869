"""The real clients take every skill of the pack, and our validator says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import skills_ref.validator

from skillpack.pack import skills_dir
from skillpack.validate.check import check_skills
from skillpack.validate.discover import find_skills

NAMES = sorted(path.parent.name for path in skills_dir().glob("*/SKILL.md"))

pytestmark = pytest.mark.skipif(not NAMES, reason="no skills yet")


def lay(target: Path) -> Path:
    shutil.copytree(skills_dir(), target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def test_our_validator_says_that_every_client_loads_them():
    with check_skills(find_skills(skills_dir())) as outcome:
        verdicts = {
            report.name: {client: str(reading) for client, reading in report.clients.items()} for report in outcome
        }
    assert sorted(verdicts) == NAMES
    assert {text for clients in verdicts.values() for text in clients.values()} == {"loads"}


def test_codex_lists_exactly_them(codex, tmp_path):
    lay(tmp_path / "project" / ".agents" / "skills")
    answer = codex.ask(tmp_path / "project")
    assert sorted(answer.listed) == NAMES
    assert answer.refused == {}


def test_claude_code_tells_its_model_of_exactly_them(claude_code, tmp_path):
    lay(tmp_path / "plugin" / "skills")
    plugin = claude_code.plugin(tmp_path / "plugin")
    assert sorted(claude_code.ask(plugin).listed) == NAMES
    findings = [content["errors"] + content["warnings"] for content in claude_code.validate(plugin)["contents"]]
    assert all(finding == [] for finding in findings)


def test_npx_skills_offers_exactly_them(npx_skills, tmp_path):
    answer = npx_skills.ask(lay(tmp_path / "skills"))
    assert sorted(answer.listed) == NAMES
    assert answer.refused == {}


@pytest.mark.parametrize("name", NAMES)
def test_skills_ref_finds_nothing(name):
    assert skills_ref.validator.validate(skills_dir() / name) == []
