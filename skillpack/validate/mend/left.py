"""What ``--fix`` cannot know: what is left for a person to do, in one line."""

from __future__ import annotations

from collections.abc import Iterable

from skillpack.validate.clients import CLIENTS
from skillpack.validate.clients.reading import Reading
from skillpack.validate.clients.spec import KEYS, MAX_COMPATIBILITY, MAX_DESCRIPTION
from skillpack.validate.mend.folder import hindrance, is_checkout, new_name
from skillpack.validate.mend.keys import claude_keys
from skillpack.validate.rules import SEVERITIES, rule
from skillpack.validate.source import SkillFile
from skillpack.validate.tree import Document

LOADS, CHANGES, LOST, REJECTS = range(4)
"""How well a client does with a skill, best first; lost is a slash command that no model hears of."""

_LIMITS = {
    "description-length": ("description", MAX_DESCRIPTION),
    "compatibility": ("compatibility", MAX_COMPATIBILITY),
}
"""The field that a rule limits, and to how many characters."""

_BY_WISH = frozenset({"model-invocation", "metadata-internal"})
"""Rules under which a client leaves a skill out because its author asks for it."""


def rank(reading: Reading) -> int:
    """Return how well a client does with a skill."""
    if reading.verdict == "rejects":
        return REJECTS
    if any(reason.lost for reason in reading.reasons):
        return LOST
    return CHANGES if reading.reasons else LOADS


def left_over(skill: SkillFile, clients: Iterable[str]) -> str:
    """Return what a person must do so that these clients load the skill, and for whom, or "" if they do."""
    rules: dict[str, list[str]] = {}
    for client in clients:
        for reason in CLIENTS[client](skill).reasons:
            if (reason.rejects or reason.lost) and reason.rule not in _BY_WISH:
                told = rules.setdefault(reason.rule, [])
                told += [client] * (client not in told)
    known = sorted(rules, key=lambda name: (-len(rules[name]), SEVERITIES.index(rule(name).severity)))
    return "; ".join(f"{_advice(name, skill)} [{name}: {', '.join(rules[name])}]" for name in known)


def _advice(name: str, skill: SkillFile) -> str:
    """Return the rule's mend, told for this skill where more is known."""
    block = skill.written
    document = skill.yaml(block.text.replace("\r\n", "\n")) if block else Document("")
    if name == "key-unknown":
        return _unknown(document)
    if name == "yaml-duplicate" and document.duplicate is not None:
        return f"Decide which {document.duplicate.value} is meant and delete the other."
    if name == "name-folder" and is_checkout(skill.folder):
        return "Call the folder by the skill's name where it is installed; a checkout's name is anybody's choice."
    if name in ("name-folder", "name-characters"):
        node = document.value("name")
        wanted = new_name(skill.folder, node.value if node is not None and node.kind == "scalar" else "")
        if wanted:
            why = hindrance(skill.folder, wanted)
            return (
                f"Rename the folder to {wanted}; --fix does {f'not, for {why}' if why else 'when the rest is mended'}."
            )
    limit = _LIMITS.get(name)
    field = document.value(limit[0]) if limit else None
    if limit and field is not None and field.kind == "scalar" and len(field.value) > limit[1]:
        return f"Shorten the {limit[0]} from {len(field.value):,} characters to {limit[1]:,}."
    return rule(name).mend


def _unknown(document: Document) -> str:
    """Say which keys were left and why."""
    unknown = [key.value for key, _ in document.root.pairs if key.value not in KEYS] if document.root else []
    acted = [key for key in unknown if key in claude_keys()]
    if not acted:
        return rule("key-unknown").mend
    told = ", ".join(f"{key} ({claude_keys()[key]})" for key in acted[:5])
    return f"Keep {told} for Claude Code, or delete it for the specification, which has no such key."
