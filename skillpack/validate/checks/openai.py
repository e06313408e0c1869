"""``agents/openai.yaml``, whose faults Codex passes over without a word."""

from __future__ import annotations

from collections.abc import Iterator

from skillpack.validate.checks.skill import Skill
from skillpack.validate.clients.openai_yaml import ICONS, KEYS, OpenAI, place_of, read
from skillpack.validate.problems import Problem, problem
from skillpack.validate.source import OPENAI_FILE
from skillpack.validate.tree import Document


def check(skill: Skill) -> Iterator[Problem]:
    """Yield problems of the file that says how Codex shows the skill."""
    document = skill.source.openai
    if document is None:
        return
    taken = read(skill.source)
    if not isinstance(taken, OpenAI):
        yield problem("openai-yaml", taken.problem, line=taken.line + 1, file=OPENAI_FILE, clients=("codex",))
        return
    for way, why in taken.dropped:
        yield _field(document, way, why)
    for way in _unknown(document):
        yield _field(document, way, "is no key that Codex knows")
    prompt = taken.interface.get("default_prompt", f"${skill.name}")
    if f"${skill.name}" not in prompt:
        yield _field(document, ("interface", "default_prompt"), f"does not name the skill as ${skill.name}")
    for key in ICONS:
        path = taken.interface.get(key)
        if path is not None and path not in skill.folder.files:
            yield _field(document, ("interface", key), f"{path} is not there")


def _unknown(document: Document) -> Iterator[tuple[str, ...]]:
    """Yield the ways to keys that nobody reads; a mapping of a key that is unknown itself is not looked into."""
    for key, value in document.root.pairs if document.root else ():
        if key.value not in KEYS:
            yield (key.value,)
            continue
        for inner, _ in document.resolve(value).pairs:
            if inner.kind == "scalar" and inner.value not in KEYS[key.value]:
                yield key.value, inner.value


def _field(document: Document, way: tuple[str | int, ...], detail: str) -> Problem:
    name = ".".join(str(step) for step in way)
    line = place_of(document, way) + 1
    return problem("openai-field", f"{name} {detail}", line=line, file=OPENAI_FILE, clients=("codex",))
