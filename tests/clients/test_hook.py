"""The pre-commit hook, run by pre-commit in somebody's repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.published import PACK, clone, git, skip_without_index

PRE_COMMIT = [sys.executable, "-m", "pre_commit"]
GOOD = '---\nname: {name}\ndescription: "Count {name}. Use when {name} are to be counted."\n---\n# Count\n'

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Set a folder of its own in which pre-commit keeps what it has installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRE_COMMIT_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("PRE_COMMIT_COLOR", "never")
        yield


@pytest.fixture(scope="module")
def hooks(cache: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clone of the pack whose hooks pre-commit has installed into its cache."""
    pytest.importorskip("pre_commit")
    folder = tmp_path_factory.mktemp("a user of hooks")
    pack = clone(folder / "pack")
    configure(folder / "first", pack)
    done = pre_commit(folder / "first", "install-hooks")
    skip_without_index(done.stdout)
    assert done.returncode == 0, done.stdout
    return pack


@pytest.fixture
def repository(hooks: Path, tmp_path: Path) -> Path:
    """Return a repository with two good skills and the hooks, all committed."""
    folder = configure(tmp_path / "my repository", hooks)
    for name in ("apples", "pears"):
        write(folder / "my skills" / name / "SKILL.md", GOOD.format(name=name))
    write(folder / "README.md", "# Fruit\n")
    commit(folder)
    return folder


def configure(folder: Path, hooks: Path) -> Path:
    """Make a repository that has the hooks of the pack in its configuration."""
    revision = git(hooks, "rev-parse", "HEAD").stdout.strip()
    folder.mkdir()
    (folder / ".pre-commit-config.yaml").write_text(
        f'repos: [{{repo: "{hooks}", rev: {revision}, hooks: [{{id: skills-validate}}, '
        "{id: skills-validate-fix, stages: [manual]}]}]\n"
    )
    git(folder, "init", "-q")
    return folder


def pre_commit(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pre-commit, stderr with stdout."""
    return subprocess.run(
        [*PRE_COMMIT, *words],
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "A commit")


def run_hook(repository: Path, *words: str) -> tuple[int, str]:
    """Stage all and return the exit code and the output of a run."""
    git(repository, "add", "-A")
    done = pre_commit(repository, "run", *words)
    return done.returncode, done.stdout


def test_the_manifest_is_one() -> None:
    pytest.importorskip("pre_commit")
    done = subprocess.run([*PRE_COMMIT, "validate-manifest", PACK / ".pre-commit-hooks.yaml"], check=False)
    assert done.returncode == 0


def test_a_bad_skill_stops_the_commit_and_says_where(repository: Path) -> None:
    write(repository / "my skills" / "plums" / "SKILL.md", "---\nname: plums\ndescription: say: no\n---\n# No\n")
    code, output = run_hook(repository)
    assert code == 1
    assert "my skills/plums/SKILL.md:3: error An unquoted value holds a colon" in output
    assert "1 skill, 1 failed" in output
    assert "apples" not in output


def test_what_git_itself_starts_is_stopped_too(repository: Path) -> None:
    assert pre_commit(repository, "install").returncode == 0
    write(repository / "my skills" / "plums" / "SKILL.md", "---\nname: plums\n---\n")
    git(repository, "add", "-A")
    done = git(repository, "commit", "-m", "Plums", check=False)
    assert done.returncode == 1
    assert "my skills/plums/SKILL.md" in done.stdout + done.stderr


@pytest.mark.parametrize("file", ["README.md", "my skills/notes.txt"])
def test_files_of_no_skill_are_passed_over(repository: Path, file: str) -> None:
    write(repository / "my skills" / "plums" / "SKILL.md", "no skill at all\n")
    commit(repository)
    write(repository / file, "more\n")
    code, output = run_hook(repository)
    assert (code, "Passed" in output) == (0, True), output


def test_a_file_beside_skill_md_touches_the_skill(repository: Path) -> None:
    write(repository / "my skills" / "apples" / "SKILL.md", GOOD.format(name="apples") + "See [more](more.md).\n")
    write(repository / "my skills" / "apples" / "more.md", "# More\n")
    assert run_hook(repository)[0] == 0
    commit(repository)
    write(repository / "my skills" / "apples" / "scripts" / "count.py", "def count(:\n")
    code, output = run_hook(repository)
    assert code == 1
    assert "my skills/apples/scripts/count.py:1: error" in output


def test_a_deleted_page_that_is_still_linked_is_told(repository: Path) -> None:
    write(repository / "my skills" / "apples" / "SKILL.md", GOOD.format(name="apples") + "See [more](more.md).\n")
    write(repository / "my skills" / "apples" / "more.md", "# More\n")
    commit(repository)
    (repository / "my skills" / "apples" / "more.md").unlink()
    code, output = run_hook(repository)
    assert code == 1
    assert "my skills/apples/SKILL.md:6: error" in output
    assert "more.md" in output
    git(repository, "commit", "-q", "-m", "Delete")
    ranged = pre_commit(repository, "run", "--from-ref", "HEAD~1", "--to-ref", "HEAD")
    assert ranged.returncode == 1, ranged.stdout


def test_a_deleted_skill_is_no_fault(repository: Path) -> None:
    shutil.rmtree(repository / "my skills" / "apples")
    assert run_hook(repository)[0] == 0
    commit(repository)
    git(repository, "rm", "-q", "--cached", "my skills/pears/SKILL.md")  # deleted in the index alone
    done = pre_commit(repository, "run")
    assert done.returncode == 0, done.stdout


def test_options_go_on_to_the_validator(repository: Path) -> None:
    config = repository / ".pre-commit-config.yaml"
    config.write_text(
        config.read_text().replace("id: skills-validate}", "id: skills-validate, args: [--client, codex]}")
    )
    write(repository / "my skills" / "apples" / "SKILL.md", "---\nname: apples\ndescription: say: no\n---\n# No\n")
    code, output = run_hook(repository)
    assert code == 0, output


def test_the_other_hook_mends(repository: Path) -> None:
    page = repository / "my skills" / "apples" / "SKILL.md"
    page.write_bytes(b"\xef\xbb\xbf---\nname: apples\ndescription: say: no\n---\n# No\n")
    code, output = run_hook(repository, "--hook-stage", "manual", "skills-validate-fix")
    assert code == 1
    assert "files were modified by this hook" in output
    assert page.read_bytes().startswith(b'---\nname: apples\ndescription: "say: no"\n')
    assert run_hook(repository, "--hook-stage", "manual", "skills-validate-fix")[0] == 0
