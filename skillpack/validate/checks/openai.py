"""``agents/openai.yaml``, whose faults Codex passes over without a word."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, problem
from skillpack.validate.tree import Document, Node, read_yaml

FILE = "agents/openai.yaml"
LIMITS = {"display_name": 64, "short_description": 1024, "default_prompt": 1024}
_COLOR = re.compile(r"#[0-9A-Fa-f]{6}")


def check(skill: Skill) -> Iterator[Problem]:
    """Yield problems of the file that says how Codex shows the skill."""
    if FILE not in skill.folder.files:
        return
    document = read_yaml(skill.text(FILE).replace("\r\n", "\n"))
    if document.fault is not None or document.root is None or document.root.kind != "map":
        detail = document.fault.problem if document.fault else "it is not key: value lines"
        line = document.fault.line + 1 if document.fault else 1
        yield problem("openai-yaml", detail, line=line, file=FILE, clients=("codex",))
        return
    interface = document.value("interface")
    if interface is None:
        return
    if interface.kind != "map":
        yield _field("interface", "is not key: value lines", interface)
        return
    for key, value in interface.pairs:
        yield from _check_field(skill, document, key.value, document.resolve(value))


def _check_field(skill: Skill, document: Document, key: str, value: Node) -> Iterator[Problem]:
    if value.kind != "scalar":
        yield _field(key, "is not text", value)
    elif key in LIMITS and len(value.value) > LIMITS[key]:
        yield _field(key, f"has {len(value.value)} characters, Codex takes {LIMITS[key]}", value)
    elif key == "brand_color" and not _COLOR.fullmatch(value.value):
        yield _field(key, f"{value.value!r} is not #RRGGBB", value)
    elif key == "default_prompt" and f"${skill.name}" not in value.value:
        yield _field(key, f"does not name the skill as ${skill.name}", value)
    elif key in ("icon_small", "icon_large"):
        path = posixpath.normpath(value.value)
        if not path.startswith("assets/"):
            yield _field(key, f"{value.value} does not lie in assets/", value)
        elif path not in skill.folder.files:
            yield _field(key, f"{value.value} is not there", value)


def _field(key: str, detail: str, node: Node) -> Problem:
    return problem("openai-field", f"{key} {detail}", line=node.line + 1, file=FILE, clients=("codex",))
