"""Turn what the system refuses into one line that mends it."""

from __future__ import annotations

import errno
import os
import pwd
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from skillpack.install.home import home
from skillpack.install.itself import skills
from skillpack.script import ScriptError, Unavailable


@contextmanager
def told(folder: Path, command: Sequence[str]) -> Iterator[None]:
    """Raise what the system refuses within the context, while ``folder`` is being written, as an Unavailable.

    ``command`` are the words after ``skills`` that a user could give again for another scope instead.
    """
    try:
        yield
    except OSError as error:
        raise explain(error, folder, command) from error


def explain(error: OSError, folder: Path, command: Sequence[str]) -> ScriptError:
    """Return what to tell the user about an error that came while ``folder`` was being written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    path = Path(os.fsdecode(error.filename)) if error.filename and not full else folder
    reason = error.strerror or str(error)
    wrong = f"{path}: {reason}"
    existing = next(parent for parent in (path, *path.parents) if os.path.lexists(parent))
    quoted = shlex.quote(str(existing))
    if full:
        return Unavailable(wrong, expected="room on the disk", hint=f"df -h {quoted}")
    if error.errno == errno.EROFS:
        return Unavailable(
            wrong, expected="a folder on a file system that can be written", hint=_in_another_scope(command)
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        owner = existing.lstat().st_uid
        if owner == os.geteuid():
            return Unavailable(wrong, expected="permission to use it", hint=f"chmod u+rwx {quoted}")
        hint = f'sudo chown {_depth(existing)}"$(id -un)" {quoted}'
        if existing == home() or existing in home().parents:
            hint = _in_another_scope(command)
        return Unavailable(wrong, expected=f"{existing} to be yours; it belongs to {_user(owner)}", hint=hint)
    dangling = next((link for link in (path, *path.parents) if link.is_symlink() and not link.exists()), None)
    if dangling is not None:
        target = dangling.parent / dangling.readlink()
        above = next(parent for parent in target.parents if parent.exists())
        return Unavailable(
            f"{dangling} is a link to {dangling.readlink()}, which is not there",
            expected="a folder, or a link to one",
            hint=f"mkdir -p {shlex.quote(str(target))}" if os.access(above, os.W_OK) else _put_aside(dangling),
        )
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return Unavailable(wrong, expected=f"{existing} to be a folder", hint=_put_aside(existing))
    return Unavailable(wrong, expected="a folder that can be written", hint=f"ls -ld {quoted}")


def _put_aside(path: Path) -> str:
    return f"mv {shlex.quote(str(path))} {shlex.quote(f'{path}.before')}"


def _in_another_scope(command: Sequence[str]) -> str:
    """Return the command for the project, or for the user if it was for the project."""
    if "--scope" not in command:
        return skills(*command, "--scope", "project")
    at = command.index("--scope")
    return skills(*command[:at], *command[at + 2 :])


def _depth(folder: Path) -> str:
    """Return the option that changes all below, if the folder is one of a client's own."""
    return "-R " if {".agents", ".claude"} & set(folder.parts) else ""


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
