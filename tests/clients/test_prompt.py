"""The install prompt followed to the letter in a clean home, packages from the index included."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillpack.cli import skills
from skillpack.install import sources
from skillpack.pack import skills_dir
from tests.clients.published import skip_without_index


@pytest.mark.timeout(1200)
@pytest.mark.skipif(not sources.own_names(), reason="no skills yet")
def test_an_assistant_that_follows_the_prompt_ends_with_working_skills(tmp_path: Path) -> None:
    home = tmp_path / "a clean home"
    home.mkdir()
    env = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "CERT" in name}
    env |= {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}

    def follow(block: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", "-ec", block], cwd=home, env=env, capture_output=True, text=True, check=False)

    text = CliRunner().invoke(skills, ["prompt", "--source", str(skills_dir().parent)]).stdout
    *blocks, _by_hand = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    for block in blocks:
        done = follow(block)
        if done.returncode:
            skip_without_index(done.stdout + done.stderr)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"

    for name in sources.own_names():
        for folder in (home / ".claude" / "skills" / name, home / ".agents" / "skills" / name):
            for script in sorted((folder / "scripts").glob("[!_]*.py")):
                helped = follow(f"python3 '{script}' --help")
                assert helped.returncode == 0, helped.stderr
    for client in (".claude", ".agents"):
        assert sorted(path.name for path in (home / client / "skills").iterdir()) == sources.own_names()
