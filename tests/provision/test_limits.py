"""What preflight refuses before anything runs, and what the scripts answer then."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from skillpack.provision.apply import apply
from skillpack.provision.script import shell_script
from skillpack.provision.survey import survey
from skillpack.provision.workdir import default_workdir
from skillpack.script import BadInput
from tests.provision.machines import STUBS, World, profile

Build = Callable[..., World]
WHEEL = "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-{0}-{0}-linux_x86_64.whl"


def judged(machine: World, **more: Any) -> dict[str, tuple[str, str]]:
    """Return the verdict and reason of each check, with some answers changed."""
    found = survey(machine.profile["recipe"], {**machine.given, **more}, machine.workdir)
    return {verdict["id"]: (verdict["verdict"], verdict["reason"]) for verdict in found.verdicts}


def folder(path: Path, **files: str) -> Path:
    """Make a folder with files in it."""
    for name, text in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    path.mkdir(parents=True, exist_ok=True)
    return path


PYTHON = "#!/bin/sh\ncase \"$*\" in *pip*) exit {pip} ;; *) echo 'Python {version}' ;; esac\n"


def environment(path: Path, mark: str, *, version: str = "3.11.4", pip: bool = True) -> Path:
    folder(path, **{mark: ""} if mark else {"x": ""})
    folder(path / "bin", python=PYTHON.format(pip=0 if pip else 1, version=version))
    (path / "bin/python").chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("make", "verdict", "said"),
    [
        (lambda at: at, "ok", "will be made"),
        (folder, "ok", "will be made"),
        (lambda at: environment(at, "pyvenv.cfg"), "ok", "Python 3.11.4"),
        (lambda at: environment(at, "conda-meta/history"), "ok", "will be used"),
        (lambda at: environment(at, ""), "blocks", "neither a venv nor a conda"),
        (lambda at: folder(at, notes="mine"), "blocks", "neither a venv nor a conda"),
        (lambda at: folder(at, notes="mine") / "notes", "blocks", "is a file"),
        (lambda at: environment(at, "pyvenv.cfg", pip=False), "blocks", "no pip"),
        (lambda at: environment(at, "pyvenv.cfg", version="3.8.1"), "blocks", "3.8.1"),
        (lambda at: environment(at, "pyvenv.cfg", version="3.13.0"), "blocks", "3.13.0"),
        (lambda at: environment(at, "condabin/conda"), "blocks", "its base"),
        (lambda at: folder(at, **{"pyvenv.cfg": ""}), "blocks", "does not run"),
    ],
)
@pytest.mark.parametrize("name", ["client-laptop", "conda-h100x8"])
def test_env(name: str, make: Callable[[Path], Path], verdict: str, said: str, world: Build) -> None:
    machine = world(profile(name))
    found = judged(machine, env=str(make(machine.folder / "an env")))
    assert found["env"][0] == verdict
    assert said in found["env"][1]


def test_an_environment_that_a_plan_began_may_go_on(world: Build) -> None:
    machine = world(profile("client-laptop"))
    apply(survey("client", machine.given, machine.workdir).plan)
    (machine.workdir / "venv/no-pip").touch()
    assert judged(machine)["env"][0] == "ok"
    (machine.workdir / "made.jsonl").unlink()
    assert judged(machine)["env"][0] == "blocks"


@pytest.mark.parametrize(
    ("asked", "said"), [("nonexist", "is no Python"), ("python3.8", "3.8.20"), ("python3.10", "is no Python")]
)
def test_python(asked: str, said: str, world: Build) -> None:
    machine = world(profile("client-laptop"))
    machine.says("python3.8 --version", {"rc": 0, "out": "Python 3.8.20\n"})
    (machine.folder / "bin/python3.8").symlink_to(STUBS / "python3")
    assert judged(machine, python=asked)["python"][0] == "blocks"
    assert said in judged(machine, python=asked)["python"][1]


def test_a_wheel_has_to_fit_an_environment_that_exists(world: Build) -> None:
    machine = world(profile("conda-h100x8"))
    env = environment(machine.folder / "env", "conda-meta/history", version="3.12.1")
    wheel = machine.folder / WHEEL.format("cp312")
    wheel.touch()
    assert judged(machine, env=str(env), flash_attn_wheel=str(wheel))["flash_attn"][0] == "ok"


def test_venv_is_asked_of_the_python_that_is_taken(world: Build) -> None:
    data = profile("client-python-too-new")
    data["machine"]["said"] = {"python3.12 -I -c import ensurepip, venv": {"rc": 1}}
    machine = world({**data, "machine": {**data["machine"], "os": "debian-12"}})
    plan = survey("client", machine.given, machine.workdir).plan
    assert "install -y -q python3.12-venv\n" in next(s.run for s in plan.steps if s.id == "python-venv") + "\n"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda at: at, "is not there"),
        (lambda at: folder(at), "has no pyproject.toml"),
        (lambda at: folder(at, **{"pyproject.toml": "[project]\nname = 'other'\n"}), "is the project other"),
        (lambda at: folder(at, **{"pyproject.toml": ""}) / "pyproject.toml", "is no folder"),
    ],
)
def test_source(make: Callable[[Path], Path], said: str, world: Build) -> None:
    machine = world(profile("client-laptop"))
    verdict, reason = judged(machine, source=str(make(machine.folder / "checkout")))["checkout"]
    assert (verdict, said in reason) == ("blocks", True)


def test_revisions_have_folders_of_their_own(world: Build) -> None:
    machine = world(profile("client-laptop"))
    assert apply(survey("client", machine.given, machine.workdir).plan)["state"] == "done"
    other = survey("client", {**machine.given, "ref": "release/0.2"}, machine.workdir).plan
    assert apply(other)["steps"]["source"]["state"] == "done"
    assert (machine.workdir / "AgentJet-release-0.2/pyproject.toml").exists()
    checkout = folder(machine.folder / "checkout", **{"pyproject.toml": "[project]\nname = 'AgentJet'\n"})
    assert judged(machine, source=str(checkout), ref="v1")["checkout"][0] == "warn"


def test_conda_is_not_fetched_for_an_environment_that_exists(world: Build) -> None:
    machine = world(profile("conda-bare-no-conda"))
    env = environment(machine.folder / "env", "conda-meta/history")
    plan = survey("conda", {**machine.given, "env": str(env)}, machine.workdir).plan
    assert "miniforge" not in [step.id for step in plan.steps]


def test_conda_without_any_source_of_miniforge(world: Build) -> None:
    data = profile("conda-bare-no-conda")
    machine = world({**data, "machine": {**data["machine"], "offline": True}})
    verdict, reason = judged(machine)["conda"]
    assert verdict == "blocks"
    assert "Miniforge" in reason
    found = survey("conda", machine.given, machine.workdir)
    assert "conda" in {stop["id"] for stop in found.stops}


@pytest.mark.parametrize("china", ["auto", "yes", "no"])
def test_nothing_answers(china: str, world: Build) -> None:
    data = profile("conda-h100x8")
    machine = world({**data, "machine": {**data["machine"], "offline": True}})
    found = judged(machine, china=china)
    assert (found["conda"][0], found["pip_index"][0]) == ("blocks", "blocks")


@pytest.mark.parametrize(
    ("name", "there", "verdict"),
    [
        (WHEEL.format("cp310"), True, "ok"),
        (WHEEL.format("cp310"), False, "blocks"),
        (WHEEL.format("cp312"), True, "blocks"),
        ("torch-2.8.0-cp310-cp310-linux_x86_64.whl", True, "blocks"),
        ("nope.whl", True, "blocks"),
    ],
)
def test_wheel(name: str, there: bool, verdict: str, world: Build) -> None:
    machine = world(profile("conda-h100x8"))
    wheel = machine.folder / name
    if there:
        wheel.touch()
    assert judged(machine, flash_attn_wheel=str(wheel))["flash_attn"][0] == verdict


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_jobs": -3},
        {"gpus": "abc"},
        {"gpus": "0,0"},
        {"port": 0},
        {"index_url": "foo"},
        {"github_mirror": "mirror"},
    ],
)
def test_answers_of_conda_that_cannot_be(wrong: Mapping[str, Any], world: Build) -> None:
    with pytest.raises(BadInput):
        judged(world(profile("conda-h100x8")), **wrong)


def test_docker_without_weights_cannot_start(world: Build) -> None:
    machine = world(profile("docker-h100x8-r580"))
    assert judged(machine, model_path="")["weights"][0] == "blocks"
    with pytest.raises(BadInput):
        judged(machine, model_id="foo")


@pytest.mark.parametrize("name", ["client-laptop", "conda-h100x8", "docker-h100x8-r580"])
def test_folders_that_cannot_be_written_in(name: str, world: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = world(profile(name))
    assert judged(machine)["folders"][0] == "ok"
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: Path(path) != machine.folder)
        verdict, reason = judged(machine)["folders"]
    assert verdict == "blocks"
    assert f"no right to write in {machine.folder}" in reason
    machine.workdir.touch()
    assert "is a file" in judged(machine)["folders"][1]


def test_a_skills_folder_is_no_place_to_work_in(world: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    skill = folder(tmp_path / "skills/install-client", **{"SKILL.md": "", "scripts/plan.py": ""})
    for here in (skill, skill / "scripts"):
        assert default_workdir("client", here) == tmp_path / "home/agentjet-client"
    assert default_workdir("client", tmp_path) == tmp_path / "agentjet-client"
    machine = world(profile("client-laptop"))
    assert judged(machine, env=str(skill / "venv"))["folders"][0] == "warn"


def test_a_root_script_leaves_the_folder_to_the_user(world: Build, tmp_path: Path) -> None:
    machine = world({**profile("client-debian-without-venv"), "id": "x"})
    machine.says("id -u", {"rc": 0, "out": "0\n"})
    plan = survey("client", machine.given, machine.workdir).plan
    text = shell_script(plan, root_only=True)
    chown = machine.folder / "bin/chown"
    chown.write_text('#!/bin/sh\necho "$@" >> "$MACHINE/owners"\n')
    chown.chmod(0o755)
    environment = {**machine.environment, "SUDO_UID": "1000", "SUDO_GID": "100", "AS_ROOT": "1"}
    for _ in range(2):
        done = subprocess.run(["bash", "-c", text], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    made = machine.workdir / "made.jsonl"
    assert (machine.folder / "owners").read_text().splitlines() == [
        f"-h 1000:100 {made}",
        f"-h 1000:100 {machine.workdir}",
        f"-h 1000:100 {made}",
    ]
