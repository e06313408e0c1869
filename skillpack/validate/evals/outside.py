"""Stand-ins for the places that scripts write to without asking, so that it can be seen what was written.

A write that the sandbox refuses leaves no trace if the script makes nothing of it. So bubblewrap
puts writable folders in the place of the skill, the temporary folders, shared memory and the
user's home. They hold what a program needs of the real ones, read-only; what lies in them
afterwards that did not before, the script has written.
"""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from skillpack.pack import PACKAGE
from skillpack.validate.evals.scratch import changes, inventory

SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
"""Folders that everybody may write to. Only what a program may need is to be seen in them."""

OPENED = (".cache", ".config", ".local", ".local/share", ".local/state")
"""Folders of a home that have a stand-in of their own: programs put their files there."""

COPY_LIMIT = 2**25
"""Bytes of a skill that is copied for each case; a larger one is read-only."""


class Outside:
    """The stand-ins of one case, in ``folder``. ``needed`` are paths that the script must find (its interpreter, …)."""

    def __init__(self, folder: Path, skill: Path, needed: Iterable[Path]) -> None:
        self._binds: list[tuple[str, Path, Path]] = []
        self._before: dict[Path, tuple[Path, Mapping[str, object]]] = {}
        self._folder = folder
        paths = [*needed, skill, PACKAGE.parent, *map(Path, (sys.prefix, sys.base_prefix))]
        paths += map(Path, filter(None, os.get_exec_path()))
        homes = list(_existing(_homes()))
        for place in _existing(SHARED):
            self._stand_in(place, _heads(place, [*paths, *homes]))
        for home in homes:
            self._stand_in(home, _folders(home), OPENED)
        self._copy(skill)

    def bwrap(self) -> list[str]:
        """Return the words that bubblewrap is to be told."""
        return [word for kind, source, target in self._binds for word in (kind, str(source), str(target))]

    def written(self) -> list[str]:
        """Return the paths that are not what they were, as the script knows them."""
        found = [
            str(place / path)
            for place, (stand_in, before) in self._before.items()
            for path in changes(before, inventory(stand_in))
        ]
        return sorted(found)

    def _stand_in(self, place: Path, shown: Iterable[Path], opened: Iterable[str] = ()) -> None:
        """Bind a new folder over ``place``, and in it the folders ``shown`` of it, read-only, but those ``opened``."""
        stand_in = self._new()
        inner: list[tuple[str, Path, Path]] = []
        pending = [*shown]
        while pending:
            folder = pending.pop()
            relative = folder.relative_to(place)
            if folder.is_symlink():
                (stand_in / relative).symlink_to(folder.readlink())
                continue
            (stand_in / relative).mkdir(parents=True, exist_ok=True)
            if relative.as_posix() in opened:
                with suppress(OSError):
                    pending += _folders(folder)
            else:
                inner.append(("--ro-bind", folder, folder))
        self._binds += [("--bind", stand_in, place), *inner]
        self._before[place] = stand_in, inventory(stand_in)

    def _copy(self, skill: Path) -> None:
        there = inventory(skill)
        if sum(size for _, size in there.values()) > COPY_LIMIT:
            return
        copy = self._new()
        try:
            shutil.copytree(skill, copy, symlinks=True, dirs_exist_ok=True)
        except (OSError, shutil.Error):  # it holds a pipe, or something that may not be read
            return
        self._binds.append(("--bind", copy, skill))
        self._before[skill] = copy, inventory(copy)

    def _new(self) -> Path:
        folder = self._folder / str(len(self._before))
        folder.mkdir(parents=True)
        return folder


def _existing(places: Iterable[Path]) -> Iterator[Path]:
    """Give the places that are folders, links resolved, each once, and never the root of all."""
    seen = {Path("/")}
    for place in places:
        folder = place.resolve()
        if folder not in seen and folder.is_dir() and os.access(folder, os.R_OK | os.X_OK):
            seen.add(folder)
            yield folder


def _homes() -> Iterator[Path]:
    """Give the home that the caller has, and that which the system knows of."""
    with suppress(RuntimeError):
        yield Path.home()
    with suppress(KeyError):
        yield Path(pwd.getpwuid(os.getuid()).pw_dir)


def _heads(place: Path, paths: Iterable[Path]) -> set[Path]:
    """Return the folders directly in ``place`` that hold any of the paths."""
    both = {*paths, *(path.resolve() for path in paths)}
    inside = [path.relative_to(place).parts for path in both if path.is_relative_to(place) and path != place]
    return {folder for folder in {place / parts[0] for parts in inside} if folder.is_dir()}


def _folders(parent: Path) -> list[Path]:
    """Return the folders directly in a folder, and links to folders."""
    return sorted(entry for entry in parent.iterdir() if entry.is_dir())
