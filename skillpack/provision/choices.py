"""What a plan chooses from the answers and from what the machine is: the templates' ``c`` and ``s``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillpack.provision.data import load
from skillpack.provision.docker_choices import check_docker_answers, choose_docker
from skillpack.provision.gpus import asked_gpus
from skillpack.provision.python_choices import choose_client, choose_conda


def choose(recipe: str, answers: Mapping[str, Any], machine: Mapping[str, Any], workdir: Path) -> dict[str, Any]:
    """Return what the templates of a recipe call ``c``."""
    common = {"sudo": "" if machine["root"] else "sudo -n "}
    if recipe == "docker":
        return {**common, **choose_docker(answers, machine)}
    if recipe == "conda":
        return {**common, **choose_conda(answers, machine, workdir, stack_of(answers["stack"]))}
    return {**common, **choose_client(answers, machine, workdir)}


def check_answers(recipe: str, answers: Mapping[str, Any]) -> None:
    """Raise BadInput on answers that no machine could make right, before the machine is looked at."""
    if recipe != "client":
        asked_gpus(answers["gpus"])
    if recipe == "docker":
        check_docker_answers(answers)


def stack_of(name: str) -> dict[str, Any]:
    """Return a matched set of versions; ``checkout`` stands for the set that AgentJet is expected to pin."""
    table = load("stacks")
    entry = table[name]
    return {**(table[entry["like"]] if "like" in entry else entry), "id": name, "title": entry["title"]}
