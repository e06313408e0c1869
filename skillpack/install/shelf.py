"""One folder of installed skills: what lies in it, and how a skill is put in and taken out whole.

A skill is built in a hidden folder beside its place and moved there by a rename, so that no
client ever reads a part of one. What a user wrote is copied to a backup before it is replaced.
Whoever looks and then acts does both while the folder is ``held``.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from skillpack.install import record, tree
from skillpack.install.home import home
from skillpack.install.record import Record

Kind = Literal["absent", "copy", "link", "foreign"]
STAGE = ".agentjet-skills-"

ATTEMPTS = 100
"""How often a folder is made again that others remove meanwhile."""


@dataclass(frozen=True)
class Found:
    """What lies in a skill's place.

    ``copy`` and ``link`` were installed by us; ``edits`` are the paths in a copy that somebody has
    changed, added or removed since. ``foreign`` is anything else, and ``why`` says what.
    """

    path: Path
    kind: Kind
    record: Record | None = None
    edits: tuple[str, ...] = ()
    why: str = ""


def look(folder: Path, name: str) -> Found:
    """Return what lies in the place of the skill ``name``. Raises OSError."""
    path = folder / name
    if path.is_symlink():
        known = record.read_link(folder, name)
        if known is not None:
            return Found(path, "link", known)
        return Found(path, "foreign", why=f"it is a link to {path.readlink()} that `skills` has not made")
    if not path.exists():
        return Found(path, "absent")
    if not path.is_dir():
        return Found(path, "foreign", why="it is a file")
    known = record.read(record.copy_record(path))
    if known is None:
        return Found(path, "foreign", why="`skills` has not installed it")
    now = tree.fingerprints(path)
    changed = {file for file in known.files.keys() | now.keys() if known.files.get(file) != now.get(file)}
    modes = set(known.executable) ^ set(tree.executables(path)) if known.executable is not None else set()
    edits = sorted(changed | modes)
    return Found(
        path, "copy", known, tuple(edits), why=f"edited since it was installed: {tree.listed(edits)}" if edits else ""
    )


def installed(folder: Path) -> list[Found]:
    """Return the skills in a folder that we have installed, by name. Raises OSError."""
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    found = [look(folder, name) for name in names if not name.startswith(".")]
    return [one for one in found if one.kind in ("copy", "link")]


def put_copy(folder: Path, name: str, source: Path, new: Record) -> None:
    """Put a copy of ``source``, with its record, in the place of ``name``; what was there is gone.

    The folder must be ``held``, here and below. Raises OSError.
    """

    def build(stage: Path) -> None:
        tree.copy(source, stage)
        kept = replace(new, files=tree.fingerprints(stage), executable=tree.executables(stage))
        record.write(record.copy_record(stage), kept)

    _swap(folder, name, build)
    record.forget_link(folder, name)


def put_link(folder: Path, name: str, source: Path, new: Record) -> None:
    """Put a link to ``source`` in the place of ``name``, and its record beside it. Raises OSError.

    The record comes first, beside that of the link before: each counts for the link that it names alone.
    """
    record.write(record.next_link_record(folder, name), replace(new, link=os.fspath(source)))
    _swap(folder, name, lambda stage: stage.symlink_to(source, target_is_directory=True))
    record.settle_links(folder)


def take_out(folder: Path, name: str) -> None:
    """Remove the skill, its record, and the folder and its parent if nothing is left in them. Raises OSError."""
    stage = _stage(folder, name)
    try:
        (folder / name).rename(stage / "gone")
    finally:
        shutil.rmtree(stage)
    record.forget_link(folder, name)
    _remove_empty(folder, folder.parent)


def back_up(path: Path) -> Path:
    """Copy what lies at ``path``, links as links, into a folder of its own where no client looks; return that.

    Raises OSError.
    """
    state = Path(os.environ.get("XDG_STATE_HOME") or home() / ".local" / "state")
    backups = state / "agentjet-skills" / "backups"
    backups.mkdir(parents=True, exist_ok=True)
    now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    backup = Path(tempfile.mkdtemp(prefix=f"{path.name}-{now}-", dir=backups)) / path.name
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, backup, symlinks=True)
        else:
            shutil.copy2(path, backup, follow_symlinks=False)
    except BaseException:  # half a backup is none
        shutil.rmtree(backup.parent)
        raise
    return backup


def _swap(folder: Path, name: str, build: Callable[[Path], None]) -> None:
    """Build the new content beside the place of ``name``, then exchange it for what is there."""
    place = folder / name
    stage = _stage(folder, name)
    try:
        build(stage / "new")
        if os.path.lexists(place):
            place.rename(stage / "old")
        (stage / "new").rename(place)
    finally:
        _close(stage, place)


def _close(stage: Path, place: Path) -> None:
    """Remove a stage, but first put back what was moved into it from a place that nothing has come into."""
    if os.path.lexists(stage / "old") and not os.path.lexists(place):
        (stage / "old").rename(place)
    shutil.rmtree(stage)


def _stage(folder: Path, name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"{STAGE}{name}.", dir=folder))


def leftovers(folder: Path) -> list[Path]:
    """Return what a run that was killed has left: stages, and records of links that do not stand. Raises OSError."""
    return [*sorted(folder.glob(f"{STAGE}*")), *record.stale_links(folder)]


def settle(folder: Path) -> None:
    """Undo what a run that was killed had begun. Raises OSError."""
    if leftovers(folder):
        with held(folder):
            pass


def _recover(folder: Path) -> None:
    """Put back what a run that was killed had moved away to replace it, and remove what it has left."""
    for stage in folder.glob(f"{STAGE}*"):
        _close(stage, folder / stage.name.removeprefix(STAGE).rpartition(".")[0])
    record.settle_links(folder)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other installers out of a folder, and clear up after one that was killed.

    The folder is made if need be; what was made is removed again if nothing has come into it.
    """
    missing = [parent for parent in (folder, *folder.parents) if not os.path.lexists(parent)]
    with ExitStack() as last:
        last.callback(os.close, _lock(folder))
        last.callback(_remove_empty, *missing)
        _recover(folder)
        yield


def _lock(folder: Path) -> int:
    """Return a locked handle of a folder, which is made if need be. Raises OSError."""
    for _ in range(ATTEMPTS):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # whoever emptied it, or the folder above, has just removed that
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if folder.exists() and os.path.samestat(os.fstat(handle), folder.stat()):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # it was removed while we waited
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(folder))


def _remove_empty(*folders: Path) -> None:
    """Remove folders that nothing is in, one after the other, up to the first that has something or is a link."""
    for folder in folders:
        try:
            if folder.is_symlink():
                return
            folder.rmdir()
        except OSError:
            return
