"""Read a piece of shell as far as a lint needs it: the words of its simple commands, and where each runs.

This is no shell: loops, functions and substitutions are passed over, not run. What cannot be told
from the text alone (a folder in a variable) is None and gives no reason to complain.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from skillpack.blueprint.paths import at_home

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")
_HERE = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")


@cache
def shell_words() -> dict[str, Any]:
    """Return ``shell.yaml`` as it is."""
    data: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "shell.yaml").read_text(encoding="utf-8"))
    return data


@dataclass(frozen=True)
class Simple:
    """A simple command: its words without assignments, prefixes and redirections.

    ``folder`` is where it runs (None: not known), ``settled`` whether PATH is still the one that
    the run gives it.
    """

    words: tuple[str, ...]
    folder: Path | None
    settled: bool


def simple_commands(script: str, folder: Path, variables: dict[str, str]) -> Iterator[Simple]:
    """Yield the simple commands of ``script``, which starts in ``folder``; ``$name`` of ``variables`` is filled in.

    Text that cannot be read as shell yields nothing.
    """
    here: Path | None = folder
    settled = True
    for tokens in _split(_filled(_without_documents(script), variables)):
        words, sets = _command(tokens)
        if "PATH" in sets:
            settled = False
        if not words:
            continue
        yield Simple(tuple(words), here, settled)
        if words[0] in ("cd", "pushd"):
            here = _into(here, words[1:])
        exports_path = words[0] == "export" and any(word.startswith("PATH=") for word in words)
        settled = settled and not exports_path and words[0] not in shell_words()["environment"]


def _without_documents(script: str) -> str:
    """Return a script without the lines of its here-documents, which are no commands."""
    kept: list[str] = []
    end = ""
    for line in script.replace("\\\n", " ").splitlines():
        if end:
            end = "" if line.strip() == end else end
            continue
        kept.append(line)
        if found := _HERE.search(line):
            end = found[2]
    return "\n".join(kept)


def _filled(script: str, variables: dict[str, str]) -> str:
    """Return a script with variables replaced by their values, as the shell does before it splits words."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: variables.get(found[1] or found[2], found[0]), script)


def _split(script: str) -> Iterator[list[str]]:
    """Yield the tokens of each command, cut at ``;``, ``&``, ``|``, parentheses and line ends."""
    lexer = shlex.shlex(script, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    command: list[str] = []
    comment = False
    try:
        for token in lexer:
            if set(token) <= set("();|&\n"):
                yield command
                command, comment = [], comment and "\n" not in token
            elif token.startswith("#"):
                comment = True
            elif not comment:
                command.append(token)
    except ValueError:  # a quote that is not closed
        return
    yield command


def _command(tokens: list[str]) -> tuple[list[str], set[str]]:
    """Return the words of a command as the program behind prefixes gets them, and the variables set for it."""
    words = _without_redirections(tokens)
    sets: set[str] = set()
    while words:
        if words[0] in shell_words()["reserved"]:
            words = words[1:]
        elif found := _ASSIGNMENT.match(words[0]):
            sets.add(found[1])
            words = words[1:]
        elif words[0] in shell_words()["prefixes"] and len(words) > 1:
            words = _behind_prefix(words)
        else:
            break
    return ([] if words and words[0] in shell_words()["compound"] else words), sets


def _without_redirections(tokens: list[str]) -> list[str]:
    words: list[str] = []
    skip = False
    for number, token in enumerate(tokens):
        follows = tokens[number + 1] if number + 1 < len(tokens) else ""
        if skip:
            skip = False
        elif set(token) <= set("<>&|"):
            skip = True  # the file, or the descriptor behind >&
        elif not (token.isdigit() and len(token) == 1 and follows[:1] in ("<", ">")):
            words.append(token)
    return words


def _behind_prefix(words: list[str]) -> list[str]:
    """Return the command that a program such as ``nice -n 10`` runs."""
    prefix, rest = shell_words()["prefixes"][words[0]], words[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in prefix.get("options", ()) else 1 :]
    return rest[prefix.get("arguments", 0) :]


def _into(folder: Path | None, words: list[str]) -> Path | None:
    target = next((word for word in words if not word.startswith("-")), "~")
    if folder is None or "$" in target or "`" in target:
        return None
    return folder / at_home(target)
