"""Turn what the system refuses into one line that mends it."""

from __future__ import annotations

import errno
import os
import pwd
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from skillpack.install.itself import skills
from skillpack.script import ScriptError, Unavailable


@contextmanager
def told(folder: Path, command: Sequence[str]) -> Iterator[None]:
    """Raise what the system refuses within the context, while ``folder`` is being written, as an Unavailable.

    ``command`` are the words after ``skills`` that a user could give again for the project instead.
    """
    try:
        yield
    except OSError as error:
        raise explain(error, folder, command) from error


def explain(error: OSError, folder: Path, command: Sequence[str]) -> ScriptError:
    """Return what to tell the user about an error that came while ``folder`` was being written."""
    path = Path(os.fsdecode(error.filename)) if error.filename else folder
    reason = error.strerror or str(error)
    wrong = f"{path}: {reason}"
    existing = next(parent for parent in (path, *path.parents) if os.path.lexists(parent))
    in_project = skills(*command, "--scope", "project")
    quoted = shlex.quote(str(existing))
    if error.errno == errno.EROFS:
        hint = in_project
        return Unavailable(wrong, expected="a folder on a file system that can be written", hint=hint)
    if error.errno in (errno.EACCES, errno.EPERM):
        owner = existing.lstat().st_uid
        if owner != os.geteuid():
            hint = f'sudo chown {_depth(existing)}"$(id -un)" {quoted}'
            if existing == Path.home() or existing in Path.home().parents:
                hint = in_project
            return Unavailable(wrong, expected=f"{existing} to be yours; it belongs to {_user(owner)}", hint=hint)
        return Unavailable(wrong, expected="permission to write there", hint=f"chmod u+rwx {quoted}")
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        hint = f"mv {quoted} {shlex.quote(f'{existing}.before')}"
        return Unavailable(wrong, expected=f"{existing} to be a folder", hint=hint)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Unavailable(wrong, expected="room on the disk", hint=f"df -h {quoted}")
    return Unavailable(wrong, expected="a folder that can be written", hint=f"ls -ld {quoted}")


def _depth(folder: Path) -> str:
    """Return the option that changes all below, if the folder is one of a client's own."""
    return "-R " if {".agents", ".claude"} & set(folder.parts) else ""


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
