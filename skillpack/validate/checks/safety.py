"""A short list of what a skill should not do, made for few false alarms (``safety.yaml``)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import yaml

from skillpack.validate.checks.commands import SHELLS
from skillpack.validate.checks.markdown import code_spans, scan
from skillpack.validate.checks.skill import PROSE, SCRIPTS, Skill
from skillpack.validate.problems import Problem, problem

_PATH = Path(__file__).parent.parent / "safety.yaml"
_HIDDEN = re.compile(
    "[\u202a-\u202e\u2066-\u2069]"  # bidirectional controls
    "|(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]+"  # tags, but for flags
    "|(?<=[A-Za-z])[\u200b\u2060\u2063\u2064]{4,}"  # a few are hints where to break a line
)
_SAID_NOT_TO = re.compile(
    r"(?i)\b(?:never|not|avoid|instead of|rather than|without|such as|e\.g\.|dangerous|destructive|harmful|malicious"
    r"|risky|unsafe|suspicious|forbidden|prohibited|disallow\w*|block(?:s|ed)?|den(?:y|ied|ies)|detect\w*"
    r"|flag(?:s|ged)?|warn\w*)\b|n['’]t\b"
)
"""A line with these words, or a list below it, speaks of a command and need not ask for it."""

_LISTED = re.compile(r"\s*(?:[-*+|]|\d{1,9}[.)])")
ABOVE = 600
"""Characters above a match in which it may be said what the text is about."""

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
_EXPANSION = re.compile(r"\$\{\w{1,60}:-([^}\n]{0,200})\}|\$\{?\w{1,60}\}?")
_TESTED = re.compile(
    r"(?:\[\[?|\btest)[ \t]+(?:-[nzdefL]|!)[^\n$]{0,20}\$\{?(?P<name>\w{1,60})|\$\{(?P<asked>\w{1,60}):?[?]"
)
_GIVEN = re.compile(
    r"(?:^|[\s;&|(])(?P<name>\w{1,60})=(?P<value>[^\n;]{0,200})"
    r"|\bfor[ \t]{1,9}(?P<each>\w{1,60})[ \t]{1,9}in[ \t]{1,9}(?P<among>[^\n;]{0,200})"
)
MAX_LOOKED = 200
"""Matches of one pattern in one file that are looked at for a real one."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A pattern under a rule, where it is looked for, and what takes it back."""

    rule: str
    where: str
    hint: tuple[str, ...]
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None
    unless_above: re.Pattern[str] | None
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
            _joined(entry["pattern"], re.MULTILINE | re.IGNORECASE * (entry["where"] == "text")),
            *(_joined(entry[key]) if key in entry else None for key in ("unless", "unless_above", "unless_said")),
        )
        for entry in entries
    )


