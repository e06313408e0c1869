"""Fields of the frontmatter that no client checks, and that people rely on all the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillpack.validate.checks.skill import Skill
from skillpack.validate.clients.yaml12 import kind_of
from skillpack.validate.problems import Problem, problem

_LICENSE_FILE = re.compile(
    r"(?:\bin\s+|^)(?:the\s+)?[`'\"]?(?P<file>(?:[\w.-]+/)*(?:[\w-]+\.(?:txt|md|rst)|LICEN[CS]E[\w.-]*|COPYING[\w.-]*))"
)


def check(skill: Skill) -> Iterator[Problem]:
    """Yield problems of license, metadata and name."""
    yield from _check_license(skill)
    metadata = skill.fields.get("metadata")
    for key, value in metadata.pairs if metadata is not None and metadata.kind == "map" else ():
        if kind_of(skill.frontmatter.resolve(value)) != "string":
            yield problem("metadata-values", key.value, line=key.line + 2)
    name = skill.field("name")
    if not name.isascii():
        yield problem("name-ascii", name, line=skill.line("name"))
    if re.search("claude|anthropic", name, re.IGNORECASE):
        yield problem("name-reserved", name, line=skill.line("name"))


def _check_license(skill: Skill) -> Iterator[Problem]:
    node = skill.fields.get("license")
    if node is None:
        return
    line = skill.line("license")
    if node.kind != "scalar":
        yield problem("license-type", line=line)
        return
    match = _LICENSE_FILE.search(node.value)
    if match and not (skill.folder.path / match["file"].rstrip(".")).is_file():
        yield problem("license-file", match["file"].rstrip("."), line=line)
