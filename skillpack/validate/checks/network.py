"""Hosts that a skill's scripts talk to and its SKILL.md does not speak of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillpack.validate.checks.skill import SCRIPTS, Skill
from skillpack.validate.problems import Problem, problem

_HOST = re.compile(r"https?://(?P<host>[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8})")
_BEGINS = re.compile(r"(?:[\"'`=]|\b(?:curl|wget|http|iwr|irm)\b[^\n]{0,200})$")
"""In front of an address that a program uses: a text of its own, an assignment, or a command that fetches it."""

_NO_REQUEST = re.compile(
    r"(?i)refer+er|user.?agent|\becho\b|print|log(?:ger|ging)?\.|help\s*=|raise |license|schema|namespace|xmlns"
)
_NETWORK = re.compile(
    r"\b(?:urllib\.request|requests|httpx|aiohttp|http\.client|urlopen|curl|wget|fetch\(|axios|socket\.)"
)
_KNOWN_HOSTS = re.compile(
    r"(?:^|\.)(?:example\.(?:com|org|net)|json-schema\.org|w3\.org|schemas?\.\w+\.\w+|purl\.org)$"
    r"|(?:^|\.)(?:test|example|invalid|localhost|local|internal)$|\byour|^(?:127|10|192\.168|0\.0)\."
)
"""Hosts that nobody talks to: names of formats, reserved names, placeholders, and the network that one is in."""

_TEST = re.compile(r"(?:^|/)(?:tests?|evals|__tests__|fixtures)/|(?:^|/)test_[^/]*$|[._]test\.[a-z]+$")


def check(skill: Skill) -> Iterator[Problem]:
    """Yield for each script the first host that it addresses and SKILL.md does not name."""
    for file in skill.text_files:
        if file.endswith(SCRIPTS) and not _TEST.search(file):
            yield from _check_script(skill, file, skill.text(file))


def _check_script(skill: Skill, file: str, text: str) -> Iterator[Problem]:
    if "http" not in text or not _NETWORK.search(text):
        return
    told: set[str] = set()
    for match in _HOST.finditer(text):
        host = match["host"].lower()
        if host in told or _KNOWN_HOSTS.search(host):
            continue
        start = text.rfind("\n", 0, match.start()) + 1
        before = text[max(start, match.start() - 300) : match.start()]
        if before.lstrip().startswith(("#", "//", "*")) or not _BEGINS.search(before) or _NO_REQUEST.search(before):
            continue
        told.add(host)
        if not _spoken_of(skill, host):
            yield problem("safety-network", host, line=text.count("\n", 0, match.start()) + 1, file=file)
            return


def _spoken_of(skill: Skill, host: str) -> bool:
    """Tell whether SKILL.md names a host, the domain that it lies in, or that domain's own name as a word."""
    parts = host.split(".")
    domain = ".".join(parts[-2:])
    owner = parts[-2] if len(parts) > 1 else host
    return domain in skill.lowered or (
        len(owner) > 3 and re.search(rf"\b{re.escape(owner)}\b", skill.lowered) is not None
    )
