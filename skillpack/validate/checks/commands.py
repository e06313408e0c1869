"""Commands in the fenced blocks of SKILL.md: do they fit the scripts that they call."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillpack.validate.checks.markdown import scan
from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, problem

SHELLS = frozenset({"", "bash", "sh", "shell", "zsh", "console", "shell-session"})
_OPTION = re.compile(r"--[A-Za-z][\w-]*")
_DECLARES = re.compile(
    r"add_argument\(|\boption\(|Option\(|getopts|parseArgs|argv|\$\{?1\b|OptionParser|docopt|\"--|'--|--[\w-]+\)"
)
_OWN_PARSER = re.compile(r"(?<!\w)(?:argparse\.)?ArgumentParser\(")
_ADDED_TO = re.compile(
    r"parse_known_args|\bparents\s*=|REMAINDER|fromfile_prefix|add_arguments?_to|\.add_argparse_args"
    r"|\w\([^()\n]{0,80}(?<![\w.])(?:parser|sub_?parsers?|ap|p)(?![\w.=])[^()\n]{0,80}\)"
)
"""Where a parser is given away, or takes what it does not know."""

_IMPORTS = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.MULTILINE)
_ENDS = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "2>", "<"})


@dataclass(frozen=True, slots=True)
class Call:
    """A script called in a fenced block: its file, the words behind it, and the line (from 0) of the body."""

    script: str
    words: tuple[str, ...]
    line: int
    bare: bool
    """Whether the script is the command itself, without an interpreter."""


def calls(skill: Skill, scripts: Sequence[str]) -> Iterator[Call]:
    """Yield the calls of the skill's scripts in the shell blocks of SKILL.md.

    A block without a language may be anything: there, a script in front is a command only with ``$`` or ``./``.
    """
    for code in scan(skill.body).codes:
        if code.language not in SHELLS:
            continue
        number = 0
        while number < len(code.lines):
            line, start = code.lines[number], code.line + number
            while line.rstrip().endswith("\\") and number + 1 < len(code.lines):
                number += 1
                line = line.rstrip()[:-1] + " " + code.lines[number].strip()
            number += 1
            if "scripts/" in line:
                command = line.strip()
                known = bool(code.language) or command.startswith(("$ ", "./", "sudo "))
                for call in _calls_of(command.removeprefix("$ "), start, scripts):
                    if known or not call.bare:
                        yield call


def _calls_of(line: str, number: int, scripts: Sequence[str]) -> Iterator[Call]:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return
    for place, word in enumerate(words):
        file = next((script for script in scripts if word == script or word.endswith("/" + script)), None)
        if file is None:
            continue
        behind = words[place + 1 :]
        end = next((index for index, other in enumerate(behind) if other in _ENDS or other.endswith(";")), len(behind))
        before = words[:place]
        bare = all(re.fullmatch(r"\w+=.*", other) for other in before) or (bool(before) and before[-1] in _ENDS)
        yield Call(file, tuple(behind[:end]), number, bare)
        return


def check_commands(skill: Skill, scripts: Sequence[str]) -> Iterator[Problem]:
    """Yield problems of calls with an option that the script does not have, or that cannot start."""
    told: set[tuple[str, str]] = set()
    for call in calls(skill, scripts):
        line = skill.body_line + call.line + 1
        text = skill.text(call.script)
        if call.bare and (call.script, "") not in told:
            told.add((call.script, ""))
            fault = _start_fault(skill, call.script, text)
            if fault:
                yield problem("script-shebang", f"{call.script} {fault}", line=line)
        if not tells_its_options(call.script, text):
            continue
        for word in call.words:
            option = _OPTION.match(word)
            if option and option[0] not in text and (call.script, option[0]) not in told:
                if option[0] in ("--help", "--version") or _spelled_otherwise(option[0], text):
                    continue
                told.add((call.script, option[0]))
                yield problem("command-unknown", f"{call.script} {option[0]}", line=line)


def _start_fault(skill: Skill, script: str, text: str) -> str:
    if not text.startswith("#!"):
        return "has no shebang line"
    return "" if os.access(skill.folder.path / script, os.X_OK) else "is not executable"


def tells_its_options(script: str, text: str) -> bool:
    """Tell whether all options stand in the script itself, and nothing that it imports may add to them."""
    if not _DECLARES.search(text) or not script.endswith((".py", ".sh", ".bash", ".js", ".mjs")):
        return False
    if not script.endswith(".py"):
        return "source " not in text and "import " not in text and "require(" not in text
    if _OWN_PARSER.search(text):
        return not _ADDED_TO.search(text)
    known = {*sys.stdlib_module_names, "click", "typer", "yaml", "requests", "httpx", "numpy", "pandas", "rich"}
    return all(name.split(".")[0] in known for name in _IMPORTS.findall(text))


def _spelled_otherwise(option: str, text: str) -> bool:
    """Tell whether a framework makes the option from a parameter's name, or from a pair such as --x/--no-x."""
    name = option[2:].replace("-", "_")
    return re.search(rf"\b{re.escape(name.removeprefix('no_'))}\b", text) is not None and (
        "typer" in text or "fire" in text or option.startswith("--no-")
    )
