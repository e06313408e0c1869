"""Ten mistakes of newcomers: each ends in one line that mends it, and that line is run here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.install.kit import make_skill

Shell = Callable[..., subprocess.CompletedProcess[str]]


WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
"""Root may write everywhere; without these capabilities it is refused as any user is."""

CAN_BE_LESS = not WITHOUT_RIGHTS or (
    shutil.which("setpriv")
    and subprocess.run([*WITHOUT_RIGHTS, "true"], check=False, capture_output=True).returncode == 0
)


@pytest.fixture
def shell(home: Path, tmp_path: Path) -> Shell:
    """Return a function that runs a line in a shell that has ``skills`` on its PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "skills").symlink_to(Path(sys.executable).with_name("skills"))

    def call(line: str, before: Sequence[str] = (), **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*before, "sh", "-c", line],
            capture_output=True,
            text=True,
            env={"HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}", **env},
            check=False,
            timeout=60,
        )

    return call


def mended_by(failed: subprocess.CompletedProcess[str], code: int) -> str:
    """Return the one command that a failure names."""
    assert failed.returncode == code, failed.stderr
    assert "Traceback" not in failed.stderr
    lines = [line for line in failed.stderr.splitlines() if line.startswith("try: ")]
    assert len(lines) == 1, failed.stderr
    return lines[0].removeprefix("try: ")


def test_wrong_folder(shell: Shell, home: Path) -> None:
    make_skill(home / "pack" / "skills")
    hint = mended_by(shell("skills install ~/pack"), 2)
    assert shell(hint).returncode == 0
    assert (home / ".claude" / "skills" / "count-things" / "SKILL.md").exists()


def test_a_folder_inside_the_skill(shell: Shell, home: Path) -> None:
    make_skill(home)
    hint = mended_by(shell("skills install ~/count-things/scripts"), 2)
    assert shell(hint).returncode == 0


@pytest.mark.parametrize("file", ["SKILL.md", "scripts/count.py"])
def test_a_file_instead_of_the_folder(shell: Shell, home: Path, file: str) -> None:
    make_skill(home)
    hint = mended_by(shell(f"skills install ~/count-things/{file}"), 2)
    assert shell(hint).returncode == 0


def test_no_skill_md(shell: Shell, home: Path) -> None:
    skill = make_skill(home)
    (skill / "SKILL.md").rename(skill / "skill.md")
    hint = mended_by(shell("skills install ~/count-things"), 2)
    assert shell(hint).returncode == 0
    assert shell("skills install ~/count-things").returncode == 0
    (skill / "SKILL.md").unlink()
    failed = shell("skills install ~/count-things")
    assert "has no SKILL.md" in failed.stderr
    assert shell(mended_by(failed, 2)).returncode == 0
    assert shell("skills install ~/count-things --force").returncode == 0


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("skills install swarm-confguration", "skills install swarm-configuration"),
        ("skills install Swarm_Configuration", "skills install swarm-configuration"),
        ("skills install run-swarm,run-classic", "skills install run-swarm run-classic"),
        ("skills install something-else", "skills list"),
        ("skills install ~", "skills list"),
        ("skills instal run-swarm --agent codex", "skills install run-swarm --agent codex"),
        ("skills remove run-swarm", "skills uninstall run-swarm"),
        ("skills add ./x", "skills install ./x"),
        ("skills install run-swarm --project", "skills install run-swarm --scope project"),
        ("skills install -g -a codex -s run-swarm -y", "skills install --scope user --agent codex run-swarm"),
        ("skills install run-swarm --agent claude", "--agent claude-code"),
        ("skills install run-swarm --agent cursor", "--agent claude-code"),
        (
            "skills install https://github.com/me/pack",
            "git clone --depth 1 https://github.com/me/pack pack && skills install ./pack",
        ),
        (
            "skills install https://github.com/me/pack/tree/main/skills/x",
            "git clone --depth 1 https://github.com/me/pack pack && skills install ./pack/skills/x",
        ),
        ("skills install me/pack", "git clone --depth 1 https://github.com/me/pack pack && skills install ./pack"),
        (
            "skills install git@example.org:me/pack.git",
            "git clone --depth 1 git@example.org:me/pack.git pack && skills install ./pack",
        ),
    ],
)
def test_a_misspelt_command_line(shell: Shell, line: str, hint: str) -> None:
    assert mended_by(shell(line), 2) == hint


def test_a_misspelt_path(shell: Shell, home: Path) -> None:
    make_skill(home / "my skills")
    hint = mended_by(shell("skills install ~/'my skils'/count-things"), 2)
    assert shell(hint).returncode == 0


