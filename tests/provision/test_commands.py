"""The scripts as an assistant calls them, on machines that are played."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from skillpack.engine import process_start
from skillpack.pack import SCHEMAS, skills_dir
from skillpack.provision.recipe import load_recipe
from tests.provision.machines import World, profile, until

Build = Callable[..., World]
LIMIT = 10_000


def command(machine: World, script: str, *arguments: str) -> list[str]:
    """Return the command line of a script of the profile's skill, with the profile's answers."""
    path = skills_dir() / f"install-{machine.profile['recipe']}" / "scripts" / script
    given = [part for name, value in machine.given.items() for part in options(name, value)]
    return [sys.executable, str(path), "--workdir", str(machine.workdir), *given, *arguments]


def environment(machine: World) -> dict[str, str]:
    return {**machine.environment, "HOME": os.environ["HOME"]}


def call(machine: World, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script on a machine."""
    argv = command(machine, script, *arguments)
    return subprocess.run(argv, env=environment(machine), capture_output=True, text=True, check=False)


def options(name: str, value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [part for one in values for part in ("--" + name.replace("_", "-"), str(one))]


def document(done: subprocess.CompletedProcess[str], topic: str) -> dict[str, Any]:
    """Return the one JSON document on stdout, which its schema accepts."""
    assert "Traceback" not in done.stderr
    assert len(done.stdout) < LIMIT
    data: dict[str, Any] = json.loads(done.stdout)
    if "written_to" in data:  # what is too long for an assistant's context lies in a file
        data = json.loads(Path(data["written_to"]).read_text())
    jsonschema.validate(data, json.loads((SCHEMAS / f"provision-{topic}.schema.json").read_text()))
    return data


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("docker-h100x8-r580", 0),
        ("docker-bare-ubuntu", 0),
        ("docker-no-gpu", 1),
        ("conda-china", 0),
        ("conda-t4", 1),
        ("client-laptop", 0),
    ],
)
def test_preflight(name: str, code: int, world: Build) -> None:
    machine = world(profile(name))
    done = call(machine, "preflight.py", "--json")
    assert done.returncode == code, done.stderr
    data = document(done, "preflight")
    assert data["verdict"] == machine.profile["expect"]["verdict"]
    assert not machine.workdir.exists()


def test_preflight_in_words_begins_with_what_blocks(world: Build) -> None:
    lines = call(world(profile("docker-no-gpu")), "preflight.py").stdout.splitlines()
    assert lines[0].startswith("BLOCKS driver:")
    assert lines[1].strip().startswith("mend:")
    assert lines[-1] == "the plan cannot start"


def test_preflight_says_what_to_ask(world: Build) -> None:
    machine = world({"id": "x", "recipe": "docker", "machine": profile("docker-h100x8-r580")["machine"]})
    data = document(call(machine, "preflight.py", "--json"), "preflight")
    needed = {question["option"] for question in data["ask"] if question["required"]}
    assert needed == {"--model-path"}
    assert "{{" not in json.dumps(data["ask"])
    assert {"--gpus", "--port", "--bind", "--china"} <= {question["option"] for question in data["ask"]}
    done = call(machine, "plan.py")
    assert done.returncode == 2
    assert "--model-path" in done.stderr


@pytest.mark.parametrize(
    "name", ["docker-bare-ubuntu", "docker-open-to-the-lab", "conda-bare-no-conda", "client-debian-without-venv"]
)
def test_plan_as_json_and_text(name: str, world: Build) -> None:
    machine = world(profile(name))
    done = call(machine, "plan.py", "--json")
    assert done.returncode == 0, done.stderr
    data = document(done, "plan")
    assert [step["id"] for step in data["steps"]] == machine.profile["expect"]["steps"]
    text = call(machine, "plan.py").stdout
    root = text.find("Root is needed")
    assert (root >= 0) == bool(data["root_steps"])
    assert root < text.find("\n1. ")
    assert not machine.workdir.exists() or name == "docker-open-to-the-lab"
    assert not machine.unexpected()


