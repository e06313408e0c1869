"""A client that is really installed, from an index, into a fresh environment, and runs an episode.

The checkout is a stand-in: this repository's own ``ajet`` under AgentJet's name, with the dependencies
that it needs. The released AgentJet cannot be fetched here; what is proven is the plan, pip's editable
install with dependencies from the index, and the proof itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from skillpack.pack import PACKAGE, skills_dir
from tests.provision.engines import engine

SCRIPTS = skills_dir() / "install-client" / "scripts"
DEPENDENCIES = ["httpx", "pydantic", "pyyaml", "rich"]
PYPROJECT = f"""\
[build-system]
requires = ["setuptools>=65"]
build-backend = "setuptools.build_meta"

[project]
name = "AgentJet"
version = "0.0.4"
requires-python = ">=3.10"
dependencies = {json.dumps(DEPENDENCIES)}

[tool.setuptools.packages.find]
include = ["ajet*"]
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "AgentJet"
    shutil.copytree(PACKAGE.parent / "ajet", folder / "ajet", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pyproject.toml").write_text(PYPROJECT)
    return folder


@pytest.fixture
def index() -> None:
    """Skip the test where no package index has what it installs; pip's dry run reads metadata only."""
    wanted = ["--retries", "0", "--no-deps", "--ignore-installed", "setuptools", *DEPENDENCIES]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    if done.returncode:
        pytest.skip(f"no index is reachable: {done.stderr.strip().splitlines()[-1:]}")


def script(name: str, workdir: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    command = [sys.executable, str(SCRIPTS / name), "--workdir", str(workdir), "--json", *arguments]
    environment = {
        **os.environ,
        "PIP_NO_COMPILE": "1",  # byte code would only cost time here
        "PYTHONPATH": sysconfig.get_path("purelib"),  # packages that the new environment must not take for its own
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.usefixtures("index")
def test_a_client_from_the_index_runs_an_episode(checkout: Path, tmp_path: Path) -> None:
    workdir, source = tmp_path / "client", ["--source", str(checkout)]
    _, seen, _ = script("preflight.py", workdir, *source)
    reasons = {check["id"]: check["reason"] for check in seen["checks"] if check["verdict"] == "blocks"}
    if "pip_index" in reasons or "python" in reasons:
        pytest.skip(f"this machine cannot install anything: {reasons}")
    code, before, _ = script("verify.py", workdir, *source)
    assert (code, before["works"]) == (1, False)

    code, applied, log = script("plan.py", workdir, *source, "--apply")
    assert code == 0, f"{applied} {log}"
    states = [step["state"] for step in applied["steps"]]
    assert "failed" not in states

    with engine(tmp_path, rolling=True) as url:
        code, proven, log = script("verify.py", workdir, *source, "--server", url)
    proofs = {proof["id"]: proof for proof in proven["proofs"]}
    assert code == 0, f"{proofs} {log}"
    assert all(proofs[name]["ok"] for name in ("import", "version", "server", "episode"))
    assert str(checkout) in proofs["import"]["text"]
    assert "0.0.4" in proofs["version"]["text"]
    assert "ended" in proofs["episode"]["text"]

    code, again, _ = script("plan.py", workdir, *source, "--apply")
    assert {step["state"] for step in again["steps"]} == {"already"}
    assert code == 0
