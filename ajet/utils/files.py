"""Files that a reader never sees half written, and runs that two engines never share."""

from __future__ import annotations

import fcntl
import os
import secrets
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
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    # opened so that the kernel applies the umask: asking for it means to change it, for all threads
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            if path.exists():
                os.fchmod(stream.fileno(), path.stat().st_mode & 0o7777)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return path


def open_for_lines(path: Path) -> IO[str]:
    """Open a file to append lines to; its folder is made. Raises OSError.

    A last line that a killed process left unfinished is ended first, so that it spoils no other.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = path.open("a", encoding="utf-8")
    if stream.tell():
        with path.open("rb") as written:
            written.seek(-1, os.SEEK_END)
            if written.read() != b"\n":
                stream.write("\n")
    return stream


def append_line(path: Path, line: str) -> None:
    """Add a line to a file as ``open_for_lines`` opens it. Raises OSError."""
    with open_for_lines(path) as stream:
        stream.write(line + "\n")


def lock_file(path: Path) -> IO[str] | None:
    """Lock ``path`` for this process; return the open file, or None if another process holds it. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.close()
        return None
    except OSError:
        stream.close()
        raise
    return stream