def test_a_recording_is_planned_elsewhere(world: Build, tmp_path: Path) -> None:
    machine = world(profile("conda-china"))
    record = tmp_path / "seen.yaml"
    first = document(call(machine, "preflight.py", "--json", "--record", str(record)), "preflight")
    other = world({"id": "other", "recipe": "conda", "machine": {}}, "other")
    replayed = subprocess.run(
        [sys.executable, str(skills_dir() / "install-conda/scripts/preflight.py"), "--replay", str(record), "--json"],
        env=other.environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    second = document(replayed, "preflight")
    assert second["machine"]["driver"] == first["machine"]["driver"] == "580.65.06"
    same = {"driver", "gpu_arch", "glibc", "conda", "pip_index", "memory", "disk"}
    assert {c["id"]: c["reason"] for c in second["checks"] if c["id"] in same} == {
        c["id"]: c["reason"] for c in first["checks"] if c["id"] in same
    }


@pytest.mark.parametrize("text", ["", "[]", "commands: {x: {}}", "\x00", "commands: ["])
def test_what_is_no_recording_is_refused(text: str, world: Build, tmp_path: Path) -> None:
    (tmp_path / "seen.yaml").write_text(text)
    done = call(world(profile("client-laptop")), "preflight.py", "--replay", str(tmp_path / "seen.yaml"))
    assert done.returncode == 2
    assert "--record" in done.stderr
    assert "Traceback" not in done.stderr


def test_scripts_are_whole_however_they_are_printed(world: Build, tmp_path: Path) -> None:
    machine = world(profile("docker-bare-ubuntu"))
    printed = call(machine, "plan.py", "--script")
    assert len(printed.stdout) < LIMIT
    target = tmp_path / "plan.sh"
    redirected = tmp_path / "redirected.sh"
    with redirected.open("w") as stream:
        argv = command(machine, "plan.py", "--script")
        assert subprocess.run(argv, env=environment(machine), stdout=stream, check=False).returncode == 0
    assert call(machine, "plan.py", "--script", "--output", str(target)).returncode == 0
    last = printed.stdout.splitlines()[-1]
    assert Path(last.split()[-1]).read_text() == target.read_text()
    assert os.access(target, os.X_OK)
    assert redirected.read_text() == target.read_text()
    assert len(redirected.read_text()) > LIMIT
    root = call(machine, "plan.py", "--root-script", "--output", str(tmp_path / "root.sh"))
    assert root.returncode == 0
    noted = ("  begin ", "  line=")  # the user takes back later, by sudo
    run = [line for line in (tmp_path / "root.sh").read_text().splitlines() if not line.startswith(noted)]
    assert "sudo -n" not in "\n".join(run)
    assert "docker compose" not in call(world(profile("docker-no-toolkit"), "b"), "plan.py", "--root-script").stdout


def test_apply_status_and_again(world: Build) -> None:
    machine = world(profile("docker-no-toolkit"))
    assert call(machine, "plan.py", "--status").returncode == 3
    dry = document(call(machine, "plan.py", "--dry-run", "--json"), "progress")
    assert {step["state"] for step in dry["steps"]} == {"would run"}
    assert not machine.workdir.exists()
    done = call(machine, "plan.py", "--apply", "--json")
    assert done.returncode == 0, done.stderr
    data = document(done, "progress")
    assert data["state"] == "done"
    assert "needs root: Install the NVIDIA container toolkit" in done.stderr.splitlines()
    assert done.stderr.find("needs root") < done.stderr.find("run ")
    status = call(machine, "plan.py", "--status", "--json")
    assert status.returncode == 0
    assert document(status, "progress")["state"] == "done"
    again = document(call(machine, "plan.py", "--apply", "--json"), "progress")
    assert {step["state"] for step in again["steps"]} == {"already"}


def test_what_blocks_stops_apply_unless_ignored(world: Build) -> None:
    machine = world(profile("docker-wrong-model-path"))
    done = call(machine, "plan.py", "--apply", "--json")
    assert done.returncode == 1
    assert {block["id"] for block in document(done, "progress")["blocks"]} == {"model_path", "port", "gpu_count"}
    assert not machine.workdir.exists()
    ignored = [part for name in ("port", "model_path", "gpu_count") for part in ("--ignore", name)]
    assert call(machine, "plan.py", "--apply", *ignored[:4]).returncode == 1
    assert call(machine, "plan.py", "--apply", *ignored).returncode == 0


def test_a_failure_names_its_mend_and_the_same_command_goes_on(world: Build) -> None:
    machine = world(profile("docker-sudo-password"))
    done = call(machine, "plan.py", "--apply", "--json")
    assert done.returncode == 1
    data = document(done, "progress")
    assert (data["state"], data["failed"]["signature"]) == ("failed", "sudo.password")
    assert "--root-script" in data["failed"]["mend"]
    assert call(machine, "plan.py", "--status").returncode == 1
    (machine.folder / "sudo").write_text("yes")
    again = call(machine, "plan.py", "--apply", "--json")
    assert "going on with the plan" in again.stderr
    assert document(again, "progress")["state"] == "done"


def test_in_the_background(world: Build) -> None:
    machine = world(profile("client-laptop"))
    started = document(call(machine, "plan.py", "--apply", "--background", "--json"), "progress")
    assert started["state"] == "started"
    pid = os.open(f"/proc/{started['pid']}", os.O_RDONLY)  # held so that the wait below is for this very process
    try:
        codes = []
        for _ in range(400):
            codes.append(call(machine, "plan.py", "--status").returncode)
            if codes[-1] != 4:
                break
        assert codes[-1] == 0
        assert set(codes[:-1]) <= {4}
    finally:
        os.close(pid)


def test_a_second_start_starts_nothing(world: Build) -> None:
    machine = world(profile("client-laptop"))
    process, _ = hanging(machine)
    for more in ([], ["--background"]):
        again = call(machine, "plan.py", "--apply", "--json", *more)
        assert again.returncode == 4
        assert "still at work" in again.stderr
        assert document(again, "progress")["state"] == "running"
    undo = call(machine, "plan.py", "--undo-script")
    assert (undo.returncode, undo.stdout) == (2, "")
    process.terminate()
    process.communicate()


def test_a_plan_that_cannot_start_says_so_by_its_exit_code(world: Build, tmp_path: Path) -> None:
    machine = world(profile("docker-wrong-model-path"))
    shown = call(machine, "plan.py")
    assert shown.returncode == 1
    assert shown.stdout.count("BLOCKS") == 3
    for form in (["--dry-run"], ["--script", "--output", str(tmp_path / "plan.sh")]):
        done = call(machine, "plan.py", *form)
        assert done.returncode == 1
        assert done.stderr.count("BLOCKS") == 3
        assert "BLOCKS" not in done.stdout
    assert (tmp_path / "plan.sh").exists()


def test_the_way_back_needs_no_answers_and_names_only_what_was_made(world: Build) -> None:
    machine = world(profile("docker-no-toolkit"))
    none = call(machine, "plan.py", "--undo-script")
    assert none.returncode == 3
    assert "nothing to take back" in none.stderr
    assert call(machine, "plan.py", "--apply").returncode == 0
    path = skills_dir() / "install-docker/scripts/plan.py"
    argv = [sys.executable, str(path), "--workdir", str(machine.workdir), "--undo-script"]
    done = subprocess.run(argv, env=environment(machine), capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "rm --force agentjet-server" in done.stdout
    assert "== undo: Install Docker Engine" not in done.stdout
    assert "== undo: Check the weights" not in done.stdout


def test_files_that_cannot_be_written_are_told_by_their_option(world: Build, tmp_path: Path) -> None:
    machine = world(profile("client-laptop"))
    (tmp_path / "file").touch()
    for script, option in (("preflight.py", "--record"), ("plan.py", "--output")):
        more = [option, str(tmp_path / "file/x"), *(["--script"] if script == "plan.py" else [])]
        done = call(machine, script, *more)
        assert done.returncode == 2
        assert f"{option}: {tmp_path}/file/x cannot be written" in done.stderr
        assert "Errno" not in done.stderr


def test_a_workdir_that_cannot_be_made_is_told(world: Build) -> None:
    machine = world(profile("client-laptop"))
    machine.workdir.touch()
    inside = [*command(machine, "plan.py", "--apply", "--ignore", "folders"), "--workdir", str(machine.workdir / "x")]
    for more in ([], ["--background"]):
        done = subprocess.run([*inside, *more], env=environment(machine), capture_output=True, text=True, check=False)
        assert done.returncode == 3
        assert "cannot be written in" in done.stderr
        assert "Errno" not in done.stderr


def hanging(machine: World) -> tuple[subprocess.Popen[str], int]:
    """Start applying a plan whose pip hangs; return plan.py's process and the pid of the hanging step."""
    (machine.folder / "hangs").touch()
    (machine.folder / "hung").unlink(missing_ok=True)
    process = subprocess.Popen(
        command(machine, "plan.py", "--apply"), env=environment(machine), stderr=subprocess.PIPE, text=True
    )
    hung = machine.folder / "hung"
    until(lambda: hung.exists() and hung.read_text().strip() != "")
    until(lambda: '"shell"' in (machine.workdir / "state.json").read_text())
    return process, int(hung.read_text())


def test_sigterm_ends_the_step_and_the_plan_goes_on(world: Build) -> None:
    machine = world(profile("client-laptop"))
    process, step = hanging(machine)
    process.terminate()
    process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert process_start(step) == 0
    status = call(machine, "plan.py", "--status", "--json")
    assert (status.returncode, document(status, "progress")["state"]) == (1, "interrupted")
    (machine.folder / "hangs").unlink()
    assert call(machine, "plan.py", "--apply").returncode == 0


def test_a_step_that_outlived_its_plan_is_waited_for(world: Build) -> None:
    machine = world(profile("client-laptop"))
    process, step = hanging(machine)
    process.kill()
    process.communicate()
    (machine.folder / "hangs").unlink()
    try:
        refused = call(machine, "plan.py", "--apply")
        assert refused.returncode == 4
        assert "still at work" in refused.stderr
        assert call(machine, "plan.py", "--status").returncode == 4
    finally:
        os.kill(step, signal.SIGKILL)
    until(lambda: process_start(step) == 0)
    assert call(machine, "plan.py", "--apply").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--apply", "--replay", "x.yaml"], "exclude each other"),
        (["--background"], "--apply --background"),
        (["--fresh", "--dry-run", "--output", "x.sh"], "--output is for a script"),
        (["--apply", "--ignore", "disks"], "there is no such check"),
        (["--port", "99999"], "from 1 to 65535"),
        (["--gpus", "few"], "MIG"),
        (["--bind", "lan"], "IP address"),
        (["--name", "A B"], "lower case"),
        (["--job", "nowhere.yaml"], "--job"),
        (["--china", "maybe"], "--china"),
        (["--server", "localhost:10086"], "http://HOST:PORT"),
        (["--image", "https://me:secret@host/x"], "holds a password"),
    ],
)
def test_bad_usage_is_told_without_a_traceback(arguments: list[str], said: str, world: Build) -> None:
    done = call(world(profile("docker-h100x8-r580")), "plan.py", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("recipe", ["client", "conda", "docker"])
def test_skill_asks_what_the_recipe_asks(recipe: str) -> None:
    text = (skills_dir() / f"install-{recipe}" / "SKILL.md").read_text(encoding="utf-8")
    for question in load_recipe(recipe)["questions"]:
        if question.get("ask"):
            assert "--" + question["name"].replace("_", "-") in text, f"SKILL.md does not name {question['name']}"
    assert len(text.splitlines()) < 200


@pytest.mark.parametrize("recipe", ["client", "conda", "docker"])
def test_recipes_are_complete(recipe: str) -> None:
    for step in load_recipe(recipe)["steps"]:
        needed = {"id", "title", "why"} | (
            {"files"} if "files" in step else {"check", "run", "verify", "undo", "minutes", "disk_gib"}
        )
        assert needed <= set(step), step["id"]


def test_profiles_are_data() -> None:
    for file in (Path(__file__).parent / "profiles").iterdir():
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        assert set(data) <= {"title", "recipe", "given", "files", "machine", "expect"}
        assert {"title", "recipe", "machine", "expect"} <= set(data)
