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
ADDRESSES = {
    "server": (r"https?://[^/\s]+$", "http://HOST:PORT"),
    "index_url": (r"(https?|file)://\S+$", "an address, as https://pypi.org/simple"),
    "github_mirror": (r"https?://\S+$", "an address to put before https://github.com/..."),
}
"""Answers that are addresses: the form, and how to say it."""


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
        name = question["name"]
        value = given.get(name)
        if value is None or value == "" or value == ():
            value = question.get("default", "")
            if isinstance(value, str) and "{" in value:
                value = render(value, {"workdir": str(workdir), "a": answers})
        answers[name] = _typed(question, value)
    return answers


def _typed(question: Mapping[str, Any], value: Any) -> Any:
    name, kind = question["name"], question["kind"]
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
        if not question["least"] <= number <= question["most"]:
            expected = f"a number from {question['least']} to {question['most']}"
            raise BadInput(f"{flag(name)}: {number} is out of range", expected=expected)
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
    form, expected = ADDRESSES.get(name, ("", ""))
    if value and form and not re.match(form, value.rstrip("/")):
        raise BadInput(f"{flag(name)}: {value!r}", expected=expected)


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
