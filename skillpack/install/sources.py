"""Which skills a user means: by name those of this pack, by path anybody's."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from skillpack import __version__
from skillpack.install import mistakes, tree, trouble
from skillpack.install.card import FILE, Card, NotASkill, read_card
from skillpack.install.home import expand, home
from skillpack.install.itself import skills
from skillpack.install.record import OWN
from skillpack.pack import skills_dir
from skillpack.script import BadInput

BELOW = ("*", "skills/*", "*/skills/*", "*/*")
"""Where a repository keeps its skills, seen from its folder or the one above."""

HEAD = 1024
"""Bytes of a first line that are looked at."""


@dataclass(frozen=True)
class Source:
    """A skill that can be installed; ``origin`` is what its record will name as its source."""

    path: Path
    version: str
    origin: str

    @property
    def name(self) -> str:
        """The name of its folder, which it is installed under."""
        return self.path.name


def own_names() -> list[str]:
    """Return the names of the skills that this pack brings."""
    return sorted(folder.name for folder in skills_dir().iterdir() if (folder / FILE).is_file())


def own(name: str) -> Source | None:
    """Return the pack's skill of that name, or None."""
    path = skills_dir() / name
    return Source(path, __version__, OWN) if (path / FILE).is_file() else None


def find(arguments: Sequence[str]) -> list[Source]:
    """Return the skills that the arguments name, all of the pack's if there are none. Raises BadInput, Unavailable."""
    found = []
    for argument in arguments or own_names():
        try:
            found.append(_find(argument))
        except _NotThere:
            whole = mistakes.joined(arguments)
            if whole is None:
                raise
            raise BadInput(
                f"there is no {argument}", expected="quotes around a path with blanks", hint=skills("install", whole)
            ) from None
    return found


def again(origin: str, name: str) -> Source | None:
    """Return where an installed skill can be had anew, given its record's source; None if it is gone."""
    if origin == OWN:
        return own(name)
    try:
        return _at(Path(origin))
    except BadInput:
        return None


class _NotThere(BadInput):
    """There is nothing of that name."""


def _find(argument: str) -> Source:
    if os.sep not in argument and not argument.startswith((".", "~")):
        source = own(argument)
        if source is not None:
            return source
        if not Path(argument).exists():
            _refuse_name(argument)
    if not expand(argument).exists():
        fetch = mistakes.clone(argument)
        if fetch is not None:
            raise BadInput(f"{argument} is not on this machine", expected="the folder of a skill", hint=fetch)
    return _at(expand(argument))


def _refuse_name(argument: str) -> NoReturn:
    names = own_names()
    several = mistakes.several(argument, names)
    close = difflib.get_close_matches(argument.lower().replace("_", "-"), names, n=1)
    fetch = mistakes.clone(argument)
    raise _NotThere(
        f"there is no skill {argument!r} in this pack",
        expected=f"one of {', '.join(names)}, or the path of a skill's folder",
        hint=fetch or (skills("install", *several or close) if several or close else skills("list")),
    )


def _at(path: Path) -> Source:
    """Return the skill in a folder, if it is one that clients will read. Raises BadInput, Unavailable."""
    with trouble.told(path, ["install", str(path)]):
        return _read(Path(os.path.abspath(path)))  # noqa: PTH100 - resolve() would rename a linked folder


def _read(path: Path) -> Source:
    if not path.exists():
        close = mistakes.close_path(path)
        raise _NotThere(
            f"there is no {path}",
            expected="a skill's folder",
            hint=_command(close) if close else f"ls {_quoted(_existing(path))}",
        )
    if not path.is_dir():
        _refuse_file(path)
    if not (path / FILE).is_file():
        _refuse_folder(path)
    try:
        card = read_card(path)
    except NotASkill as error:
        raise BadInput(
            str(error),
            expected="a name and a description between two lines of ---",
            hint=skills("validate", path),
        ) from None
    _refuse_windows_lines(card)
    return Source(path, card.version, str(path))


def _refuse_file(path: Path) -> NoReturn:
    """Say that a file is no skill, and name the skill around it, or what makes one of it."""
    around = _skill_around(path)
    hint = _command(around) if (around / FILE).is_file() else mistakes.unpack(path) or skills("list")
    raise BadInput(f"{path} is a file", expected="the folder of a skill", hint=hint)


def _refuse_folder(path: Path) -> NoReturn:
    """Say why a folder is no skill, and name the one that was meant if there is one."""
    miswritten = next((entry.name for entry in path.iterdir() if entry.name.lower() == FILE.lower()), None)
    if miswritten:
        raise BadInput(
            f"{path} has a {miswritten}",
            expected=f"the spelling {FILE}: most clients pass over any other",
            hint=f"mv {_quoted(path / miswritten)} {_quoted(path / FILE)}",
        )
    below = sorted(found.parent for pattern in BELOW for found in path.glob(f"{pattern}/{FILE}"))
    meant = _skill_around(path)
    if below:
        hint = _command(*below)
    elif meant != path:
        hint = _command(meant)
    else:
        # nobody keeps a skill in the home folder itself or above it
        hint = skills("list") if path in (home(), *home().parents) else mistakes.begin(path)
    raise BadInput(f"{path} has no {FILE}", expected="the folder of a skill", hint=hint)


def _refuse_windows_lines(card: Card) -> None:
    """Refuse scripts that no Unix can start: their first line would name an interpreter with a carriage return."""
    scripts = {card.path / "scripts" / script for script in card.scripts}
    files = [card.path / name for name in tree.files(card.path) if not (card.path / name).is_symlink()]
    windows = [file for file in files if _is_windows(file, everywhere=file in scripts or file.name == FILE)]
    if windows:
        raise BadInput(
            f"{windows[0]} has Windows line endings"
            + (f", and so have {len(windows) - 1} more" if windows[1:] else ""),
            expected="lines that end with LF alone",
            hint=f"perl -pi -e 's/\\r$//' {' '.join(_quoted(file) for file in windows)}",
        )


def _is_windows(file: Path, *, everywhere: bool) -> bool:
    """Tell whether a file has lines that end with CRLF: ``everywhere``, or in the line that names its interpreter."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        first = stream.readline(HEAD)
        return (first.startswith(b"#!") and first.endswith(b"\r\n")) or (
            everywhere and b"\r\n" in first + stream.read()
        )


def _skill_around(path: Path) -> Path:
    """Return the nearest folder at or above ``path`` that is a skill, or ``path``'s own folder."""
    folders = [path, *path.parents]
    return next((folder for folder in folders if (folder / FILE).is_file()), path if path.is_dir() else path.parent)


def _existing(path: Path) -> Path:
    return next(parent for parent in path.parents if parent.is_dir())


def _command(*paths: Path) -> str:
    return skills("install", *paths)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
