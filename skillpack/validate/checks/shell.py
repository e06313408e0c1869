"""Shell commands in a skill's Markdown, and what a shell text knows of its variables."""

from __future__ import annotations

import re
from functools import lru_cache

from skillpack.validate.checks.commands import SHELLS
from skillpack.validate.checks.markdown import code_spans, scan
from skillpack.validate.checks.skill import Skill

_SAID_NOT_TO = re.compile(
    r"(?i)\b(?:never|not|avoid|instead of|rather than|without|such as|e\.g\.|dangerous|destructive|harmful|malicious"
    r"|risky|unsafe|suspicious|forbidden|prohibited|disallow\w*|block(?:s|ed)?|den(?:y|ied|ies)|detect\w*"
    r"|flag(?:s|ged)?|warn\w*)\b|n['’]t\b"
)
"""A line with these words, or a list below it, speaks of a command and need not ask for it."""

_LISTED = re.compile(r"\s*(?:[-*+|]|\d{1,9}[.)])")
_EXPANSION = re.compile(r"\$\{\w{1,60}:-([^}\n]{0,200})\}|\$\{?\w{1,60}\}?")
_TESTED = re.compile(
    r"(?:\[\[?|\btest)[ \t]+(?:-[nzdefL]|!)[^\n$]{0,20}\$\{?(?P<name>\w{1,60})|\$\{(?P<asked>\w{1,60}):?[?]"
)
_GIVEN = re.compile(
    r"(?:^|[\s;&|(])(?P<name>\w{1,60})=(?P<value>[^\n;]{0,200})"
    r"|\bfor[ \t]{1,9}(?P<each>\w{1,60})[ \t]{1,9}in[ \t]{1,9}(?P<among>[^\n;]{0,200})"
)


def commands_in(skill: Skill, file: str, text: str, *, quoted: bool) -> str:
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


def cannot_be_empty(name: str, text: str) -> bool:
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
