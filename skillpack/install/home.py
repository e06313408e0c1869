"""The folders that a command line takes for granted, and what to do if they are not there."""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from pathlib import Path

from skillpack.script import Unavailable


def home() -> Path:
    """Return the user's home folder. Raises Unavailable if HOME names none and the system knows of none."""
    named = os.environ.get("HOME")
    if named is not None and Path(named).is_absolute():
        return Path(named)
    known = ""
    with suppress(KeyError):
        known = pwd.getpwuid(os.getuid()).pw_dir
    if named is None and known:
        return Path(known)
    raise Unavailable(
        f"HOME is {named!r}, which is no absolute path" if named is not None else "HOME is not set",
        expected="the path of your home folder, where assistants look for skills",
        hint=f"export HOME={known or '/home/YOU'}",
    )


def expand(path: str) -> Path:
    """Return a path with ``~`` at its beginning replaced by the home folder. Raises Unavailable."""
    return home() / path.removeprefix("~").lstrip("/") if path == "~" or path.startswith("~/") else Path(path)


def here() -> Path:
    """Return the working directory. Raises Unavailable if it has been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise Unavailable(
            "the folder that you are in has been removed", expected="a working directory", hint="cd ~"
        ) from None
