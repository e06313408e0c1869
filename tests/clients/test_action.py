"""The GitHub action: its steps are run by bash as a runner would, in somebody's repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clients.published import PACK, clone, skip_without_index

ACTION = yaml.safe_load((PACK / "action.yml").read_text(encoding="utf-8"))
BASH = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]
"""How a runner starts `shell: bash`:
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstepsshell"""
SETUP_PYTHON = {"python-path": sys.executable}
"""The outputs of actions/setup-python that stand in for it: this interpreter."""

GOOD = '---\nname: {name}\ndescription: "Count {name}. Use when {name} are to be counted."\n---\n# Count\n'
BAD = "---\nname: pears\ndescription: a: b\n---\n# Pears\n"
SCRIPT = '''#!/usr/bin/env python3
"""Count apples."""
import argparse
parser = argparse.ArgumentParser(description="Count the apples.", epilog="example: count.py. Exit codes: 0, 2")
parser.parse_args()
print(3)
'''

pytestmark = pytest.mark.timeout(600)


class Runner:
    """A machine that runs the action; what its Install step makes is kept between the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.action = clone(folder / "the action")
        (folder / "temp").mkdir()

    def run(self, workspace: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run the steps until one fails, and return how the last one ended; stderr with stdout."""
        given = {name: spec["default"] for name, spec in ACTION["inputs"].items()}
        assert inputs.keys() <= given.keys()
        given |= inputs
        done = None
        for step in ACTION["runs"]["steps"]:
            if "uses" in step:
                assert step["uses"].startswith("actions/setup-python@")
                continue
            if step["name"] == "Install" and (self.folder / "temp" / "agentjet-skills" / "bin" / "skills").exists():
                continue
            done = self.step(step, workspace, given)
            if done.returncode:
                break
        assert done is not None
        return done

    def step(
        self, step: dict[str, Any], workspace: Path, inputs: dict[str, str], **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one step."""
        given = {name: fill(value, inputs) for name, value in step.get("env", {}).items()}
        return subprocess.run(
            [*BASH, "-c", step["run"]],
            cwd=workspace,
            env={**self.environment(), **given, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "CERT" in name}
        return {
            **kept,
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(self.action),
            "RUNNER_TEMP": str(self.folder / "temp"),
        }


def fill(text: str, inputs: dict[str, str]) -> str:
    """Evaluate the expressions in a value: inputs, and the outputs of the one action that is used."""

    def value(match: re.Match[str]) -> str:
        kind, _, name = match[1].partition(".")
        return inputs[name] if kind == "inputs" else SETUP_PYTHON[name.rpartition(".")[2]]

    return re.sub(r"\$\{\{ *(\S+) *\}\}", value, text)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Return a machine on which the action has been run once."""
    folder = tmp_path_factory.mktemp("a runner")
    skill = folder / "first" / "apples"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(GOOD.format(name="apples"))
    machine = Runner(folder)
    done = machine.run(folder / "first")
    skip_without_index(done.stdout)
    assert (done.returncode, annotations(done.stdout)) == (0, []), done.stdout
    return machine


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a checkout with a good skill and a bad one."""
    folder = tmp_path / "my workspace"
    for name, text in {"apples": GOOD.format(name="apples"), "pears": BAD}.items():
        (folder / "my skills" / name).mkdir(parents=True)
        (folder / "my skills" / name / "SKILL.md").write_text(text)
    return folder


def annotations(output: str) -> list[tuple[str, str]]:
    """Return (level, file) of each workflow command; all that is printed but notes and the summary must be one."""
    found = []
    for line in [line for line in output.splitlines() if not line.startswith("note: ")][:-1]:
        match = re.fullmatch(r"::(\w+) file=([^,]+),line=\d+,title=[^:]+::.+", line)
        assert match, line
        found.append((match[1], match[2]))
    return found


def test_the_definition_keeps_githubs_schema() -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions"]
    done = subprocess.run([*check, PACK / "action.yml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_each_expression_is_known() -> None:
    """A runner puts an empty text where a name is wrong, and nobody is told."""
    text = (PACK / "action.yml").read_text(encoding="utf-8")
    used = re.findall(r"\$\{\{ *(\S+) *\}\}", text)
    steps = {step["id"] for step in ACTION["runs"]["steps"] if "id" in step}
    known = {f"inputs.{name}" for name in ACTION["inputs"]} | {f"steps.{step}.outputs.python-path" for step in steps}
    assert set(used) <= known
    assert {name for name in used if name.startswith("inputs.")} == {f"inputs.{name}" for name in ACTION["inputs"]}


def test_a_bad_skill_fails_the_job_and_is_annotated(runner: Runner, workspace: Path) -> None:
    done = runner.run(workspace)
    assert done.returncode == 1
    assert annotations(done.stdout)[0] == ("error", "my skills/pears/SKILL.md")


def test_good_skills_pass(runner: Runner, workspace: Path) -> None:
    done = runner.run(workspace, path="my skills/apples")
    assert (done.returncode, annotations(done.stdout)) == (0, [])


def test_several_paths_and_clients(runner: Runner, workspace: Path) -> None:
    done = runner.run(workspace, path="my skills/apples\nmy skills/pears\n", clients="codex  claude-code")
    assert done.returncode == 0, done.stdout  # these two mend the colon themselves
    done = runner.run(workspace, path="my skills/apples\nmy skills/pears\n", clients="npx-skills")
    assert done.returncode == 1


def test_warnings_can_fail_the_job(runner: Runner, workspace: Path) -> None:
    page = workspace / "my skills" / "apples" / "SKILL.md"
    page.write_text(page.read_text().replace("name: apples", "name: Apples"))
    only = {"path": "my skills/apples", "clients": "claude-code"}
    assert runner.run(workspace, **only).returncode == 0
    assert runner.run(workspace, **only, **{"fail-on": "warn"}).returncode == 1


def test_sarif_is_written_although_the_job_fails(runner: Runner, workspace: Path) -> None:
    done = runner.run(workspace, sarif="out put.sarif")
    assert done.returncode == 1
    document: dict[str, Any] = json.loads((workspace / "out put.sarif").read_text())
    results = document["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results]
    assert "my%20skills/pears/SKILL.md" in places
    assert document["version"] == "2.1.0"
    assert annotations(done.stdout)


@pytest.mark.parametrize(("run", "extra"), [("true", "[engine]"), ("false", "")])
def test_what_an_engine_needs_is_installed_if_scripts_are_run(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: str, extra: str
) -> None:
    """That alone is looked at here: a python that only tells what it is asked to install."""
    stub = tmp_path / "python"
    stub.write_text("""#!/bin/sh
mkdir -p "$3/bin"
cat > "$3/bin/python" <<'END'
#!/bin/sh
for word; do echo "$word"; done
END
chmod +x "$3/bin/python"
""")
    stub.chmod(0o755)
    monkeypatch.setitem(SETUP_PYTHON, "python-path", str(stub))
    (install,) = (step for step in ACTION["runs"]["steps"] if step.get("name") == "Install")
    done = runner.step(install, tmp_path, {"run": run}, RUNNER_TEMP=str(tmp_path / "temp"))
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == f"{runner.action}{extra}"


@pytest.mark.parametrize("path", ["", "\n"])
def test_no_path_is_the_workspace(runner: Runner, workspace: Path, path: str) -> None:
    assert runner.run(workspace, path=path).returncode == 1


def test_a_path_that_is_not_there_is_told(runner: Runner, workspace: Path) -> None:
    done = runner.run(workspace, path="no such folder")
    assert done.returncode == 2
    assert "error: there is no no such folder" in done.stdout


def test_a_path_that_looks_like_an_option_is_a_path(runner: Runner, workspace: Path) -> None:
    assert runner.run(workspace, path="--help").returncode == 2


def test_scripts_are_run_if_asked_for(runner: Runner, workspace: Path) -> None:
    script = workspace / "my skills" / "apples" / "scripts" / "count.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    assert runner.run(workspace, path="my skills/apples", run="true").returncode == 0
    script.write_text(SCRIPT + "raise SystemExit(7)\n")
    (script.parents[1] / "evals").mkdir()
    (script.parents[1] / "evals" / "scripts.yaml").write_text("cases:\n  - name: count\n    script: count.py\n")
    assert runner.run(workspace, path="my skills/apples").returncode == 0
    done = runner.run(workspace, path="my skills/apples", run="true")
    assert done.returncode == 1
    assert ("error", "my skills/apples/evals/scripts.yaml") in annotations(done.stdout)
    assert "wrong exit code: expected 0, came 7" in done.stdout
