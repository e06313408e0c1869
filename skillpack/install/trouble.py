"""Turn what the system refuses into one line that mends it."""

from __future__ import annotations

import errno
import os
import pwd
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skillpack.install.itself import skills
from skillpack.script import ScriptError, Unavailable


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """Raise what the system refuses within the context, while ``folder`` is being written, as an Unavailable."""
    try:
        yield
    except OSError as error:
        raise explain(error, folder) from error


def explain(error: OSError, folder: Path) -> ScriptError:
    """Return what to tell the user about an error that came while ``folder`` was being written."""
    path = Path(os.fsdecode(error.filename)) if error.filename else folder
    reason = error.strerror or str(error)
    wrong = f"{path} cannot be written: {reason}"
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    quoted = shlex.quote(str(existing))
    if error.errno == errno.EROFS:
        hint = skills("install", "--scope", "project")
        return Unavailable(wrong, expected="a folder on a file system that can be written", hint=hint)
    if error.errno in (errno.EACCES, errno.EPERM):
        owner = existing.stat().st_uid
        if owner != os.geteuid():
            hint = f'sudo chown -R "$(id -un)" {quoted}'
            return Unavailable(wrong, expected=f"{existing} to be yours; it belongs to {_user(owner)}", hint=hint)
        return Unavailable(wrong, expected="permission to write there", hint=f"chmod u+rwx {quoted}")
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        blocking = next((parent for parent in (path, *path.parents) if os.path.lexists(parent)), path)
        hint = f"mv {shlex.quote(str(blocking))} {shlex.quote(f'{blocking}.before')}"
        return Unavailable(wrong, expected=f"{blocking} to be a folder", hint=hint)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Unavailable(wrong, expected="room on the disk", hint=f"df -h {quoted}")
    return Unavailable(wrong, expected="a folder that can be written", hint=f"ls -ld {quoted}")


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
