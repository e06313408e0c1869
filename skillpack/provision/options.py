"""Command line options made out of a recipe's questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from skillpack.provision.recipe import flag, load_recipe
from skillpack.provision.workdir import default_workdir

EXAMPLES = {
    "client": "--source ~/AgentJet --server http://127.0.0.1:10086",
    "conda": "--source ~/AgentJet --model-path /data/Qwen2.5-7B-Instruct",
    "docker": "--model-path /data/Qwen2.5-7B-Instruct --gpus all",
}


def answer_options(recipe: str) -> Callable[[Any], Any]:
    """Give a command an option for each question of a recipe."""

    def decorate(function: Any) -> Any:
        for question in reversed(load_recipe(recipe)["questions"]):
            function = click.option(flag(question["name"]), question["name"], **_option(question))(function)
        return click.option(
            "--workdir",
            type=click.Path(file_okay=False, path_type=Path),
            default=lambda: default_workdir(recipe, Path.cwd()),
            help="Folder for the plan, its log and what it writes."
            f"  [default: agentjet-{recipe} here; in the home folder where here is a skill's folder]",
        )(function)

    return decorate


def verify_options(recipe: str) -> Callable[[Any], Any]:
    """Give verify.py what only one recipe's proof needs."""

    def decorate(function: Any) -> Any:
        if recipe == "client":
            return click.option(
                "--end",
                is_flag=True,
                help="End the episode with reward 0 instead of aborting it (it then counts in a training).",
            )(function)
        if recipe == "docker":
            function = click.option(
                "--patience",
                type=click.FloatRange(min=1),
                default=120,
                show_default=True,
                help="Seconds to wait for BOOTING.",
            )(function)
            return click.option(
                "--boot-job",
                type=click.Path(dir_okay=False, path_type=Path),
                help="Job YAML to sync to an OFFLINE server until it is BOOTING; it is stopped again.",
            )(function)
        return function

    return decorate


def _option(question: dict[str, Any]) -> dict[str, Any]:
    kind, default = question["kind"], question.get("default")
    shown = f"  [default: {default}]" if default not in ("", None, [], False) and "{" not in str(default) else ""
    options: dict[str, Any] = {"help": question["help"] + shown}
    if kind == "flag":
        return {**options, "is_flag": True, "default": None}
    if kind == "list":
        return {**options, "multiple": True}
    types = {"int": click.INT, "choice": click.Choice([str(choice) for choice in question.get("choices", ())])}
    return {**options, "type": types.get(kind, click.STRING), "default": None}
