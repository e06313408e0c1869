"""What is taken back, and what never is: an environment, a container or a file that was there before."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillpack.provision import apply as engine
from skillpack.provision.ledger import MADE, Made, made_in
from skillpack.provision.plan import Plan
from skillpack.provision.script import shell_script, undo_script
from skillpack.provision.survey import survey
from tests.provision.machines import STUBS, World, profile

Build = Callable[..., World]


def begin(world: Build, name: str, **more: Any) -> tuple[World, Plan]:
    machine = world(profile(name))
    return machine, planned(machine, **more)


def planned(machine: World, **more: Any) -> Plan:
    return survey(machine.profile["recipe"], {**machine.given, **more}, machine.workdir).plan


def undo(machine: World) -> subprocess.CompletedProcess[str]:
    text = undo_script("x", machine.workdir, made_in(machine.workdir))
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False)


def environment(folder: Path, *, pip: bool) -> Path:
    """Make an environment as a user would have made it."""
    (folder / "bin").mkdir(parents=True)
    (folder / "site").mkdir()
    shutil.copy(STUBS / "env-python", folder / "bin" / "python")
    (folder / "pyvenv.cfg").touch()
    (folder / "theirs").write_text("data")
    if not pip:
        (folder / "no-pip").touch()
    return folder


@pytest.mark.parametrize("name", ["client-laptop", "conda-bare-no-conda"])
def test_an_environment_that_existed_is_used_and_stays(name: str, world: Build) -> None:
    machine = world(profile(name))
    env = environment(machine.folder / "x env", pip=True)
    assert engine.apply(planned(machine, env=str(env)))["state"] == "done"
    assert (env / "site/agentjet").exists()
    assert undo(machine).returncode == 0
    assert (env / "theirs").read_text() == "data"
    assert not (env / "site/agentjet").exists()
    assert made_in(machine.workdir) == []


@pytest.mark.parametrize("name", ["client-laptop", "client-uv", "conda-h100x8", "conda-uv-only"])
@pytest.mark.parametrize("way", ["apply", "script"])
def test_an_environment_that_cannot_be_used_is_not_made_anew(name: str, way: str, world: Build) -> None:
    machine = world(profile(name))
    env = environment(machine.folder / "env", pip=False)
    plan = planned(machine, env=str(env))
    calls = len(machine.calls())
    if way == "apply":
        failed = engine.apply(plan)["failed"]
        assert (failed["step"], failed["signature"]) == ("environment", "step.occupied")
    else:
        done = subprocess.run(["bash", "-c", shell_script(plan)], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "is left alone" in done.stderr
    assert not [line for line in machine.calls()[calls:] if " create " in line or " venv " in line]
    undo(machine)
    assert (env / "theirs").read_text() == "data"


def test_both_environments_of_two_plans_are_taken_back(world: Build) -> None:
    machine, plan = begin(world, "client-laptop")
    assert engine.apply(plan)["state"] == "done"
    second = machine.folder / "second"
    assert engine.apply(planned(machine, env=str(second)))["state"] == "done"
    assert undo(machine).returncode == 0
    assert not second.exists()
    assert not (machine.workdir / "venv").exists()


def test_a_plan_that_found_all_done_has_nothing_to_take_back(world: Build) -> None:
    machine, plan = begin(world, "client-laptop")
    assert engine.apply(plan)["state"] == "done"
    (machine.workdir / MADE).unlink()
    assert engine.apply(plan)["state"] == "done"
    assert made_in(machine.workdir) == []


def test_a_checkout_that_somebody_changed_stays(world: Build) -> None:
    machine, plan = begin(world, "client-laptop")
    assert engine.apply(plan)["state"] == "done"
    changed = machine.workdir / "AgentJet/changed"
    changed.touch()
    assert undo(machine).returncode == 1
    assert changed.exists()
    assert [entry.id for entry in made_in(machine.workdir)] != []
    changed.unlink()
    assert undo(machine).returncode == 0
    assert not (machine.workdir / "AgentJet").exists()


def test_a_folder_in_the_place_of_the_checkout_stays(world: Build) -> None:
    machine, plan = begin(world, "client-laptop")
    theirs = machine.workdir / "AgentJet/theirs"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    assert engine.apply(plan)["failed"]["signature"] == "step.occupied"
    undo(machine)
    assert theirs.exists()


def test_a_file_that_existed_is_not_removed(world: Build) -> None:
    machine, plan = begin(world, "docker-h100x8-r580")
    theirs = machine.workdir / "compose.yaml"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("services: {}\n")
    assert engine.apply(plan)["state"] == "done"
    undo(machine)
    assert theirs.exists()


def test_a_container_of_another_plan_stays(world: Build) -> None:
    machine, plan = begin(world, "docker-h100x8-r580")
    assert engine.apply(plan)["state"] == "done"
    label = machine.folder / "state/label"
    ours = label.read_text()
    label.write_text("another")
    assert undo(machine).returncode == 1
    assert (machine.folder / "state/container").exists()
    label.write_text(ours)
    assert undo(machine).returncode == 0
    assert not (machine.folder / "state/container").exists()
    assert not (machine.workdir / MADE).exists()


def test_a_torn_record_is_passed_over(tmp_path: Path) -> None:
    whole = Made("a", "A", "rm -f a")
    lines = [json.dumps(whole._asdict()), "[1]", '{"id": "b", "ti']
    (tmp_path / MADE).write_text("\n".join(lines))
    assert made_in(tmp_path) == [whole]
    assert made_in(tmp_path / "none") == []
