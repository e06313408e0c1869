"""A plan that was stopped anywhere and started again ends where an undisturbed one ends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillpack.provision import apply as engine
from skillpack.provision.ledger import made_in
from skillpack.provision.plan import Plan, Step
from skillpack.provision.script import shell_script, undo_script
from skillpack.provision.survey import survey
from tests.provision.machines import World, profile

Build = Callable[..., World]
MACHINES = ("client-debian-without-venv", "conda-bare-no-conda", "docker-bare-ubuntu")


class Stopped(BaseException):
    """The process is gone."""


def begin(world: Build, name: str, tmp_path: Path) -> tuple[World, Plan]:
    """Return a fresh machine, always in the same folder, and the plan for it."""
    shutil.rmtree(tmp_path / "machine", ignore_errors=True)
    machine = world(profile(name))
    return machine, survey(machine.profile["recipe"], machine.given, machine.workdir).plan


def undisturbed(world: Build, name: str, tmp_path: Path) -> tuple[dict[str, str], Plan, int]:
    machine, plan = begin(world, name, tmp_path)
    before = len(machine.calls())
    assert engine.apply(plan)["state"] == "done"
    return machine.snapshot(), plan, len(machine.calls()) - before


def test_a_pid_that_somebody_else_has_by_now_is_no_plan_at_work(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps({"state": "running", "pid": os.getpid(), "started": 1}))
    assert (engine.status(tmp_path) or {})["state"] == "interrupted"


@pytest.mark.parametrize("name", MACHINES)
def test_stopped_after_each_step(name: str, world: Build, tmp_path: Path) -> None:
    final, plan, _ = undisturbed(world, name, tmp_path)
    for stop in range(len(plan.steps)):
        machine, plan = begin(world, name, tmp_path)

        def power_cut(event: str, step: Step, at: str = plan.steps[stop].id) -> None:
            if step.id == at and event in ("ran", "already"):
                raise Stopped

        with pytest.raises(Stopped):
            engine.apply(plan, power_cut)
        assert (engine.status(machine.workdir) or {})["state"] == "interrupted"
        resumed = engine.saved_plan(machine.workdir)
        assert resumed == plan
        assert engine.apply(resumed)["state"] == "done"
        assert machine.snapshot() == final, f"stopped after {plan.steps[stop].id}"


@pytest.mark.parametrize(
    ("name", "stride"), [("docker-bare-ubuntu", 11), ("conda-bare-no-conda", 5), ("docker-existing-daemon-json", 9)]
)
def test_killed_in_the_middle_of_a_command(name: str, stride: int, world: Build, tmp_path: Path) -> None:
    final, _, calls = undisturbed(world, name, tmp_path)
    for victim in range(1, calls, stride):
        machine, plan = begin(world, name, tmp_path)
        (machine.folder / "dies-at").write_text(str(len(machine.calls()) + victim))
        engine.apply(plan)
        assert not (machine.folder / "dies-at").exists()
        state = engine.apply(engine.saved_plan(machine.workdir) or plan)
        assert state["state"] == "done", state["failed"]
        assert machine.snapshot() == final, f"killed at call {victim}"


@pytest.mark.parametrize("name", MACHINES)
def test_the_script_does_what_apply_does(name: str, world: Build, tmp_path: Path) -> None:
    final, _, _ = undisturbed(world, name, tmp_path)
    machine, plan = begin(world, name, tmp_path)
    script = tmp_path / "plan.sh"
    script.write_text(shell_script(plan))
    for _ in range(2):
        done = subprocess.run(["bash", str(script)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert machine.snapshot() == final
    assert done.stdout.count("already done") == len(plan.steps)


def test_a_failed_step_is_where_it_goes_on(world: Build, tmp_path: Path) -> None:
    machine, plan = begin(world, "client-laptop", tmp_path)
    machine.says("pip install", {"rc": 1, "err": "ERROR: No matching distribution found for agentscope==1.0.8\n"})
    state = engine.apply(plan)
    assert (state["state"], state["failed"]["step"], state["failed"]["signature"]) == (
        "failed",
        "install",
        "pip.no_wheel",
    )
    assert "No matching distribution" in "".join(state["failed"]["tail"])
    for file in (machine.folder / "said").glob("pip install*"):
        file.unlink()
    clones = sum(line.startswith("git clone") for line in machine.calls())
    again = engine.apply(engine.saved_plan(machine.workdir) or plan)
    assert again["state"] == "done"
    states = {name: step["state"] for name, step in again["steps"].items()}
    assert states == {
        "helpers": "already",
        "source": "already",
        "environment": "already",
        "install": "done",
        "import": "already",
    }
    assert sum(line.startswith("git clone") for line in machine.calls()) == clones


def test_two_at_once_are_refused(world: Build, tmp_path: Path) -> None:
    machine, plan = begin(world, "client-laptop", tmp_path)

    def second(event: str, step: Step) -> None:
        with pytest.raises(engine.Busy):
            engine.apply(plan)
        assert (engine.status(machine.workdir) or {})["state"] == "running"

    assert engine.apply(plan, second)["state"] == "done"


def test_undo_takes_back_what_was_made(world: Build, tmp_path: Path) -> None:
    machine, plan = begin(world, "conda-bare-no-conda", tmp_path)
    assert engine.apply(plan)["state"] == "done"
    script = tmp_path / "undo.sh"
    script.write_text(undo_script(plan.title, machine.workdir, made_in(machine.workdir)))
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert {path.name for path in machine.workdir.iterdir()} <= {"install.log", "lock"}


def test_a_server_that_runs_is_not_replaced_without_consent(world: Build, tmp_path: Path) -> None:
    machine, plan = begin(world, "docker-h100x8-r580", tmp_path)
    assert engine.apply(plan)["state"] == "done"
    label = (machine.folder / "state/label").read_text()

    def replan(**more: Any) -> dict[str, Any]:
        return engine.apply(survey("docker", {**machine.given, **more}, machine.workdir).plan)

    refused = replan(shm_size="64g")
    assert refused["failed"]["step"] == "up"
    assert "--replace" in "".join(refused["failed"]["tail"])
    assert (machine.folder / "state/label").read_text() == label
    assert replan(shm_size="64g", replace=True)["state"] == "done"
    assert (machine.folder / "state/label").read_text() != label
    (machine.folder / "state/label").write_text("")  # somebody else's container of that name
    assert "did not make" in "".join(replan(shm_size="32g", replace=True)["failed"]["tail"])
