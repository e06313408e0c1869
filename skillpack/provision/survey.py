"""Put it together: look at the machine (or a recording of one), choose, plan and judge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from skillpack.provision import mirrors
from skillpack.provision.assess import assess, overall
from skillpack.provision.choices import check_answers, choose, stack_of
from skillpack.provision.expressions import holds, render
from skillpack.provision.ledger import is_noted
from skillpack.provision.machine import describe
from skillpack.provision.observe import Observation, look, look_at_disks
from skillpack.provision.plan import Plan, build
from skillpack.provision.recipe import answers_of, load_recipe, require

DOCKER_ROOT = "/var/lib/docker"


class Survey(NamedTuple):
    """A look at a machine and what follows from it."""

    recipe: str
    answers: dict[str, Any]
    observation: Observation
    machine: dict[str, Any]
    plan: Plan
    verdicts: list[dict[str, Any]]

    @property
    def verdict(self) -> str:
        """ok, warn or blocks: whether the plan can start."""
        return overall(self.verdicts)

    @property
    def stops(self) -> list[dict[str, Any]]:
        """What blocks and is not mended by a step of the plan."""
        return [v for v in self.verdicts if v["verdict"] == "blocks" and not v["mended_by"]]


def survey(
    recipe_name: str,
    given: Mapping[str, Any],
    workdir: Path,
    recording: Observation | None = None,
    *,
    complete: bool = False,
) -> Survey:
    """Look at this machine, or take a recording of another, and return verdicts and a plan.

    Raises BadInput on answers that cannot be, and with ``complete`` on a needed answer that is missing.
    """
    recipe = load_recipe(recipe_name)
    answers = answers_of(recipe, given, workdir)
    if complete:
        require(recipe, answers)
    check_answers(recipe_name, answers)
    asking = {
        "a": answers,
        "env_python": answers["env"] + "/bin/python" if "env" in answers else "",
        "home": str(Path.home()),
    }
    urls = mirrors.addresses(recipe["network"])
    seen = recording or look(recipe_name, asking, urls.values())
    machine = describe(seen, recipe_name, asking, {}, urls)
    where = {"a": answers, "docker_root": machine["docker"]["root"] or DOCKER_ROOT}
    needed = {name: place for name, place in recipe["disk"].items() if holds(place.get("when", "true"), where)}
    places = {name: render(place["folder"], where) for name, place in needed.items()}
    if recording is None:
        seen = look_at_disks(seen, places)
    machine = describe(seen, recipe_name, asking, places, urls)
    context = {
        "recipe": recipe_name,
        "r": {**recipe, "disk": needed},
        "a": answers,
        "m": machine,
        "c": choose(recipe_name, answers, machine, workdir),
        "s": stack_of(answers.get("stack", "checkout")),
        "workdir": str(workdir),
    }
    plan = build(context)
    verdicts = assess(
        context,
        root_steps=[step.title for step in plan.steps if step.root],
        begun=[step.id for step in plan.steps if is_noted(workdir, step)],
        here=recording is None,
    )
    return Survey(recipe_name, answers, seen, machine, plan, verdicts)
