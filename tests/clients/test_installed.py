"""What the real clients make of an installed pack: each sees all of our skills, and nothing else of ours.

Claude Code and Codex run as they do for a user, without a login: Codex lists its skills over its
app server, Claude Code sends its model a list, to a server on loopback that stands in for it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpack.install import sources
from skillpack.install.card import Card, read_card
from skillpack.install.clients import clients
from skillpack.install.doctor import examine
from skillpack.pack import skills_dir
from tests.clients import real
from tests.clients.real import ClaudeCode, Codex, NpxSkills

PACK = skills_dir().parent
NAMES = sources.own_names()
CARDS = {name: read_card(skills_dir() / name) for name in NAMES}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return an empty home; ``real.Codex`` takes it for its own by its name."""
    folder = tmp_path / "codex-home"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """Return an empty repository beside it."""
    subprocess.run(["git", "init", "-q", tmp_path / "work"], check=True)
    return tmp_path / "work"


def skills(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the ``skills`` command for a user with that home, in the project beside it."""
    return subprocess.run(
        [sys.executable, "-c", "from skillpack.cli import main; main()", *words],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(home)},
        cwd=home.parent / "work",
        capture_output=True,
        text=True,
        check=False,
    )


def codex_skills(codex: Codex, project: Path) -> list[dict[str, Any]]:
    """Return the skills that Codex lists in a folder, its own bundled ones left out."""
    (listed,) = codex.skills_list(project)["data"]
    assert listed["errors"] == []
    return [skill for skill in listed["skills"] if skill["scope"] != "system"]


def claude_skills(claude_code: ClaudeCode, home: Path, cwd: Path) -> dict[str, str]:
    """Return {name: what it is told to be for} of the skills that Claude Code tells its model of in a folder."""
    with real.stub_api() as (url, requests):
        subprocess.run(
            [str(claude_code.program), "-p", "hi"],
            cwd=cwd,
            env=real.environment(
                home,
                ANTHROPIC_BASE_URL=url,
                ANTHROPIC_API_KEY="none",
                CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
                CLAUDE_CODE_MAX_RETRIES="0",
                DISABLE_AUTOUPDATER="1",
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=real.SECONDS,
            check=False,
        )
    return dict(re.findall(r"^- ([^:\n]+): (.*)$", real._told(requests), re.MULTILINE))


@pytest.fixture(params=["--copy", "--link"])
def installed(request: pytest.FixtureRequest, home: Path, project: Path) -> Path:
    """Return a home with all of the pack's skills in it."""
    done = skills(home, "install", request.param)
    assert done.returncode == 0, done.stderr
    return home


def test_codex_lists_our_skills_with_their_interface(codex: Codex, installed: Path, project: Path) -> None:
    # a link leads Codex into the checkout, whose manifest makes it a plugin
    linked = (installed / ".agents" / "skills" / NAMES[0]).is_symlink()
    prefix = "agentjet-skills:" if linked else ""
    listed = {skill["name"].removeprefix(prefix): skill for skill in codex_skills(codex, project)}
    assert sorted(listed) == NAMES
    seen = json.loads(skills(installed, "doctor", "--agent", "codex", "--json").stdout)["clients"][0]["skills"]
    assert sorted(skill["name"] for skill in seen) == sorted(skill["name"] for skill in listed.values())
    for name, skill in listed.items():
        assert skill["description"] == CARDS[name].description
        wanted = yaml.safe_load((skills_dir() / name / "agents" / "openai.yaml").read_text())["interface"]
        shown = skill["interface"]
        assert shown["displayName"] == wanted["display_name"]
        assert shown["shortDescription"] == wanted["short_description"]
        assert shown["defaultPrompt"] == wanted["default_prompt"]


def test_claude_code_tells_its_model_of_our_skills(claude_code: ClaudeCode, installed: Path, project: Path) -> None:
    told = claude_skills(claude_code, installed, project)
    assert {name: told.get(name) for name in NAMES} == {name: CARDS[name].description for name in NAMES}


def test_backups_and_records_are_no_skills(
    claude_code: ClaudeCode, codex: Codex, installed: Path, project: Path
) -> None:
    before = set(claude_skills(claude_code, installed, project))
    skill = installed / ".claude" / "skills" / NAMES[0]
    if not skill.is_symlink():
        (skill / "SKILL.md").write_text((skill / "SKILL.md").read_text() + "mine\n")
    assert skills(installed, "update", "--force").returncode == 0
    assert set(claude_skills(claude_code, installed, project)) == before
    assert len(codex_skills(codex, project)) == len(NAMES)


def test_nothing_is_left_after_uninstall(claude_code: ClaudeCode, codex: Codex, installed: Path, project: Path) -> None:
    assert skills(installed, "uninstall").returncode == 0
    assert codex_skills(codex, project) == []
    assert not set(NAMES) & set(claude_skills(claude_code, installed, project))


def test_what_the_doctor_says_of_a_name_in_two_places_is_so(
    claude_code: ClaudeCode, codex: Codex, home: Path, project: Path, tmp_path: Path
) -> None:
    """Claude Code takes the user's; Codex lists both, the project's first."""
    for scope in ("user", "project"):
        skill = tmp_path / scope / "count-things"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f'---\nname: count-things\ndescription: "The one of the {scope}."\n---\n')
        assert skills(home, "install", str(skill), "--scope", scope).returncode == 0
    assert claude_skills(claude_code, home, project)["count-things"] == "The one of the user."
    both = [skill["description"] for skill in codex_skills(codex, project)]
    assert sorted(both) == ["The one of the project.", "The one of the user."]
    seen = json.loads(skills(home, "doctor", "--json").stdout)
    claude, codex = seen["clients"]
    assert [(skill["scope"], skill["loaded"]) for skill in claude["skills"]] == [("user", True), ("project", False)]
    assert [(skill["scope"], skill["loaded"]) for skill in codex["skills"]] == [("project", True), ("user", True)]


