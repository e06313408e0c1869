"""The catalogue page, the install prompt and the manifests are what the skills say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import skillpack
from skillpack.install import catalogue, sources
from skillpack.install.card import read_card
from skillpack.install.origin import pack_origin
from skillpack.install.prompt import LANGUAGES, digest
from skillpack.pack import skills_dir
from tests.install.kit import Run, below, make_skill

PACK = skills_dir().parent
has_skills = pytest.mark.skipif(not sources.own_names(), reason="no skills yet")


def commands(prompt: str) -> list[str]:
    """Return the commands of a prompt, block by block."""
    return re.findall(r"```sh\n(.*?)```", prompt, re.DOTALL)


def test_the_catalogue_page_is_current() -> None:
    result = CliRunner().invoke(catalogue.catalogue_command, ["--check"], standalone_mode=False)
    assert result.return_value == 0, f"run python -m skillpack.install.catalogue\n{result.stdout}"


@pytest.mark.parametrize("name", sources.own_names())
def test_each_skill_has_a_section_with_its_occupation_and_living_links(name: str) -> None:
    card = read_card(skills_dir() / name)
    section = catalogue.page(skills_dir()).split(f"\n## {name}\n")[1].split("\n## ")[0]
    assert card.description in section
    assert re.fullmatch(r"\d\d-\d{4}", card.metadata["soc-code"])
    assert f"SOC 2018 {card.metadata['soc-code']} {card.metadata['soc-title']}" in section
    for link in re.findall(r"\]\(([^)#]+)\)", section):
        assert (catalogue.PAGE.parent / link).is_file(), link


def test_drift_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(catalogue, "PAGE", tmp_path / "skills.md")
    result = CliRunner().invoke(catalogue.catalogue_command, ["--check"], standalone_mode=False)
    assert result.return_value == 1
    assert "+# The skills" in result.stdout
    CliRunner().invoke(catalogue.catalogue_command, [], standalone_mode=False)
    assert CliRunner().invoke(catalogue.catalogue_command, ["--check"], standalone_mode=False).return_value == 0


def test_a_catalogue_copes_with_bars_and_angles(tmp_path: Path) -> None:
    skill = make_skill(tmp_path)
    text = (skill / "SKILL.md").read_text().replace("Count things. Use", "Count a|b & <c>. Use")
    metadata = '  soc-code: "15-2051"\n  soc-title: "Data Scientists"\n  author: "me"\n'
    (skill / "SKILL.md").write_text(text.replace("metadata:\n", f"metadata:\n{metadata}"))
    page = catalogue.page(tmp_path)
    assert "| [count-things](#count-things) | Count a\\|b & <c>. | 15-2051 Data Scientists |" in page


@pytest.mark.parametrize("language", LANGUAGES)
@has_skills
def test_the_prompt_is_short_and_the_same_in_every_language(run: Run, language: str) -> None:
    name = sources.own_names()[0]
    prompt = run("prompt", name, "--lang", language, "--source", "https://example.org/pack.git").stdout
    english = run("prompt", name, "--source", "https://example.org/pack.git").stdout
    assert commands(prompt) == commands(english)
    assert len(commands(prompt)) == 6
    assert len(prompt) < 4000
    assert "git clone --depth 1 https://example.org/pack.git ~/agentjet-skills\n" in prompt
    assert "{" not in prompt


@has_skills
def test_the_prompt_names_all_skills_and_quotes_its_source(run: Run) -> None:
    prompt = run("prompt", "--source", "https://example.org/p.git; rm -rf x").stdout
    assert ", ".join(sources.own_names()) in prompt
    assert "git clone --depth 1 'https://example.org/p.git; rm -rf x' ~/agentjet-skills\n" in prompt


def test_a_prompt_for_what_is_not_there(run: Run) -> None:
    answer = run("prompt", "no-such-skill")
    assert answer.code == 2


def follow(home: Path, line: str, path: str) -> subprocess.CompletedProcess[str]:
    """Run the lines of a block as an assistant would."""
    return subprocess.run(
        ["sh", "-ec", line],
        capture_output=True,
        text=True,
        cwd=home,
        env={"HOME": str(home), "PATH": path},
        check=False,
        timeout=100,
    )


@has_skills
def test_the_prompt_followed_to_the_letter(run: Run, home: Path) -> None:
    """In a clean home; only the two lines that fetch packages are replaced, by this very installation."""
    prompt = run("prompt", "--source", str(PACK)).stdout
    read, check, prepare, install, doctor, _ = commands(prompt)
    path = os.environ["PATH"]
    assert follow(home, read, path).returncode == 0

    expected = re.search(r"```text\n(.*?)```", prompt, re.DOTALL)
    assert expected is not None
    assert follow(home, check, path).stdout == expected[1]

    assert [line.split()[0] for line in prepare.splitlines()] == ["python3", "~/.local/share/agentjet-skills/bin/pip"]
    programs = home / ".local" / "share" / "agentjet-skills" / "bin"
    programs.mkdir(parents=True)
    (programs / "skills").write_text(
        f"#!/bin/sh\nexec '{sys.executable}' -c 'from skillpack.cli import main; main()' \"$@\"\n"
    )
    (programs / "skills").chmod(0o755)

    done = follow(home, install, path)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in sources.own_names():
        for client in (".claude", ".agents"):
            assert (home / client / "skills" / name / "SKILL.md").is_file()
    checked = follow(home, doctor, path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@has_skills
def test_the_prompts_way_without_the_command(run: Run, home: Path) -> None:
    name = sources.own_names()[0]
    mine = make_skill(home / ".claude" / "skills", name, body="# Mine\n")
    *_, by_hand = commands(run("prompt", name, "--source", str(PACK)).stdout)
    assert follow(home, by_hand, os.environ["PATH"]).returncode == 0
    assert "# Mine" in (mine / "SKILL.md").read_text()
    copied = home / ".agents" / "skills" / name
    assert (copied / "SKILL.md").read_text() == (skills_dir() / name / "SKILL.md").read_text()
    assert run("install", name, "--agent", "codex").code == 0  # and it can be taken over later


def test_the_digest_is_what_the_shell_computes(home: Path, skill: Path) -> None:
    (skill / "scripts" / "__pycache__").mkdir()
    (skill / "scripts" / "__pycache__" / "x").write_text("")
    line = f"cd '{skill}' && find . -type f ! -path '*/__pycache__/*' | LC_ALL=C sort | xargs sha256sum | sha256sum"
    assert follow(home, line, os.environ["PATH"]).stdout == f"{digest(skill)}  -\n"


def test_the_source_is_where_the_checkout_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "skills").mkdir(parents=True)
    (checkout / "pyproject.toml").write_text("")
    monkeypatch.setattr("skillpack.install.origin.skills_dir", lambda: checkout / "skills")
    assert pack_origin() == str(checkout)
    git = ["git", "-C", str(checkout)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "remote", "add", "origin", "https://example.org/pack.git"], check=True)
    assert pack_origin() == "https://example.org/pack.git"
    subprocess.run([*git, "remote", "set-url", "origin", "https://me:s3cret@example.org/pack.git"], check=True)
    assert pack_origin() == "https://example.org/pack.git"
    # a checkout without version control inside somebody's project is not that project
    inner = checkout / "vendored"
    shutil.copytree(checkout / "skills", inner / "skills")
    (inner / "pyproject.toml").write_text("")
    monkeypatch.setattr("skillpack.install.origin.skills_dir", lambda: inner / "skills")
    assert pack_origin() == str(inner)


@pytest.mark.parametrize("name", ["plugin.json", "marketplace.json"])
def test_the_manifests_have_the_version_of_the_pack(name: str) -> None:
    manifest = json.loads((PACK / ".claude-plugin" / name).read_text())
    versions = re.findall(r'"version": "([^"]+)"', json.dumps(manifest))
    assert set(versions) == {skillpack.__version__}


@pytest.mark.parametrize("name", sources.own_names())
def test_each_skill_has_the_version_of_the_pack(name: str) -> None:
    assert read_card(skills_dir() / name).version == skillpack.__version__


def test_nothing_of_these_texts_is_left_in_the_home(run: Run, home: Path) -> None:
    run("prompt")
    assert below(home) == {}
