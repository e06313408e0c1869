"""``skills doctor`` tells what each client would load from where, and what is wrong with it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from skillpack.install import doctor, shelf
from skillpack.pack import SCHEMAS
from tests.install.kit import Run, make_skill


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a PATH on which a python3, a tmux and a claude are, and nothing else; return it."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    for program in ("tmux", "claude"):
        (folder / program).write_text("#!/bin/sh\n")
        (folder / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def problems(run: Run, *arguments: str) -> list[tuple[str, str]]:
    """Return (what, fix) of all that is wrong."""
    answer = run("doctor", "--json", *arguments)
    document = answer.document
    Draft202012Validator(json.loads((SCHEMAS / "install-doctor.schema.json").read_text())).validate(document)
    found = [(problem["what"], problem["fix"]) for problem in document["problems"]]
    assert answer.code == (1 if found else 0)
    assert document["ok"] is not bool(found)
    return found


def test_all_is_well(run: Run, home: Path, skill: Path, machine: Path) -> None:
    run("install", skill)
    assert problems(run, skill.name) == []
    document = run("doctor", "--json").document
    assert [(client["client"], client["program"]) for client in document["clients"]] == [
        ("claude-code", str(machine / "claude")),
        ("codex", None),
    ]
    (seen,) = document["clients"][1]["skills"]
    assert (seen["name"], seen["path"], seen["kind"], seen["loaded"]) == (
        skill.name,
        str(home / ".agents" / "skills" / skill.name),
        "copy",
        True,
    )
    assert run("doctor").stdout.splitlines()[-1] == "all is well"


def test_nothing_is_installed(run: Run) -> None:
    assert problems(run) == [
        ("Claude Code has no skill of this pack", "skills install --agent claude-code"),
        ("Codex has no skill of this pack", "skills install --agent codex"),
    ]


def test_a_skill_that_was_asked_for_is_missing(run: Run, skill: Path) -> None:
    run("install", skill, "--agent", "codex")
    assert problems(run, skill.name) == [
        (f"Claude Code would not find {skill.name}", f"skills install {skill.name} --agent claude-code")
    ]


def test_claude_code_takes_the_users_before_the_projects(run: Run, home: Path, skill: Path) -> None:
    run("install", skill, "--agent", "claude-code")
    run("install", skill, "--agent", "claude-code", "--scope", "project")
    mine, theirs = (base / ".claude" / "skills" / skill.name for base in (home, home / "work"))
    assert problems(run, "--agent", "claude-code") == [
        (
            f"Claude Code loads {skill.name} from {mine} and not from {theirs}",
            f"skills uninstall {skill.name} --scope project",
        )
    ]
    seen = run("doctor", "--json", "--agent", "claude-code").document["clients"][0]["skills"]
    assert [(skill["path"], skill["loaded"]) for skill in seen] == [(str(mine), True), (str(theirs), False)]
    assert "SHADOWED" in run("doctor").stdout


def test_codex_lists_a_name_twice(run: Run, home: Path, skill: Path) -> None:
    run("install", skill, "--agent", "codex")
    old = make_skill(home / ".codex" / "skills", skill.name)
    assert problems(run, "--agent", "codex") == [
        (
            f"Codex lists {skill.name} twice, from {home}/.agents/skills/{skill.name} and from {old}",
            f"rm -r '{old}'",
        )
    ]


def test_codex_goes_by_the_name_and_claude_code_by_the_folder(run: Run, home: Path, skill: Path) -> None:
    run("install", skill)
    for client in (".claude", ".agents"):
        shutil.copytree(skill, home / client / "skills" / "renamed")
    found = problems(run)
    folder = home / ".agents" / "skills"
    what = f"Codex lists {skill.name} twice, from {folder / skill.name} and from {folder / 'renamed'}"
    assert [told for told, _ in found] == [what]


def test_codex_puts_the_name_of_a_plugin_before_that_of_a_skill_in_it(run: Run, home: Path, skill: Path) -> None:
    manifest = skill.parent / ".claude-plugin" / "plugin.json"
    manifest.parent.mkdir()
    manifest.write_text('{"name": "counting"}')
    run("install", skill, "--link")
    assert problems(run, skill.name) == []
    document = run("doctor", "--json").document
    names = [[seen["name"] for seen in client["skills"]] for client in document["clients"]]
    assert names == [[skill.name], [f"counting:{skill.name}"]]
    assert document["notes"][0]["what"].startswith("Codex calls ")


def test_homes_of_clients_can_be_moved(run: Run, home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    monkeypatch.setenv("CODEX_HOME", str(home / "codex"))
    run("install", skill)
    assert (home / "elsewhere" / "skills" / skill.name).is_dir()
    make_skill(home / "codex" / "skills", "other-things")
    document = run("doctor", "--json").document
    assert [[skill["name"] for skill in client["skills"]] for client in document["clients"]] == [
        [skill.name],
        [skill.name, "other-things"],
    ]


def test_an_interpreter_that_is_gone(run: Run, home: Path, skill: Path) -> None:
    run("install", skill, "--agent", "codex")
    path = home / ".agents" / "skills" / skill.name / ".agentjet-skills.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "python": "/nowhere/python"}))
    ((what, fix),) = problems(run, "--agent", "codex")
    assert what.endswith("runs its scripts by /nowhere/python, which does not hold the pack")
    assert fix == f"skills update {skill.name} --scope user"
    assert run(*fix.split()[1:]).code == 0
    assert problems(run, "--agent", "codex") == []


def test_an_interpreter_with_another_version(
    run: Run, home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("install", skill, "--agent", "codex")
    monkeypatch.setattr(doctor, "__version__", "9.9")
    assert [what.split(", ")[-1] for what, _ in problems(run, "--agent", "codex")] == ["which holds version 0.1.0"]


def test_links_to_nothing_and_leftovers(run: Run, home: Path, skill: Path) -> None:
    run("install", skill, "--link", "--agent", "codex")
    shutil.rmtree(skill)
    (home / ".agents" / "skills" / f"{shelf.STAGE}x.1234").mkdir()
    what = [what for what, _ in problems(run, "--agent", "codex")]
    assert what[0].endswith("was left by an installation that was killed")
    assert what[1] == f"{home}/.agents/skills/{skill.name} is a link to nothing"


def test_an_edit_is_no_fault(run: Run, home: Path, skill: Path) -> None:
    run("install", skill)
    place = home / ".claude" / "skills" / skill.name
    (place / "SKILL.md").write_text((place / "SKILL.md").read_text() + "mine\n")
    assert problems(run) == []
    assert f"note: {place} was edited: SKILL.md" in run("doctor").stdout


@pytest.mark.parametrize(
    ("program", "what"), [("tmux", "there is no tmux"), ("python3", "there is no python3 on PATH")]
)
def test_a_program_is_missing(run: Run, skill: Path, machine: Path, program: str, what: str) -> None:
    run("install", skill)
    (machine / program).unlink()
    ((told, fix),) = problems(run)
    assert told.startswith(what)
    assert fix.endswith(program)


def test_a_folder_that_cannot_be_read(run: Run, home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("install", skill)
    real = Path.iterdir

    def refuse(self: Path):
        if self == home / ".claude" / "skills":
            raise PermissionError(13, os.strerror(13), str(self))
        return real(self)

    monkeypatch.setattr(Path, "iterdir", refuse)  # a test as root may read everything
    assert problems(run, "--agent", "claude-code")[0] == (
        f"{home}/.claude/skills cannot be read: Permission denied",
        f"chmod u+rx '{home}/.claude/skills'",
    )


@pytest.mark.parametrize("text", [b"", b"---\nname: x\n", b"---\n[\n---\n", b"\xff\xfe", b"---\nname: x\n---\n"])
def test_folders_that_are_no_skills_are_passed_over(run: Run, home: Path, skill: Path, text: bytes) -> None:
    run("install", skill)
    for client in (".claude", ".agents"):
        (home / client / "skills" / "broken").mkdir()
        (home / client / "skills" / "broken" / "SKILL.md").write_bytes(text)
    assert problems(run) == []
