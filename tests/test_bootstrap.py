"""The two commands of the README say what is missing on a bare machine."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def bootstrap(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / "bootstrap.py", folder)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return subprocess.run(
        [sys.executable, "bootstrap.py", *arguments],
        cwd=folder,
        env={"PATH": str(folder / "bin"), "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_without_a_command_it_tells_what_there_is(tmp_path):
    told = bootstrap(tmp_path)
    assert told.returncode == 2
    assert "python3 bootstrap.py demo" in told.stderr
    assert bootstrap(tmp_path, "--help").returncode == 0


def test_a_python_that_cannot_make_environments_is_told_with_the_package_to_install(tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "venv.py").write_text("raise SystemExit('The virtual environment was not created')")
    told = bootstrap(tmp_path, "demo", PYTHONPATH=str(tmp_path / "broken"))
    assert told.returncode == 3
    assert "apt-get install python3-venv" in told.stderr
    assert "Traceback" not in told.stderr


def test_an_old_python_is_told_which_one_to_use(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "sitecustomize.py").write_text("import sys; sys.version_info = (3, 8, 10, 'final', 0)")
    told = bootstrap(tmp_path, "setup", PYTHONPATH=str(tmp_path / "old"))
    assert told.returncode == 3
    assert "this is Python 3.8; the pack needs 3.10 or newer" in told.stderr


def test_a_second_setup_installs_nothing(tmp_path):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    (tmp_path / ".venv" / ".installed-all").write_text(digest)
    told = bootstrap(tmp_path, "setup")
    assert told.returncode == 0
    assert "Installing" not in told.stderr
