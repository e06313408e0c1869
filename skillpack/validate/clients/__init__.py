"""The clients whose behaviour is modelled, by the names that people give them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skillpack.validate.clients import claude_code, codex, npx_skills, spec
from skillpack.validate.clients.portable import portable
from skillpack.validate.clients.reading import Reading
from skillpack.validate.source import SkillFile

CLIENTS: dict[str, Callable[[SkillFile], Reading]] = {
    "claude-code": claude_code.read,
    "codex": codex.read,
    "npx-skills": npx_skills.read,
    "spec": spec.read,
}
"""Client: the function that says what it makes of a skill."""


def read_all(skill: SkillFile, clients: Iterable[str]) -> dict[str, Reading]:
    """Return what each of the clients makes of a skill."""
    shown = portable(skill)
    if shown is not None:
        return {client: Reading(*shown) for client in clients}
    return {client: CLIENTS[client](skill) for client in clients}
