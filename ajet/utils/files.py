"""Files that a reader never sees half written, and runs that two engines never share."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO


def replace_file(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` through a temporary file beside it. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


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
