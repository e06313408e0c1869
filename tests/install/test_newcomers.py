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
    mended_by(failed, 2)


def test_a_misspelt_name(shell: Shell) -> None:
    assert mended_by(shell("skills install swarm-confguration"), 2) == "skills install swarm-configuration"


WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
"""Root may write everywhere; without these capabilities it is refused as any user is."""

CAN_BE_LESS = not WITHOUT_RIGHTS or (
    shutil.which("setpriv")
    and subprocess.run([*WITHOUT_RIGHTS, "true"], check=False, capture_output=True).returncode == 0
)


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
    for file in ("SKILL.md", "scripts/count.py"):
        (skill / file).write_bytes((skill / file).read_bytes().replace(b"\n", b"\r\n"))
    failed = shell("skills install ~/count-things")
    assert "SKILL.md has Windows line endings, and so have 1 more" in failed.stderr
    assert shell(mended_by(failed, 2)).returncode == 0
    assert shell("skills install ~/count-things").returncode == 0
