"""The commands of SKILL.md, copied and run as they stand, take a run from blueprint to finish.flag."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.runs.conftest import Lab

SKILLS = Path(__file__).resolve().parents[2] / "skills"


def blocks(text: str) -> list[str]:
    """Return the fenced shell commands of a SKILL.md."""
    return re.findall(r"^```bash\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def example(skill: str, name: str) -> str:
    """Return a file that references/rehearsal.md shows."""
    text = (SKILLS / skill / "references" / "rehearsal.md").read_text(encoding="utf-8")
    shown = re.search(rf"`{re.escape(name)}`:?\n\n((?:(?:    .*)?\n)+)", text)
    assert shown
    return textwrap.dedent(shown[1])


def follow(lab: Lab, skill: str, variables: dict[str, str]) -> Path:
    """Do what SKILL.md says, block by block, in one shell after the other; watch again while it says 4."""
    environment = {**os.environ, **lab.environment, **variables, "PYTHON": sys.executable}
    path = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    environment["PATH"] = path
    settings = ""
    for block in blocks((SKILLS / skill / "SKILL.md").read_text(encoding="utf-8")):
        if block.startswith("export "):
            settings += block
            continue
        for _ in range(60):
            done = subprocess.run(
                ["bash", "-euc", settings + block],
                cwd=SKILLS / skill,
                env=environment,
                capture_output=True,
                text=True,
                timeout=100,
            )
            if done.returncode != 4:
                break
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return Path(variables["EXP"])


@pytest.mark.timeout(300)
def test_a_classic_run_by_the_commands_of_its_skill(lab: Lab) -> None:
    code = lab.path / "my code"
    code.mkdir()
    for name in ("flows.py", "job.yaml"):
        (code / name).write_text(example("run-classic", name), encoding="utf-8")
    lab.result("classic")
    directory = follow(
        lab,
        "run-classic",
        {
            "CODE": str(code),
            "CONFIG": str(code / "job.yaml"),
            "EXP": str(lab.result("classic")),
            "LAUNCH": 'python -m ajet.launcher --conf "$exp_yaml_path" --backbone debug',
        },
    )
    assert (directory / "finish.flag").exists()
    report = (directory / "report.md").read_text(encoding="utf-8")
    assert "**finished**" in report
    assert "critic/rewards/mean" in report
    assert (directory / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_commands_as_they_stand_make_a_blueprint_for_paths_with_spaces(lab: Lab) -> None:
    code = lab.path / "my code"
    code.mkdir()
    (code / "job.yaml").write_text(example("run-classic", "job.yaml"), encoding="utf-8")
    commands = blocks((SKILLS / "run-classic" / "SKILL.md").read_text(encoding="utf-8"))[:2]
    environment = {**os.environ, "CODE": str(code), "PYTHON": sys.executable}
    subprocess.run(["bash", "-euc", "".join(commands)], cwd=SKILLS / "run-classic", env=environment, check=True)
    checks = lab.script("blueprint", "lint", code / "results" / "first.blueprint.md", "--json").json["checks"]
    assert [check["verdict"] for check in checks if check["id"] == "names-yaml"] == ["ok"]


@pytest.mark.parametrize(("url", "code"), [("http://gpu1:10086", 0), ("", 2)])
def test_an_empty_server_means_one_that_runs_elsewhere(lab: Lab, url: str, code: int) -> None:
    (lab.path / "client.py").write_text(example("run-swarm", "client.py"), encoding="utf-8")
    commands = blocks((SKILLS / "run-swarm" / "SKILL.md").read_text(encoding="utf-8"))[:2]
    given = {"CLIENT": str(lab.path / "client.py"), "PYTHON": sys.executable, "SERVER": "", "SERVER_URL": url}
    done = subprocess.run(
        ["bash", "-euc", "".join(commands)],
        cwd=SKILLS / "run-swarm",
        env={**os.environ, **given},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    written = lab.path / "results" / "swarm.blueprint.md"
    assert written.exists() == (code == 0)
    if written.exists():
        shown = lab.script("blueprint", "show", written, "--json").json
        assert (shown["mode"], shown["exp_server_url"], shown["exp_server_command"]) == ("swarm", url, None)


@pytest.mark.timeout(300)
def test_a_swarm_run_by_the_commands_of_its_skill(lab: Lab) -> None:
    code = lab.path / "code"
    code.mkdir()
    (code / "client.py").write_text(example("run-swarm", "client.py"), encoding="utf-8")
    directory = follow(
        lab,
        "run-swarm",
        {
            "CLIENT": str(code / "client.py"),
            "EXP": str(lab.result("swarm")),
            "SERVER": f"python -m ajet.swarm_cli start --swarm-port {free_port()}",
        },
    )
    assert (directory / "finish.flag").exists()
    assert "**finished**" in (directory / "report.md").read_text(encoding="utf-8")
    assert "[server] step:1 - " in (directory / "console.log").read_text(encoding="utf-8")
