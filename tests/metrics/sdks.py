"""Environments with other releases of the SwanLab SDK, made once and kept in the user's cache."""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OLDEST = "0.7.20"
NEWEST = "0.10.3"
BETWEEN = ("0.8.5", "0.9.8")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentjet-skills-tests"


def sdk_python(version: str) -> Path:
    """Return an interpreter that imports this SDK release, and all else from the running environment."""
    folder = CACHE / f"swanlab-{version}-py{sys.version_info.major}{sys.version_info.minor}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            _make(folder, version)
    return folder / "bin" / "python"


def _make(folder: Path, version: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
    install = [folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check", f"swanlab=={version}"]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"swanlab {version} cannot be installed here: {done.stderr.strip()[-300:]}")
    own = next(folder.glob("lib/python*/site-packages"))
    # behind the SDK's own dependencies: pandas, pyarrow, matplotlib, pytest of the running environment
    (own / "zz_rest.pth").write_text(f"{ROOT}\n{sysconfig.get_paths()['purelib']}\n")
    (folder / "complete").touch()
