"""What a script writes where it should not is named, though the script itself says nothing of it."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from skillpack.validate.evals import CaseResult, confine, run_scripts

Try = Callable[..., CaseResult]

needs_bwrap = pytest.mark.skipif(confine.method() != "bwrap", reason="needs bubblewrap")

SILENTLY = """
try:
    {}
except OSError:
    pass
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a furnished home that is the caller's."""
    folder = tmp_path / "home of a user"
    for inner in (".cache/pip", ".local/share", ".ssh", "projects/mine"):
        (folder / inner).mkdir(parents=True)
    (folder / ".bashrc").write_text("alias ll='ls -l'\n")
    (folder / "more").symlink_to("projects")
    monkeypatch.setenv("HOME", str(folder))
    return folder


def tree(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.lstat().st_mtime_ns) for path in folder.rglob("*"))


@needs_bwrap
@pytest.mark.parametrize(
    "name",
    [".count-cache", ".bashrc", ".cache/count", ".config/count", ".local/share/count", ".local/state/count"],
)
def test_a_silent_write_to_the_home_is_named(try_case: Try, home: Path, name: str) -> None:
    before = tree(home)
    path = home / name
    result = try_case(SILENTLY.format(f"os.makedirs({str(path.parent)!r}, exist_ok=True); open({str(path)!r}, 'a')"))
    (named,) = result.why.removeprefix("writes outside the scratch directory: ").split(", ")
    assert str(path).startswith(named)
    assert named != str(home)
    assert tree(home) == before


@needs_bwrap
@pytest.mark.parametrize("place", ["/tmp", "/var/tmp", "/dev/shm"])
def test_a_silent_write_to_a_shared_folder_is_named(try_case: Try, place: str) -> None:
    path = Path(place, f"count-{os.getpid()}")
    result = try_case(SILENTLY.format(f"pathlib.Path({str(path)!r}).mkdir(); open({str(path / 'x')!r}, 'w')"))
    assert result.why == f"writes outside the scratch directory: {path}"
    assert not path.exists()


@needs_bwrap
@pytest.mark.parametrize(
    "do",
    [
        "pathlib.Path(sys.argv[0]).with_name('cache.json').write_text('1')",
        "pathlib.Path(sys.argv[0]).parents[1].joinpath('notes.md').unlink()",
        "pathlib.Path(sys.argv[0]).parents[1].joinpath('notes.md').write_text('')",
    ],
)
def test_a_silent_write_into_the_skill_is_named_and_does_no_harm(try_case: Try, skill: Path, do: str) -> None:
    (skill / "notes.md").write_text("notes\n")
    result = try_case(SILENTLY.format(do))
    assert result.why.startswith(f"writes outside the scratch directory: {skill}/")
    assert (skill / "notes.md").read_text() == "notes\n"
    assert not (skill / "scripts" / "cache.json").exists()


@needs_bwrap
def test_the_home_that_the_system_knows_of_is_watched_too(try_case: Try, home: Path) -> None:
    known = Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
    if not known.is_dir() or known == Path("/"):
        pytest.skip("this user has no home")
    result = try_case(SILENTLY.format(f"open({str(known / '.count')!r}, 'w')"))
    assert result.why == f"writes outside the scratch directory: {known / '.count'}"
    assert not (known / ".count").exists()


@needs_bwrap
def test_what_a_program_needs_of_a_home_is_there_and_its_files_are_not(try_case: Try, home: Path) -> None:
    do = f"""
    home = pathlib.Path({str(home)!r})
    print(sorted(str(path.relative_to(home)) for path in home.rglob("*")), (home / "more" / "mine").is_dir())
    """
    shown = [".cache", ".cache/pip", ".local", ".local/share", ".ssh", "more", "projects", "projects/mine"]
    assert try_case(do, expect=[f"{shown} True"]).why == ""


@pytest.mark.skipif(confine.method() == "none", reason="nothing here keeps a script from writing")
def test_caches_of_python_and_locks_are_no_matter(try_case: Try, skill: Path) -> None:
    (skill / "scripts" / "part.py").write_text("x = 1\n")
    do = """
    import multiprocessing
    multiprocessing.Lock()
    subprocess.run(["python3", "-E", "-c", "import part"], cwd=os.path.dirname(sys.argv[0]), check=True)
    """
    assert try_case(do).why == ""


def test_a_skill_in_a_home_and_an_interpreter_in_a_shared_folder(try_case: Try, home: Path, skill: Path) -> None:
    """Wherever they lie: what stands in for those places still has them."""
    inside = home / ".claude" / "skills" / skill.name
    shutil.copytree(skill, inside)
    found = run_scripts([inside], python=Path(sys.executable))[inside]
    assert [result.why for result in found] == ["", ""]


def test_each_way_says_what_it_misses() -> None:
    assert confine.UNSEEN["bwrap"] == ""
    assert "only if the script complains" in confine.UNSEEN["landlock"]
    assert "nothing is refused" in confine.UNSEEN["none"]
