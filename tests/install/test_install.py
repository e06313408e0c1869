"""Skills are put where the clients look for them, whole, and never over anything that a user wrote."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from skillpack.install import shelf
from skillpack.pack import SCHEMAS
from tests.install.kit import Run, below, installed, make_skill


@pytest.mark.parametrize(
    ("agent", "folders"),
    [("claude-code", [".claude"]), ("codex", [".agents"]), ("all", [".claude", ".agents"])],
)
@pytest.mark.parametrize("scope", ["user", "project"])
def test_each_client_has_its_folder(
    run: Run, home: Path, skill: Path, agent: str, folders: list[str], scope: str
) -> None:
    base = home if scope == "user" else home / "work"
    answer = run("install", skill, "--agent", agent, "--scope", scope, "--json")
    assert answer.code == 0
    assert answer.actions == [("installed", str(base / folder / "skills" / skill.name)) for folder in folders]
    assert sorted(path.name for path in base.iterdir() if path.name.startswith(".")) == sorted(folders)
    for folder in folders:
        copy = base / folder / "skills" / skill.name
        assert installed(copy) == below(skill)
        assert os.access(copy / "scripts" / "count.py", os.X_OK)


def test_a_project_is_the_whole_repository(run: Run, home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = home / "work" / "src" / "deep"
    inner.mkdir(parents=True)
    (home / "work" / ".git").mkdir()
    (home / ".git").mkdir()  # dotfiles under version control make no project of all that lies in the home
    monkeypatch.chdir(inner)
    assert run("install", skill, "--scope", "project", "--agent", "codex", "--json").actions == [
        ("installed", str(home / "work" / ".agents" / "skills" / skill.name))
    ]
    monkeypatch.chdir(home / "work")
    shutil.rmtree(home / "work" / ".git")
    assert run("install", skill, "--scope", "project", "--agent", "codex", "--json").actions[0][0] == "unchanged"


def test_the_record_names_interpreter_source_and_files(run: Run, home: Path, skill: Path) -> None:
    run("install", skill, "--agent", "codex")
    record = json.loads((home / ".agents" / "skills" / skill.name / ".agentjet-skills.json").read_text())
    assert record["python"] == sys.executable
    assert record["version"] == "1.0"
    assert record["source"] == str(skill)
    digest = subprocess.run(["sha256sum", skill / "SKILL.md"], capture_output=True, text=True, check=True).stdout
    assert record["files"]["SKILL.md"] == digest.split()[0]
    assert sorted(record["files"]) == sorted(below(skill))


def test_caches_are_not_copied(run: Run, home: Path, skill: Path) -> None:
    (skill / "scripts" / "__pycache__").mkdir()
    (skill / "scripts" / "__pycache__" / "count.pyc").write_text("")
    (skill / ".DS_Store").write_text("")
    run("install", skill)
    assert set(installed(home / ".claude" / "skills" / skill.name)) == {
        "SKILL.md",
        "references/numbers.md",
        "scripts/count.py",
    }


def test_installing_again_changes_nothing(run: Run, home: Path, skill: Path) -> None:
    run("install", skill)
    before = (home / ".claude" / "skills" / skill.name).stat()
    answer = run("install", skill, "--json")
    assert [action for action, _ in answer.actions] == ["unchanged", "unchanged"]
    assert (home / ".claude" / "skills" / skill.name).stat().st_ino == before.st_ino


@pytest.mark.parametrize("command", ["install", "update", "uninstall"])
def test_a_dry_run_touches_nothing(run: Run, home: Path, skill: Path, command: str) -> None:
    if command != "install":
        run("install", skill)
        (skill / "SKILL.md").write_text((skill / "SKILL.md").read_text() + "new\n")
    before = below(home)
    answer = run(command, *([skill] if command == "install" else []), "--dry-run", "--json")
    expected = {"install": "installed", "update": "updated", "uninstall": "removed"}[command]
    assert [action for action, _ in answer.actions] == [expected, expected]
    assert answer.document["dry_run"] is True
    assert below(home) == before
    text = run(command, *([skill] if command == "install" else []), "--dry-run").stdout
    assert text.startswith("nothing is changed: this is what would be done\n")


def edit(path: Path) -> None:
    path.write_text(path.read_text() + "my own line\n")


def add(path: Path) -> None:
    path.with_name("NOTES.md").write_text("my own line\n")


def delete(path: Path) -> None:
    path.unlink()


def test_an_environment_made_in_a_skill_is_told_in_a_few_lines(run: Run, home: Path, skill: Path) -> None:
    run("install", skill, "--agent", "codex")
    venv = home / ".agents" / "skills" / skill.name / "venv"
    venv.mkdir()
    for number in range(2000):
        (venv / f"module{number}.py").write_text("x = 1\n" * 50)
    answer = run("uninstall", skill.name, "--agent", "codex")
    assert answer.code == 1
    assert "and 1,990 more" in answer.stdout
    assert len(answer.stdout) < 3000


@pytest.mark.parametrize("change", [edit, add, delete])
@pytest.mark.parametrize("command", ["install", "update", "uninstall"])
def test_an_edited_skill_is_refused_with_its_diff(run: Run, home: Path, skill: Path, change, command: str) -> None:
    run("install", skill, "--agent", "codex")
    place = home / ".agents" / "skills" / skill.name
    change(place / "references" / "numbers.md")
    before = below(home)
    argument = skill if command == "install" else skill.name
    answer = run(command, argument, "--agent", "codex", "--json")
    assert answer.code == 1
    (action,) = answer.document["actions"]
    assert action["action"] == "refused"
    assert action["reason"].startswith("edited since it was installed: references/")
    again = "uninstall" if command == "uninstall" else "install"
    assert action["try"].startswith(f"skills {again} ")
    assert "my own line" in action["diff"] or "+1 2 3" in action["diff"]
    assert below(home) == before

    forced = run(command, argument, "--agent", "codex", "--force", "--json")
    assert forced.code == 0
    (action,) = forced.document["actions"]
    kept = before | {}
    backup = Path(action["backup"])
    assert {f".agents/skills/{skill.name}/{name}": text for name, text in below(backup).items()} == kept
    assert backup.is_relative_to(home / ".local" / "state" / "agentjet-skills" / "backups")
    if command == "uninstall":
        assert not (home / ".agents").exists()
    else:
        assert installed(place) == below(skill)


def test_a_skill_that_others_installed_is_refused_and_with_force_backed_up(run: Run, home: Path, skill: Path) -> None:
    theirs = make_skill(home / ".claude" / "skills", skill.name, body="# Theirs\n")
    answer = run("install", skill, "--agent", "claude-code", "--json")
    assert answer.code == 1
    assert answer.document["actions"][0]["reason"].startswith("`skills` has not installed it")
    assert "-# Theirs" in answer.document["actions"][0]["diff"]
    assert "# Theirs" in (theirs / "SKILL.md").read_text()
    answer = run("install", skill, "--agent", "claude-code", "--force", "--json")
    (action,) = answer.document["actions"]
    assert action["action"] == "replaced"
    assert "# Theirs" in Path(action["backup"], "SKILL.md").read_text()


def test_uninstall_never_removes_what_others_installed(run: Run, home: Path, skill: Path) -> None:
    run("install", skill, "--agent", "codex")
    theirs = make_skill(home / ".claude" / "skills", skill.name)
    answer = run("uninstall", skill.name, "--force", "--json")
    assert answer.code == 1
    assert [action for action, _ in answer.actions] == ["refused", "removed"]
    assert answer.document["actions"][0]["try"] == f"rm -r '{theirs}'"
    assert theirs.exists()


def test_the_same_skill_copied_by_hand_is_taken_over(run: Run, home: Path, skill: Path) -> None:
    shutil.copytree(skill, home / ".claude" / "skills" / skill.name)
    answer = run("install", skill, "--agent", "claude-code", "--json")
    assert answer.code == 0
    assert run("uninstall", skill.name, "--json").code == 0
    assert not (home / ".claude").exists()


def test_an_edit_that_the_source_has_too_is_no_edit(run: Run, home: Path, skill: Path) -> None:
    run("install", skill, "--agent", "codex")
    edit(home / ".agents" / "skills" / skill.name / "SKILL.md")
    edit(skill / "SKILL.md")
    assert [action for action, _ in run("update", "--json").actions] == ["updated"]


@pytest.mark.parametrize("mode", ["--copy", "--link"])
def test_a_skill_of_the_same_name_from_elsewhere_is_refused(
    run: Run, home: Path, skill: Path, tmp_path: Path, mode: str
) -> None:
    run("install", skill, "--agent", "codex", mode)
    other = make_skill(tmp_path / "another pack", skill.name, body="# Another\n")
    answer = run("install", other, "--agent", "codex", "--json")
    (action,) = answer.document["actions"]
    assert answer.code == 1
    assert action["reason"].startswith(f"it was installed from {skill}, not from {other}")
    assert "Another" not in (home / ".agents" / "skills" / skill.name / "SKILL.md").read_text()
    assert run("install", other, "--agent", "codex", "--force", "--json").code == 0
    assert "Another" in (home / ".agents" / "skills" / skill.name / "SKILL.md").read_text()
    assert "Another" not in (skill / "SKILL.md").read_text()


def test_links_follow_their_source_and_leave_it_clean(run: Run, home: Path, skill: Path) -> None:
    before = below(skill)
    assert run("install", skill, "--link").code == 0
    for client in (".claude", ".agents"):
        link = home / client / "skills" / skill.name
        assert link.readlink() == skill
        assert json.loads((link.parent / ".agentjet-skills" / f"{skill.name}.json").read_text())["python"]
    assert below(skill) == before
    edit(skill / "SKILL.md")
    assert [action for action, _ in run("update", "--json").actions] == ["unchanged", "unchanged"]
    assert run("uninstall").code == 0
    assert below(home) == {}
    assert (skill / "SKILL.md").exists()


def test_a_copy_becomes_a_link_and_a_copy_again(run: Run, home: Path, skill: Path) -> None:
    place = home / ".agents" / "skills" / skill.name
    run("install", skill, "--agent", "codex")
    run("install", skill, "--agent", "codex", "--link")
    assert place.is_symlink()
    run("install", skill, "--agent", "codex", "--copy")
    assert not place.is_symlink()
    assert installed(place) == below(skill)
    assert [path.name for path in place.parent.iterdir()] == [skill.name]


def test_a_link_of_others_is_never_followed(run: Run, home: Path, skill: Path, tmp_path: Path) -> None:
    mine = make_skill(tmp_path / "mine", skill.name, body="# Mine\n")
    place = home / ".claude" / "skills" / skill.name
    place.parent.mkdir(parents=True)
    place.symlink_to(mine)
    answer = run("install", skill, "--agent", "claude-code", "--json")
    assert answer.document["actions"][0]["reason"].startswith(f"it is a link to {mine} that `skills` has not made")
    answer = run("install", skill, "--agent", "claude-code", "--force", "--json")
    assert Path(answer.document["actions"][0]["backup"]).readlink() == mine
    assert "# Mine" in (mine / "SKILL.md").read_text()
    assert installed(place) == below(skill)


def test_clients_that_share_a_folder_get_one_copy(run: Run, home: Path, skill: Path) -> None:
    (home / ".agents" / "skills").mkdir(parents=True)
    (home / ".claude").mkdir()
    (home / ".claude" / "skills").symlink_to(home / ".agents" / "skills")
    (action,) = run("install", skill, "--json").document["actions"]
    assert action["clients"] == ["claude-code", "codex"]
    assert run("uninstall").code == 0
    assert (home / ".claude" / "skills").is_symlink()


def test_update_brings_what_the_source_has_become(run: Run, home: Path, skill: Path) -> None:
    run("install", skill)
    edit(skill / "SKILL.md")
    (skill / "references" / "numbers.md").unlink()
    (skill / "assets").mkdir()
    (skill / "assets" / "new.txt").write_text("new\n")
    assert [action for action, _ in run("update", "--json").actions] == ["updated", "updated"]
    assert installed(home / ".agents" / "skills" / skill.name) == below(skill)


def test_update_of_a_skill_whose_source_is_gone_is_told(run: Run, home: Path, skill: Path) -> None:
    run("install", skill, "--agent", "codex")
    shutil.rmtree(skill)
    answer = run("update", "--json")
    assert answer.code == 1
    assert answer.document["actions"][0]["reason"] == f"its source, {skill}, does not have it any more"
    assert (home / ".agents" / "skills" / skill.name / "SKILL.md").exists()


def test_uninstalling_what_is_not_there_is_told(run: Run, home: Path, skill: Path) -> None:
    run("install", skill)
    answer = run("uninstall", "count-thinsg")
    assert answer.code == 2
    assert "count-thinsg is not installed" in answer.stderr
    assert "one of count-things" in answer.stderr
    assert run("update", "other").code == 2


def test_a_killed_installation_is_put_right_by_the_next(run: Run, home: Path, skill: Path) -> None:
    run("install", skill, "--agent", "codex")
    folder = home / ".agents" / "skills"
    stage = folder / f"{shelf.STAGE}{skill.name}.x8s7"
    (stage / "new").mkdir(parents=True)
    (folder / skill.name).rename(stage / "old")  # killed between its two renames
    edit(skill / "SKILL.md")
    assert run("install", skill, "--agent", "codex", "--json").code == 0
    assert [path.name for path in folder.iterdir()] == [skill.name]


def test_a_failed_installation_leaves_what_was_there(
    run: Run, home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("install", skill, "--agent", "codex")
    before = below(home)
    edit(skill / "SKILL.md")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(home / ".agents"))

    monkeypatch.setattr("skillpack.install.record.write", full)
    answer = run("update")
    assert answer.code == 3
    assert "No space left on device" in answer.stderr
    assert below(home) == before


@pytest.mark.parametrize("target", ["/etc/hostname", "../../outside.txt"])
def test_a_link_out_of_a_skill_is_refused(run: Run, home: Path, skill: Path, target: str) -> None:
    (skill.parent.parent / "outside.txt").write_text("")
    (skill / "references" / "out").symlink_to(target)
    answer = run("install", skill)
    assert answer.code == 2
    assert "is a link that leaves the skill" in answer.stderr
    assert below(home) == {}


def test_a_link_within_a_skill_is_copied(run: Run, home: Path, skill: Path) -> None:
    (skill / "references" / "same.md").symlink_to("numbers.md")
    run("install", skill)
    assert installed(home / ".claude" / "skills" / skill.name) == below(skill)


@pytest.mark.parametrize("command", ["install", "update", "uninstall"])
def test_the_document_keeps_its_schema(run: Run, home: Path, skill: Path, command: str) -> None:
    schema = Draft202012Validator(json.loads((SCHEMAS / "install.schema.json").read_text()))
    schema.validate(run("install", skill, "--json").document)
    edit(home / ".claude" / "skills" / skill.name / "SKILL.md")
    schema.validate(run(command, *([skill] if command == "install" else []), "--json").document)
    schema.validate(run(command, *([skill] if command == "install" else []), "--force", "--json").document)


def test_installers_wait_for_each_other(home: Path, skill: Path) -> None:
    code = "from skillpack.cli import main; main()"
    command = [sys.executable, "-c", code, "install", str(skill), "--agent", "codex"]
    several = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(6)]
    outputs = [process.communicate(timeout=60)[0] for process in several]
    assert [process.returncode for process in several] == [0] * 6, outputs
    assert installed(home / ".agents" / "skills" / skill.name) == below(skill)
    assert [path.name for path in (home / ".agents" / "skills").iterdir()] == [skill.name]


def test_installers_and_uninstallers_wait_for_each_other(home: Path, skill: Path) -> None:
    """Whoever comes last has his way, and nobody trips over a folder that another removes."""
    install, uninstall = ["install", str(skill), "--agent", "codex"], ["uninstall", "--agent", "codex"]
    program = (
        "import sys\nfrom skillpack.cli import main\n"
        "for _ in range(15):\n    try:\n        main()\n    except SystemExit as end:\n        assert not end.code\n"
    )
    command = [sys.executable, "-c", program]
    several = [
        subprocess.Popen([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for words in (install, uninstall, install, uninstall)
    ]
    outputs = [process.communicate(timeout=100)[0] for process in several]
    assert [process.returncode for process in several] == [0] * 4, outputs
    place = home / ".agents" / "skills" / skill.name
    assert not place.exists() or installed(place) == below(skill)
    names = {path.name for path in place.parent.iterdir()} if place.parent.exists() else set()
    assert names <= {skill.name}
