"""Does anybody still write to a log? The kernel knows, where a file's age only lets one guess."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
SHARED = ("nfs", "cifs", "smb", "fuse", "lustre", "gpfs", "ceph", "9p", "beegfs", "virtiofs")
"""File systems whose files may be written by a process on another machine."""


def is_written(log: Path) -> bool | None:
    """Tell whether a process on this machine has ``log`` open for writing; None if that cannot be known.

    It cannot be known for another user's file (unless this is root), on a file system that
    machines share, and where there is no ``/proc``.
    """
    try:
        wanted = log.stat()
    except OSError:
        return None
    if not PROC.is_dir() or os.getuid() not in (0, wanted.st_uid) or _is_shared(wanted.st_dev):
        return None
    return any(_writes(process, wanted) for process in PROC.iterdir() if process.name.isdigit())


def _writes(process: Path, wanted: os.stat_result) -> bool:
    with suppress(OSError, ValueError, IndexError):
        for entry in (process / "fd").iterdir():
            with suppress(OSError):
                found = entry.stat()
                if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                    flags = (process / "fdinfo" / entry.name).read_text().split("flags:")[1].split()[0]
                    if int(flags, 8) & os.O_ACCMODE != os.O_RDONLY:
                        return True
    return False


def _is_shared(device: int) -> bool:
    """Tell whether a device number belongs to a network file system (``proc_pid_mountinfo(5)``)."""
    number = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError, ValueError, IndexError):
        for line in (PROC / "self/mountinfo").read_text(errors="replace").splitlines():
            if line.split()[2] == number:
                return line.split(" - ")[1].split()[0].startswith(SHARED)
    return False
