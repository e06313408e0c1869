"""The real clients at pinned versions, installed once into the user's cache folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients import real

PACKAGES = {
    "claude-code": {"@anthropic-ai/claude-code": "2.1.332"},
    "codex": {"@openai/codex": "0.171.0"},
    "npx-skills": {"skills": "1.7.4", "node": "22.23.3"},
}
"""npm packages and versions whose behaviour is modelled; ``node`` brings the Node that ``skills`` needs."""

INSTALL_SECONDS = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a test that may have to install a client the time for it."""
    for item in items:
        if {"claude_code", "codex", "npx_skills"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.timeout(INSTALL_SECONDS + 120))


def cache_folder() -> Path:
    base = os.environ.get("AGENTJET_SKILLS_CLIENTS") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(base) / "agentjet-skills" / "clients"


def install(client: str) -> Path:
    """Return the folder that the client's packages are installed in; skip the test if npm cannot install them."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / f"{client}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the tests run in several processes
        return _install(client)


def _install(client: str) -> Path:
    packages = PACKAGES[client]
    name = "+".join(f"{package.rpartition('/')[2]}-{version}" for package, version in packages.items())
    folder = cache_folder() / name
    if (folder / "installed").exists():
        return folder
    if shutil.which("npm") is None:
        pytest.skip(f"npm is missing, so {client} cannot be installed")
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [f"{package}@{version}" for package, version in packages.items()]
    command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--no-save", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot install {', '.join(wanted)}: {done.stderr.strip()[-300:]}")
    (folder / "installed").touch()
    return folder


@pytest.fixture(scope="session")
def claude_code() -> real.ClaudeCode:
    return real.ClaudeCode(install("claude-code"))


@pytest.fixture(scope="session")
def codex() -> real.Codex:
    return real.Codex(install("codex"))


@pytest.fixture(scope="session")
def npx_skills() -> real.NpxSkills:
    return real.NpxSkills(install("npx-skills"))
