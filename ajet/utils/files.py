"""Files that a reader never sees half written, and runs that two engines never share."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path
from typing import IO


def replace_file(path: str | Path, content: str | bytes) -> Path:
    """Write ``content`` (text as UTF-8) to ``path`` through a temporary file in the same folder.

    Parent folders are made. A reader sees the old content or the new, never a part; the
    permissions of an existing file are kept. Returns the path. Raises OSError.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode("utf-8") if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask()
        os.chmod(name, mode)  # noqa: PTH101
        os.replace(name, path)  # noqa: PTH105
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def append_line(path: Path, line: str) -> None:
    """Add a line to a file, whose folder is made. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")


def lock_file(path: Path) -> IO[str] | None:
    """Lock ``path`` for this process; return the open file, or None if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.close()
        return None
    return stream