def test_blanks_without_quotes(shell: Shell, home: Path) -> None:
    make_skill(home / "all my skills")
    hint = mended_by(shell("skills install run-swarm ~/all my skills/count-things"), 2)
    assert shell(hint).returncode == 0
    assert (home / ".claude" / "skills" / "count-things" / "SKILL.md").exists()


@pytest.mark.parametrize("archive", ["count-things.zip", "count-things.skill", "count-things.tar.gz"])
def test_an_archive_instead_of_the_folder(shell: Shell, home: Path, archive: str) -> None:
    skill = make_skill(home / "inside")
    made = shutil.make_archive(str(home / "made"), "gztar" if archive.endswith("gz") else "zip", skill)
    Path(made).rename(home / archive)
    assert shell(mended_by(shell(f"skills install ~/{archive}"), 2)).returncode == 0


def test_a_page_instead_of_the_folder(shell: Shell, home: Path) -> None:
    (make_skill(home / "inside") / "SKILL.md").rename(home / "count-things.md")
    assert shell(mended_by(shell("skills install ~/count-things.md"), 2)).returncode == 0
    assert (home / ".agents" / "skills" / "count-things" / "SKILL.md").exists()


@pytest.mark.parametrize("value", ["", "relative"])
def test_a_home_that_is_none(shell: Shell, home: Path, value: str) -> None:
    make_skill(home)
    line = f"cd '{home}' && skills install ./count-things"
    hint = mended_by(shell(line, HOME=value), 3)
    assert hint.startswith("export HOME=/")
    assert shell(f"{hint.split('=')[0]}='{home}' && {line}", HOME=value).returncode == 0


def test_a_working_directory_that_is_gone(shell: Shell, home: Path) -> None:
    make_skill(home)
    gone = "mkdir gone && cd gone && rmdir ../gone"
    hint = mended_by(shell(f"{gone} && skills install ~/count-things"), 3)
    assert shell(f"{gone} && {hint} && skills install ~/count-things").returncode == 0
    assert mended_by(shell(f"{gone} && skills doctor"), 3) == "cd ~"


@pytest.mark.parametrize("link", [".claude", ".claude/skills"])
def test_a_link_to_nothing_where_the_folder_of_skills_should_be(shell: Shell, home: Path, link: str) -> None:
    make_skill(home)
    (home / link).parent.mkdir(exist_ok=True)
    (home / link).symlink_to(home / "dot files" / "claude")
    failed = shell("skills install ~/count-things")
    assert "is a link to" in failed.stderr
    assert shell(mended_by(failed, 3)).returncode == 0
    assert shell("skills install ~/count-things").returncode == 0
    assert (home / "dot files" / "claude").is_dir()


@pytest.mark.skipif(not CAN_BE_LESS, reason="root, and no way to be less")
def test_a_file_of_the_skill_that_cannot_be_read(shell: Shell, home: Path) -> None:
    skill = make_skill(home)
    (skill / "scripts" / "count.py").chmod(0)
    hint = mended_by(shell("skills install ~/count-things", WITHOUT_RIGHTS), 3)
    assert shell(hint, WITHOUT_RIGHTS).returncode == 0
    assert shell("skills install ~/count-things", WITHOUT_RIGHTS).returncode == 0


def test_a_linked_skill_that_has_moved(shell: Shell, home: Path) -> None:
    skill = make_skill(home)
    shell("skills install ~/count-things --link")
    skill.rename(home / "elsewhere")
    told = shell("skills doctor").stdout.splitlines()
    at = next(number for number, line in enumerate(told) if "is a link to nothing" in line)
    assert shell(told[at + 1].removeprefix("  try: ")).returncode == 0
    assert not (home / ".claude").exists()


def test_uninstalling_what_others_have_put_there(shell: Shell, home: Path) -> None:
    make_skill(home / ".claude" / "skills", "theirs")
    failed = shell("skills uninstall theirs")
    assert failed.returncode == 1
    assert "`skills` has not installed it" in failed.stdout
    assert (home / ".claude" / "skills" / "theirs").exists()
    assert "was not installed by `skills`" in shell("skills update theirs").stderr


def give_away(folder: Path) -> None:
    """Make a folder another user's."""
    if not WITHOUT_RIGHTS or not CAN_BE_LESS:
        pytest.skip("only root can give a folder away, and must be able to be less")
    try:
        os.chown(folder, 4321, 4321)
    except PermissionError:
        pytest.skip("this root may not give a folder away")