def put(folder: Path, name: str, description: str) -> Path:
    """Write a skill that nobody has installed."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "SKILL.md").write_text(f'---\nname: {name}\ndescription: "{description}"\n---\n')
    return folder / name


def doctors_word(home: Path, cwd: Path) -> dict[str, list[tuple[str, str]]]:
    """Return per client (name, scope) of what the doctor says it loads in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "skillpack", "doctor", "--json"],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(home)},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        entry["client"]: [(skill["name"], skill["scope"]) for skill in entry["skills"] if skill["loaded"]]
        for entry in json.loads(done.stdout)["clients"]
    }


def test_the_nearest_folder_of_a_project_comes_first(
    claude_code: ClaudeCode, codex: Codex, home: Path, project: Path
) -> None:
    """Claude Code takes the nearest; Codex lists all."""
    inner = project / "src" / "deep"
    inner.mkdir(parents=True)
    (inner.parent / "codex-home").symlink_to(home)
    for folder in (project, project / "src", inner):
        for client in (".claude", ".agents"):
            put(folder / client / "skills", "count-things", f"In {folder.name}.")
    assert claude_skills(claude_code, home, inner)["count-things"] == "In deep."
    assert len(codex_skills(codex, inner)) == 3
    said = doctors_word(home, inner)
    assert said == {"claude-code": [("count-things", "project")], "codex": [("count-things", "project")] * 3}


def test_the_home_is_no_project_of_its_own(claude_code: ClaudeCode, codex: Codex, home: Path, tmp_path: Path) -> None:
    for client in (".claude", ".agents"):
        put(home / client / "skills", "count-things", "At home.")
    assert claude_skills(claude_code, home, home)["count-things"] == "At home."
    assert [skill["scope"] for skill in codex_skills(codex, home)] == ["user"]
    said = doctors_word(home, home)
    assert said == {"claude-code": [("count-things", "user")], "codex": [("count-things", "user")]}


def test_several_links_to_one_skill_are_one(
    claude_code: ClaudeCode, codex: Codex, home: Path, project: Path, tmp_path: Path
) -> None:
    """As `npx skills add` makes them, or a user who shares his skills with a project."""
    real_one = put(tmp_path / "elsewhere", "count-things", "The one.")
    for base in (home, project):
        for client in (".claude", ".agents"):
            (base / client / "skills").mkdir(parents=True)
            (base / client / "skills" / real_one.name).symlink_to(real_one)
    (project / ".claude" / "skills" / "again").symlink_to(real_one)
    told = claude_skills(claude_code, home, project)
    assert [name for name, description in told.items() if description == "The one."] == ["count-things"]
    assert [skill["scope"] for skill in codex_skills(codex, project)] == ["user"]
    said = doctors_word(home, project)
    assert said == {"claude-code": [("count-things", "user")], "codex": [("count-things", "user")]}


def test_each_folder_of_the_table_is_read(
    claude_code: ClaudeCode, codex: Codex, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a folder deep in the project; the doctor says so too."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CODEX_HOME", str(home))
    inner = project / "src" / "deep"
    inner.mkdir(parents=True)
    (inner.parent / "codex-home").symlink_to(home)  # where ``real.Codex`` looks for it from here
    expected: dict[str, set[str]] = {}
    for client in clients().values():
        for root in client.roots:
            if root.scope == "system":
                continue  # belongs to the machine
            for folder in client.folders(root, inner):
                name = f"{client.program}-{len(expected.setdefault(client.name, set()))}"
                expected[client.name].add(name)
                (folder / name).mkdir(parents=True)
                (folder / name / "SKILL.md").write_text(f'---\nname: {name}\ndescription: "In {root.path}."\n---\n')
    assert {skill["name"] for skill in codex_skills(codex, inner)} == expected["codex"]
    assert expected["claude-code"] <= set(claude_skills(claude_code, home, inner))
    health = examine(list(clients().values()), [], inner)
    assert {entry["client"]: {skill["name"] for skill in entry["skills"]} for entry in health.clients} == expected


