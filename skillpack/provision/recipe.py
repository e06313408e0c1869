"""Recipes as data, and the answers to their questions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from skillpack.provision.expressions import render
from skillpack.script import BadInput

FOLDER = Path(__file__).resolve().parent / "recipes"
NAMES = ("client", "conda", "docker")


@cache
def load_recipe(name: str) -> dict[str, Any]:
    """Return a recipe with its shared parts filled in. Callers must not change it."""
    recipe = _read(name)
    shared = _read("shared")
    for part in ("questions", "steps"):
        recipe[part] = [shared[part][item["use"]] if "use" in item else item for item in recipe[part]]
    return recipe


def _read(name: str) -> Any:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), Loader=loader)


def flag(name: str) -> str:
    """Return the command line option of a question."""
    return "--" + name.replace("_", "-")


def answers_of(recipe: Mapping[str, Any], given: Mapping[str, Any], workdir: Path) -> dict[str, Any]:
    """Return an answer to every question: what was given, else its default; paths made absolute.

    Raises BadInput when an answer cannot be what it says (a port out of range, a path with a character
    that Docker's mount syntax cannot carry).
    """
    answers: dict[str, Any] = {}
    for question in recipe["questions"]:
        name, kind = question["name"], question["kind"]
        value = given.get(name)
        if value is None or value == "" or value == ():
            value = question.get("default", "")
            if isinstance(value, str) and "{" in value:
                value = render(value, {"workdir": str(workdir), "a": answers})
        answers[name] = _typed(name, kind, value)
    return answers


def _typed(name: str, kind: str, value: Any) -> Any:
    if kind == "path" and value:
        path = str(Path(str(value)).expanduser().absolute())
        if bad := re.search(r"[\x00-\x1f,\"]", path):
            raise BadInput(
                f"{flag(name)}: the path holds {bad.group()!r}: {path!r}",
                expected="a path without commas, double quotes and control characters, which mounts cannot carry",
            )
        return path
    if kind == "list":
        return list(value)
    if kind == "int":
        number = int(value)
        if name == "port" and not 0 < number < 65536:
            raise BadInput(f"{flag(name)}: {number} is no TCP port", expected="a number from 1 to 65535")
        return number
    if kind == "text":
        _check_text(name, str(value))
    return value


def _check_text(name: str, value: str) -> None:
    if re.search(r"^-|[\x00-\x1f]", value):
        raise BadInput(f"{flag(name)}: {value!r} begins with a dash or holds a control character")
    if re.search(r"://[^/@\s]+:[^/@\s]+@", value):
        raise BadInput(
            f"{flag(name)}: the address holds a password, which would be seen and written down",
            hint="~/.netrc, pip.conf or a git credential helper",
        )
    if name == "server" and value and not re.match(r"https?://[^/\s]+$", value.rstrip("/")):
        raise BadInput(f"{flag(name)}: {value!r}", expected="http://HOST:PORT")


def open_questions(
    recipe: Mapping[str, Any], given: Mapping[str, Any], answers: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return what the user was not asked yet: {name, option, question, default, required} for each.

    ``default`` is the answer that is taken until they are.
    """
    return [
        {
            "name": question["name"],
            "option": flag(question["name"]),
            "question": question["ask"],
            "default": answers[question["name"]],
            "required": bool(question.get("required")),
        }
        for question in recipe["questions"]
        if question.get("ask") and given.get(question["name"]) in (None, "", ())
    ]


def require(recipe: Mapping[str, Any], answers: Mapping[str, Any]) -> None:
    """Raise BadInput unless every question that has no default is answered."""
    missing = [q for q in recipe["questions"] if q.get("required") and not answers[q["name"]]]
    if missing:
        raise BadInput(
            f"not answered: {', '.join(flag(question['name']) for question in missing)}",
            expected=" ".join(question["ask"] for question in missing),
            hint="ask the user, then give the answer as an option",
        )
