"""Paths and texts as they are shown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_LONE = re.compile("[\ud800-\udfff]")
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(path: Path) -> str:
    """Return ``path`` relative to the working directory if it lies below it, else as it is."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def plain(text: str) -> str:
    r"""Return a text on one line that no terminal acts upon: control characters and lone bytes written as ``\x1b``."""
    return _UNSEEN.sub(lambda match: ascii(match[0])[1:-1], text)


def json_of(data: Any, indent: int | None = 2) -> str:
    """Return data as JSON that is UTF-8 also where the name of a file is not: its lone bytes are escaped."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    return _LONE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
