"""A short list of what a skill should not do, made for few false alarms (``safety.yaml``)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from skillpack.validate.checks.commands import SHELLS
from skillpack.validate.checks.markdown import scan
from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, problem

_PATH = Path(__file__).parent.parent / "safety.yaml"
_SCRIPT = (".py", ".sh", ".bash", ".zsh", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".ps1", ".bat")
_PROSE = (".md", ".mdx", ".txt")
_HIDDEN = re.compile(
    "[\u202a-\u202e\u2066-\u2069]"  # bidirectional controls
    "|(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]+"  # tags, but for flags
    "|(?<=[A-Za-z])[\u200b\u2060\u2063\u2064]{4,}"  # a few are hints where to break a line
)
_HOST = re.compile(r"https?://(?P<host>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)")
_NETWORK = re.compile(
    r"\b(?:urllib\.request|requests|httpx|aiohttp|http\.client|urlopen|curl|wget|fetch\(|axios|socket\.)"
)
_KNOWN_HOSTS = re.compile(
    r"(?:^|\.)(?:example\.(?:com|org|net)|localhost|json-schema\.org|w3\.org|schemas?\.\w+\.\w+|purl\.org)$|^(?:127|10|192\.168|0\.0)\."
)


@dataclass(frozen=True, slots=True)
class Signature:
    """A pattern under a rule, where it is looked for, and what takes it back."""

    rule: str
    where: str
    hint: tuple[str, ...]
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None
    unless_said: re.Pattern[str] | None


@lru_cache(maxsize=1)
def signatures() -> tuple[Signature, ...]:
    """Return the list of ``safety.yaml``."""
    entries = yaml.safe_load(_PATH.read_text(encoding="utf-8"))
    return tuple(
        Signature(
            entry["rule"],
            entry["where"],
            tuple(entry["hint"]),
            re.compile(
                re.sub(r"\s*\n?\s+(?=\|)", "", entry["pattern"]),
                re.MULTILINE | re.IGNORECASE * (entry["where"] == "text"),
            ),
            re.compile(entry["unless"]) if "unless" in entry else None,
            re.compile(entry["unless_said"]) if "unless_said" in entry else None,
        )
        for entry in entries
    )


def check(skill: Skill) -> Iterator[Problem]:
    """Yield the findings in SKILL.md and the skill's other text files, one for each rule and file."""
    said = skill.field("description") + "\n" + skill.field("compatibility")
    for file in dict.fromkeys((skill.folder.file_name, *skill.folder.files)):
        script = file.endswith(_SCRIPT)
        if not script and not file.endswith((*_PROSE, ".json", ".yaml", ".yml", ".toml", ".cfg", ".env")):
            continue
        text = skill.text(file)
        yield from _check_hidden(file, text)
        yield from _check_signatures(skill, file, text, said)
        if script:
            yield from _check_network(skill, file, text)


def _check_hidden(file: str, text: str) -> Iterator[Problem]:
    match = None if text.isascii() else _HIDDEN.search(text)
    if match:
        character = match[0][0]
        yield problem(
            "safety-hidden-text", f"U+{ord(character):04X}", line=text.count("\n", 0, match.start()) + 1, file=file
        )


def _check_signatures(skill: Skill, file: str, text: str, said: str) -> Iterator[Problem]:
    code: str | None = text if file.endswith(_SCRIPT) else None
    for signature in signatures():
        if not any(map(text.__contains__, signature.hint)):
            continue
        looked = text
        if signature.where == "code":
            if code is None:
                code = _shell_blocks(skill, file, text) if file.endswith(_PROSE) else ""
            looked = code
        elif signature.where == "text" and not file.endswith(_PROSE):
            continue
        if signature.unless_said and signature.unless_said.search(said):
            continue
        for match in signature.pattern.finditer(looked):
            start = looked.rfind("\n", 0, match.start()) + 1
            line = looked[start : looked.find("\n", match.end()) if "\n" in looked[match.end() :] else len(looked)]
            if (signature.unless and signature.unless.search(line)) or _harmless(signature, match, looked, line):
                continue
            shown = match[0].strip() if signature.rule != "safety-secret" else match[0][:8] + "…"
            yield problem(signature.rule, shown[:80], line=looked.count("\n", 0, match.start()) + 1, file=file)
            break


def _harmless(signature: Signature, match: re.Match[str], text: str, line: str) -> bool:
    if line.lstrip().startswith(("#", "//")) and signature.where == "code":
        return True
    if signature.rule == "safety-secret":
        return not _random(match[0])
    if signature.rule == "safety-rm-variable":
        name = match["name"] or match["bare"]
        return re.search(rf"\b{name}=[\"']?(?:\$\(\s*mktemp|/[\w.-]+/)", text) is not None
    return False


def _random(text: str) -> bool:
    """Tell whether a token looks drawn at random: not a placeholder such as xxxx or EXAMPLE."""
    if re.search(r"example|xxxx|your|dummy|fake|test|sample|placeholder|1234567|abcdef|\.\.\.", text, re.IGNORECASE):
        return False
    counted = Counter(text)
    entropy = -sum(count / len(text) * math.log2(count / len(text)) for count in counted.values())
    return entropy > 3.2


def _shell_blocks(skill: Skill, file: str, text: str) -> str:
    """Return a Markdown file's text with everything but its shell blocks emptied, line for line."""
    main = file == skill.folder.file_name
    body, first = (skill.body, skill.body_line) if main else (text.replace("\r\n", "\n"), 0)
    lines = [""] * (text.count("\n") + 1)
    for code in scan(body).codes:
        if code.language in SHELLS:
            lines[first + code.line : first + code.line + len(code.lines)] = code.lines
    return "\n".join(lines)


def _check_network(skill: Skill, file: str, text: str) -> Iterator[Problem]:
    if "http" not in text or not _NETWORK.search(text):
        return
    for match in _HOST.finditer(text):
        host = match["host"].lower()
        start = text.rfind("\n", 0, match.start()) + 1
        comment = text[start : match.start()].lstrip().startswith(("#", "//", "*"))
        if comment or _KNOWN_HOSTS.search(host) or ".".join(host.split(".")[-2:]) in skill.source.text.lower():
            continue
        yield problem("safety-network", host, line=text.count("\n", 0, match.start()) + 1, file=file)
        return
