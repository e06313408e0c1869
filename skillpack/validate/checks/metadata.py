"""Fields of the frontmatter: the portable profile, as far as no client's model speaks of it, and the licence file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skillpack.pack import SCHEMAS
from skillpack.validate.checks.skill import Skill
from skillpack.validate.clients.javascript import kind_of, shown_value
from skillpack.validate.problems import Problem, problem
from skillpack.validate.rules import rules
from skillpack.validate.tree import Document, Node

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_LICENSE_FILE = re.compile(
    r"(?:\bin\s+|^)(?:the\s+)?[`'\"]?(?P<file>(?:[\w.-]+/)*(?:[\w-]+\.(?:txt|md|rst)|LICEN[CS]E[\w.-]*|COPYING[\w.-]*))"
)
_PORTABLE_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_FIELDS, MAX_NODES, MAX_DEPTH = 100, 1000, 20
"""How many fields are looked at, and how much of each."""


def check(skill: Skill) -> Iterator[Problem]:
    """Yield problems of the fields; those that are a client's own are left to its model."""
    if not _plain(skill):
        yield from _check_profile(skill)
    node = skill.fields.get("license")
    match = _LICENSE_FILE.search(node.value) if node is not None and node.kind == "scalar" else None
    if match:
        file = match["file"].rstrip(".")
        if file not in skill.folder.files:
            yield problem("license-file", file, line=skill.line("license"))


def _plain(skill: Skill) -> bool:
    """Tell, without the schema, that the frontmatter can only be as the profile wants it (most are)."""
    name = skill.field("name")
    if not _PORTABLE_NAME.fullmatch(name) or "claude" in name or "anthropic" in name:
        return False
    for key, node in skill.fields.items():
        if key == "metadata" and node.kind == "map":
            if any(value.kind != "scalar" or kind_of(value) != "string" for _, value in node.pairs):
                return False
        elif node.kind != "scalar" or kind_of(node) != "string":
            return False
    return True


@lru_cache(maxsize=1)
def profile() -> Draft202012Validator:
    """Return the validator of ``frontmatter.schema.json``."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads((SCHEMAS / "frontmatter.schema.json").read_text(encoding="utf-8")))


def _check_profile(skill: Skill) -> Iterator[Problem]:
    fields = list(skill.fields.items())[:MAX_FIELDS]
    data = {key: _data(skill.frontmatter, node, [MAX_NODES, MAX_DEPTH]) for key, node in fields}
    for error in profile().iter_errors(data):
        name = error.schema.get("x-rule", "") if isinstance(error.schema, dict) else ""
        if name not in rules() or rules()[name].clients:
            continue
        where = [str(part) for part in error.absolute_path]
        detail = where[-1] if len(where) > 1 else str(error.instance)[:80]
        yield problem(name, detail, line=_line(skill, where))


def _line(skill: Skill, where: list[str]) -> int:
    node = skill.fields.get(where[0]) if where else None
    if len(where) > 1 and node is not None:
        for key, _ in node.pairs:
            if key.value == where[1]:
                return key.line + 2
    return skill.line(where[0]) if where else 1


def _data(document: Document, node: Node, budget: list[int]) -> Any:
    """Return a node as the data that JSON Schema knows; ``budget`` bounds what aliases may multiply."""
    node = document.resolve(node)
    budget[0] -= 1
    if budget[0] < 0 or budget[1] <= 0:
        return None
    inner = [budget[0], budget[1] - 1]
    data: Any
    if node.kind == "seq":
        data = [_data(document, item, inner) for item in node.items]
    elif node.kind == "map":
        data = {key.value: _data(document, value, inner) for key, value in node.pairs}
    else:
        data = _scalar(node)
    budget[0] = inner[0]
    return data


def _scalar(node: Node) -> Any:
    kind = kind_of(node)
    if kind == "null":
        return None
    if kind == "boolean":
        return node.value.lower() == "true"
    return float(shown_value(node)) if kind == "number" else node.value