def _joined(lines: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern whose alternatives stand on lines of their own."""
    return re.compile(re.sub(r"\s*\n?\s+(?=\|)", "", lines), flags)


def check(skill: Skill) -> Iterator[Problem]:
    """Yield the findings in SKILL.md and the skill's other text files, one for each rule and file."""
    said = skill.field("description") + "\n" + skill.field("compatibility")
    for file in skill.text_files:
        text = skill.text(file)
        yield from _check_hidden(file, text)
        yield from _check_signatures(skill, file, text, said)
        if file.endswith(SCRIPTS):
            yield from _check_network(skill, file, text)


def _check_hidden(file: str, text: str) -> Iterator[Problem]:
    match = None if text.isascii() else _HIDDEN.search(text)
    if match:
        character = match[0][0]
        yield problem(
            "safety-hidden-text", f"U+{ord(character):04X}", line=text.count("\n", 0, match.start()) + 1, file=file
        )


def _check_signatures(skill: Skill, file: str, text: str, said: str) -> Iterator[Problem]:
    script, prose = file.endswith(SCRIPTS), file.endswith(PROSE)
    for signature in signatures():
        if not any(map(text.__contains__, signature.hint)):
            continue
        looked = text
        if signature.where in ("code", "commands") and not script:
            looked = _commands(skill, file, text, quoted=signature.where == "commands") if prose else ""
        elif signature.where == "text" and not prose:
            continue
        if signature.unless_said and signature.unless_said.search(said):
            continue
        for match in islice(signature.pattern.finditer(looked), MAX_LOOKED):
            if _harmless(signature, match, looked):
                continue
            start = match.start("at") if match.groupdict().get("at") else match.start()
            shown = looked[start : match.end()].strip() if signature.rule != "safety-secret" else match[0][:8] + "…"
            yield problem(signature.rule, shown[:80], line=looked.count("\n", 0, start) + 1, file=file)
            break


def _harmless(signature: Signature, match: re.Match[str], text: str) -> bool:
    start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
    line = text[start : end if end >= 0 else len(text)]
    if signature.where in ("code", "commands") and line.lstrip().startswith(("#", "//")):
        return True
    above = text[max(0, match.start() - ABOVE) : match.end()]
    if signature.unless and signature.unless.search(line):
        return True
    if signature.unless_above and signature.unless_above.search(above + line):
        return True
    if signature.rule == "safety-secret":
        return not _random(match[0])
    if signature.rule == "safety-rm-variable":
        return _cannot_be_empty(match["name"] or match["bare"], text)
    return False


def _cannot_be_empty(name: str, text: str) -> bool:
    """Tell whether a shell text tests a variable, or gives it a value that is a path also where its parts are empty."""
    tested, values = _variables(text)
    return name in tested or (name in values and all(re.search(r"mktemp|[A-Za-z0-9]", value) for value in values[name]))


@lru_cache(maxsize=4)
def _variables(text: str) -> tuple[frozenset[str], dict[str, list[str]]]:
    """Return the variables that a shell text tests, and the values that it gives to others, without their variables."""
    tested = frozenset(match["name"] or match["asked"] for match in _TESTED.finditer(text))
    values: dict[str, list[str]] = {}
    for match in _GIVEN.finditer(text):
        plain = _EXPANSION.sub(lambda expansion: expansion[1] or "", match["value"] or match["among"] or "")
        values.setdefault(match["name"] or match["each"], []).append(plain)
    return tested, values


def _random(text: str) -> bool:
    """Tell whether a token looks drawn at random: not a placeholder such as xxxx or EXAMPLE."""
    if re.search(r"example|xxxx|your|dummy|fake|test|sample|placeholder|1234567|abcdef|\.\.\.", text, re.IGNORECASE):
        return False
    counted = Counter(text)
    entropy = -sum(count / len(text) * math.log2(count / len(text)) for count in counted.values())
    return entropy > 3.2


def _commands(skill: Skill, file: str, text: str, *, quoted: bool) -> str:
    """Return a Markdown file's text with everything but its commands emptied, line for line.

    Commands are the lines of shell blocks and, if ``quoted``, what stands in backticks with a blank in it, but for
    lines and lists that warn of it.
    """
    main = file == skill.folder.file_name
    body, first = (skill.body, skill.body_line) if main else (text.replace("\r\n", "\n"), 0)
    lines = [""] * (text.count("\n") + 1)
    if quoted:
        warned = False
        for number, line in enumerate(body.split("\n"), first):
            if line.strip() and not _LISTED.match(line):
                warned = _SAID_NOT_TO.search(line) is not None
            if "`" in line and not warned and not _SAID_NOT_TO.search(line):
                spans = (line[opening.end() : closing.start()] for opening, closing in code_spans(line))
                lines[number] = "; ".join(span for span in spans if " " in span)
    for code in scan(body).codes:
        shell = code.language in SHELLS
        lines[first + code.line : first + code.line + len(code.lines)] = code.lines if shell else [""] * len(code.lines)
    return "\n".join(lines)


def _check_network(skill: Skill, file: str, text: str) -> Iterator[Problem]:
    """Yield the first host that a script addresses and SKILL.md does not speak of."""
    if "http" not in text or not _NETWORK.search(text) or _TEST.search(file):
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
