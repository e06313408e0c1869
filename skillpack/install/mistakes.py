"""What a user may have meant by an argument that is no skill: the line that would do it."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from skillpack.install.card import FILE
from skillpack.install.home import expand
from skillpack.install.itself import skills

ADDRESS = re.compile(r"^(?:(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:)")
"""How an address that git can clone begins."""

GITHUB_FOLDER = re.compile(r"^(https://github\.com/[^/]+/[^/]+)/(?:tree|blob)/[^/]+/(.*)$")
"""The page of a folder in a repository."""

SHORTHAND = re.compile(r"^[\w-]+/[\w.-]+$")
"""``owner/repository``, as `npx skills add` takes it."""

LIST = re.compile(r"[,;]\s*")


def clone(argument: str) -> str | None:
    """Return the line that fetches what an argument names by its address, and installs it; None if it is none."""
    folder = GITHUB_FOLDER.match(argument)
    address, inside = (folder[1], folder[2]) if folder else (argument, "")
    if SHORTHAND.match(argument) and not Path(argument.partition("/")[0]).exists():
        address = f"https://github.com/{argument}"
    if not ADDRESS.match(address):
        return None
    name = re.split(r"[/:]", address.rstrip("/"))[-1].removesuffix(".git")
    target = f"./{name}/{inside.removesuffix(FILE)}".rstrip("/")
    return f"{shlex.join(['git', 'clone', '--depth', '1', address, name])} && {skills('install', target)}"


def several(argument: str, known: Sequence[str]) -> list[str]:
    """Return the names in an argument that lists some of the ``known`` ones with commas, else none."""
    names = LIST.split(argument.strip(",; "))
    return names if len(names) > 1 and set(names) <= set(known) else []


def joined(arguments: Sequence[str]) -> str | None:
    """Return two or more arguments in a row that are one path with blanks in it, which wanted quotes."""
    for first in range(len(arguments)):
        for last in range(first + 2, len(arguments) + 1):
            path = " ".join(arguments[first:last])
            if expand(path).exists():
                return path
    return None


def unpack(file: Path) -> str | None:
    """Return the line that unpacks an archive, or gives a page a folder of its own, and installs that."""
    folder = file.with_name(re.sub(r"\.(zip|skill|tar\.\w+|tgz|md)$", "", file.name))
    if folder == file:
        return None
    quoted, source = shlex.quote(str(folder)), shlex.quote(str(file))
    if file.suffix in (".zip", ".skill"):
        do = f"python3 -m zipfile -e {source} {quoted}"
    elif file.suffix == ".md":
        if file.read_bytes()[:3] != b"---":
            return None
        do = f"mkdir -p {quoted} && mv {source} {shlex.quote(str(folder / FILE))}"
    else:
        do = f"mkdir -p {quoted} && tar -xf {source} -C {quoted}"
    return f"{do} && {skills('install', folder)}"


def close_path(path: Path) -> Path | None:
    """Return the path that is there and most like one that is not: its first missing folder or file is misspelt."""
    missing = next(folder for folder in (path, *path.parents) if folder.parent.is_dir())
    names = [entry.name for entry in os.scandir(missing.parent)]
    close = difflib.get_close_matches(missing.name, names, n=1)
    meant = missing.with_name(close[0]) / path.relative_to(missing) if close else None
    return meant if meant is not None and meant.exists() else None


def begin(folder: Path) -> str:
    """Return the line that gives a folder the file that makes it a skill, to be completed by the user."""
    write = ["printf", r"%s\n", "---", f"name: {folder.name}", 'description: "What it does. Use when ..."', "---"]
    return f"{shlex.join(write)} > {shlex.quote(str(folder / FILE))}"