def test_npx_skills_finds_our_skills(npx_skills: NpxSkills, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    shutil.copytree(PACK / "skills", pack / "skills")
    shutil.copytree(PACK / ".claude-plugin", pack / ".claude-plugin")
    answer = npx_skills.ask(pack)
    assert sorted(answer.listed) == NAMES
    assert answer.refused == {}


def test_npx_skills_installs_what_ours_can_take_over(npx_skills: NpxSkills, home: Path, project: Path) -> None:
    subprocess.run(
        [npx_skills.bin / "skills", "add", str(PACK), "-a", "codex", "-s", NAMES[0], "-y", "-g", "--copy"],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        cwd=project,
        env=real.environment(home, PATH=f"{npx_skills.bin}:{os.environ['PATH']}"),
        timeout=real.SECONDS,
        check=True,
    )
    assert (home / ".agents" / "skills" / NAMES[0] / "SKILL.md").is_file()
    done = skills(home, "install", NAMES[0], "--agent", "codex", "--json")
    assert done.returncode == 0, done.stdout
    assert (home / ".agents" / "skills" / NAMES[0] / ".agentjet-skills.json").is_file()


@pytest.mark.parametrize("mode", [["--copy"], []], ids=["copied", "linked"])
@pytest.mark.parametrize("scope", ["project", "user"])
def test_what_npx_skills_has_installed_says_how_its_scripts_come_to_run(
    npx_skills: NpxSkills, home: Path, project: Path, tmp_path: Path, scope: str, mode: list[str]
) -> None:
    """They name one line, and once that has made an interpreter, they run under any python3."""
    pack = tmp_path / "a pack"
    shutil.copytree(PACK / "skills", pack / "skills", ignore=shutil.ignore_patterns("__pycache__"))
    (pack / "bootstrap.py").write_text("")
    where = ["-g"] if scope == "user" else []
    subprocess.run(
        [npx_skills.bin / "skills", "add", "../a pack", "-a", "claude-code", "codex", "-s", "*", "-y", *where, *mode],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        cwd=project,
        env=real.environment(home, PATH=f"{npx_skills.bin}:{os.environ['PATH']}"),
        timeout=real.SECONDS,
        check=True,
    )
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    base = home if scope == "user" else project
    folders = sorted(base.glob(".*/skills/*/scripts"))
    scripts = [next(folder.glob("[!_]*.py")) for folder in folders]  # one of each: they all begin alike
    assert {script.parents[1].name for script in scripts} == set(NAMES)
    assert {script.parts[len(base.parts)] for script in scripts} == {".claude", ".agents"}

    def call(script: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [bare / "bin" / "python3", script, "--help"],
            env={"HOME": str(home), "PATH": os.defpath},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )

    for script in scripts:
        ended = call(script)
        assert ended.returncode == 3
        assert ended.stderr.splitlines()[-1] == f"try: python3 '{pack}/bootstrap.py' setup"
    made = pack / ".venv" / "bin" / "python"  # what that line makes, in short
    made.parent.mkdir(parents=True)
    made.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    made.chmod(0o755)
    for script in scripts:
        ended = call(script)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "Exit codes" in ended.stdout
    taken = skills(home, "install", "--scope", scope, "--json")
    assert taken.returncode == 0, taken.stdout
    assert skills(home, "doctor", *NAMES).returncode == 0


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_skills_ref_accepts_each(card: Card) -> None:
    from skills_ref import validate

    assert validate(card.path) == []


def test_claude_code_accepts_the_plugin_and_the_marketplace(claude_code: ClaudeCode, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    for folder in ("skills", ".claude-plugin"):
        shutil.copytree(PACK / folder, pack / folder)
    for file in ("README.md", "LICENSE.txt"):
        shutil.copy(PACK / file, pack / file)
    report = claude_code.validate(pack, "--strict", "--profile", "directory")
    assert report["success"], report
    assert report["directory"]["findings"] == []
    assert report["manifest"]["errors"] + report["manifest"]["warnings"] + report["contents"] == []
    provided = sorted(skill if isinstance(skill, str) else skill["name"] for skill in report["provides"]["skills"])
    assert provided == [f"agentjet-skills:{name}" for name in NAMES]
