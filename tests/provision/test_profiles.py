"""Every recorded machine: the verdicts and the plan that its profile states, and the plan driven to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skillpack.provision.apply import apply
from skillpack.provision.script import shell_script
from skillpack.provision.survey import Survey, survey
from tests.provision.machines import World, profiles

ALL = list(profiles())
Build = Callable[[dict[str, Any]], World]


def look(machine: World) -> Survey:
    return survey(machine.profile["recipe"], machine.given, machine.workdir)


def told(found: Survey) -> str:
    """All that a person could read of a plan."""
    return shell_script(found.plan) + "\n".join(f"{v['reason']} {v['mend']}" for v in found.verdicts)


def test_there_are_at_least_25_machines() -> None:
    assert len(ALL) >= 25


@pytest.mark.parametrize("data", ALL, ids=lambda data: data["id"])
def test_machine(data: dict[str, Any], world: Build) -> None:
    machine = world(data)
    expected = data["expect"]
    found = look(machine)
    given = {verdict["id"]: verdict["verdict"] for verdict in found.verdicts}
    reasons = {verdict["id"]: verdict["reason"] for verdict in found.verdicts}
    wrong = {
        name: (given.get(name), reasons.get(name)) for name, v in expected["checks"].items() if given.get(name) != v
    }
    assert not wrong
    assert found.verdict == expected["verdict"], [v for v in found.verdicts if v["verdict"] != "ok"]
    for verdict in found.verdicts:
        assert verdict["verdict"] == "ok" or verdict["mend"], f"{verdict['id']} names no mend"
        assert verdict["reason"]
    if cause := expected.get("one_root_cause"):
        alone = [v["id"] for v in found.verdicts if v["verdict"] == "blocks" and not v["follows"]]
        assert alone == [cause]
    assert not machine.unexpected()
    for text in expected.get("says", []):
        assert text in told(found)
    for text in expected.get("silent", []):
        assert text not in told(found)
    if "steps" in expected:
        assert [step.id for step in found.plan.steps] == expected["steps"]
        if "root" in expected:
            assert [step.id for step in found.plan.steps if step.root] == expected["root"]
        drive(machine, found, expected)


def drive(machine: World, found: Survey, expected: dict[str, Any]) -> None:
    """Apply the plan of a machine; then everything is done, and doing it again changes nothing."""
    state = apply(found.plan)
    assert not machine.unexpected()
    if fails_at := expected.get("fails_at"):
        assert state["failed"]["step"] == fails_at, state["failed"]
        assert expected.get("failure") in (None, state["failed"]["signature"])
        return
    assert state["state"] == "done", state["failed"]
    before = machine.snapshot()
    again = apply(found.plan)
    assert {step["state"] for step in again["steps"].values()} == {"already"}
    assert machine.snapshot() == before
