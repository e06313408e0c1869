"""The lines of the last half minute that clients and engine push for overwatch."""

from __future__ import annotations

import time
from collections import deque

from ajet.tuner_lib.experimental.interchange_utils import VerboseLogEntry

KEPT_SECONDS = 30.0
KEPT_ENTRIES = 50
KEPT_CHARACTERS = 4096


class VerboseLog:
    """Keeps at most 50 entries of the last 30 s (values of released servers)."""

    def __init__(self) -> None:
        self._entries: deque[VerboseLogEntry] = deque(maxlen=KEPT_ENTRIES)

    def push(self, message: str, tag: str = "") -> None:
        """Add a line; of a very long one the beginning."""
        entry = VerboseLogEntry(timestamp=time.time(), message=message[:KEPT_CHARACTERS], tag=tag[:KEPT_CHARACTERS])
        self._entries.append(entry)

    def recent(self) -> list[VerboseLogEntry]:
        """Return the lines of the last 30 s, oldest first."""
        oldest = time.time() - KEPT_SECONDS
        return [entry for entry in self._entries if entry.timestamp >= oldest]