@pytest.mark.skipif(not CAN_BE_LESS, reason="root, and no way to be less")
def test_a_home_that_cannot_be_written(shell: Shell, home: Path) -> None:
    make_skill(home)
    home.chmod(0o555)
    hint = mended_by(shell("skills install ~/count-things", WITHOUT_RIGHTS), 3)
    assert shell(hint, WITHOUT_RIGHTS).returncode == 0
    assert shell("skills install ~/count-things", WITHOUT_RIGHTS).returncode == 0


def test_a_target_that_belongs_to_another(shell: Shell, home: Path) -> None:
    make_skill(home)
    target = home / ".claude" / "skills"
    target.mkdir(parents=True)
    give_away(target)
    failed = shell("skills install ~/count-things", WITHOUT_RIGHTS)
    assert f"{target} to be yours; it belongs to user 4321" in failed.stderr
    hint = mended_by(failed, 3)
    assert shell(hint.removeprefix("sudo ")).returncode == 0  # this test is root already
    assert shell("skills install ~/count-things", WITHOUT_RIGHTS).returncode == 0


def test_a_home_that_belongs_to_another_is_not_to_be_given_away_whole(shell: Shell, home: Path) -> None:
    make_skill(home / "work")
    give_away(home)
    hint = mended_by(shell("cd ~/work && skills install ./count-things", WITHOUT_RIGHTS), 3)
    assert hint == "skills install ./count-things --scope project"


def test_a_link_in_its_place(shell: Shell, home: Path) -> None:
    make_skill(home)
    mine = make_skill(home / "mine", body="# Mine\n")
    (home / ".claude" / "skills").mkdir(parents=True)
    (home / ".claude" / "skills" / "count-things").symlink_to(mine)
    failed = shell("skills install ~/count-things --agent claude-code")
    assert failed.returncode == 1
    hint = next(line for line in failed.stdout.splitlines() if line.strip().startswith("try: ")).strip()
    assert shell(hint.removeprefix("try: ")).returncode == 0
    assert (mine / "SKILL.md").exists()


def test_a_file_where_the_folder_of_skills_should_be(shell: Shell, home: Path) -> None:
    make_skill(home)
    (home / ".claude").mkdir()
    (home / ".claude" / "skills").write_text("oops")
    hint = mended_by(shell("skills install ~/count-things"), 3)
    assert shell(hint).returncode == 0
    assert shell("skills install ~/count-things").returncode == 0


def test_another_program_called_skills(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "npm").mkdir()
    (tmp_path / "npm" / "skills").write_text("#!/bin/sh\nexit 99\n")
    (tmp_path / "npm" / "skills").chmod(0o755)
    path = f"{tmp_path}/npm:{tmp_path}/bin:{os.environ['PATH']}"
    hint = mended_by(shell(f"{tmp_path}/bin/skills install swarm-confguration", PATH=path), 2)
    assert shell(hint, PATH=path).returncode == 0


def test_no_node(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    for program in ("sh", "python3", "tmux"):
        if shutil.which(program):
            (tmp_path / "few" / program).symlink_to(shutil.which(program) or "")
    told = shell("skills doctor", PATH=f"{tmp_path}/bin:{tmp_path}/few").stdout.splitlines()
    at = next(number for number, line in enumerate(told) if "there is no Node" in line)
    assert told[at + 1].startswith("  try: ")


def test_an_old_python(shell: Shell, home: Path, tmp_path: Path) -> None:
    make_skill(home)
    shell("skills install ~/count-things")
    old = tmp_path / "bin" / "python3"
    old.write_text("#!/bin/sh\necho 3 6\n")
    old.chmod(0o755)
    told = shell("skills doctor")
    assert told.returncode == 1
    assert f"wrong: {old} is older than Python 3.8, and cannot read the scripts\n  try: " in told.stdout


def test_spaces_in_paths(shell: Shell, home: Path) -> None:
    assert " " in str(home)
    make_skill(home / "my skills")
    hint = mended_by(shell("skills install ~/'my skills'"), 2)
    assert shell(hint).returncode == 0
    script = home / ".claude" / "skills" / "count-things" / "scripts" / "count.py"
    assert shell(f"'{script}'").stdout == "3\n"


def test_windows_line_endings(shell: Shell, home: Path) -> None:
    skill = make_skill(home)
    (skill / "lib").mkdir()
    (skill / "lib" / "start").write_bytes(b"#!/bin/sh\r\n")
    for file in ("SKILL.md", "scripts/count.py"):
        (skill / file).write_bytes((skill / file).read_bytes().replace(b"\n", b"\r\n"))
    failed = shell("skills install ~/count-things")
    assert "SKILL.md has Windows line endings, and so have 2 more" in failed.stderr
    assert shell(mended_by(failed, 2)).returncode == 0
    assert shell("skills install ~/count-things").returncode == 0
