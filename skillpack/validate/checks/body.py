"""The body's length, and paths that exist on the author's machine only."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, problem

MAX_LINES = 500
MAX_TOKENS = 5000
MAX_PATHS = 20
"""Different paths of machines that are told of in one file."""

_MACHINE = re.compile(
    r"(?<![\w/.~}])(?:/home/(?P<home>[a-z_][\w.-]{0,60})|(?:/mnt/[a-z])?/Users/(?P<mac>[A-Za-z][\w.-]{0,60})"
    r"|[A-Z]:\\{1,2}Users\\{1,2}(?P<windows>[\w.-]{1,60}))[/\\]"
)
_NOBODY = re.compile(
    r"(?:user(?:name)?|you(?:r.*)?|my(?:name|user|self)?|me|name|someone|somebody|foo|bar|alice|bob|jane|john|dev(?:eloper)?|example|shared"
    r"|public|ubuntu|runner|node|agent|app|admin|test|root|data|server\d*|work(?:space)?|projects?|x+|\w*[_-]?user(?:name)?)$",
    re.IGNORECASE,
)


def tokens(text: str) -> int:
    """Estimate the tokens of a text: a quarter of its ASCII characters, and each other character."""
    ascii_characters = len(text.encode("ascii", "ignore"))
    return ascii_characters // 4 + len(text) - ascii_characters


def check(skill: Skill) -> Iterator[Problem]:
    """Yield problems of the body's length and of machine paths."""
    main, line = skill.folder.file_name, skill.body_line + 1
    body = skill.body
    if not body.strip():
        yield problem("body-empty", line=line, file=main)
        return
    lines = skill.source.text.count("\n") + 1
    if lines > MAX_LINES:
        yield problem("body-lines", f"{lines} lines", line=MAX_LINES + 1, file=main)
    count = tokens(body)
    if count > MAX_TOKENS:
        yield problem("body-tokens", f"about {count} tokens", line=line, file=main)
    for file in (main, *(file for file in skill.folder.files if file.startswith(("references/", "scripts/")))):
        text = skill.text(file)
        if "/home/" in text or "/Users/" in text or "\\Users\\" in text:
            yield from _machine_paths(file, text)


def _machine_paths(file: str, text: str) -> Iterator[Problem]:
    told: set[str] = set()
    for match in _MACHINE.finditer(text):
        person = match["home"] or match["mac"] or match["windows"]
        if len(told) < MAX_PATHS and not _NOBODY.match(person) and match[0] not in told:
            told.add(match[0])
            yield problem("machine-path", match[0], line=text.count("\n", 0, match.start()) + 1, file=file)
