"""Copy the logs of several parts into one console log, by whole lines with the part's name in front."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

PIECE = 1 << 20


class Merger:
    """Follows logs; each ``copy`` appends what came since the last one."""

    def __init__(self, target: Path, sources: list[tuple[str, Path]]) -> None:
        self._target = target
        self._sources = [(f"[{name}] ".encode(), path) for name, path in sources]
        self._offsets = [0] * len(sources)

    def copy(self, *, everything: bool = False) -> None:
        """Append new whole lines; with ``everything`` also a last line without its end. Never raises OSError."""
        with suppress(OSError), self._target.open("ab") as out:
            for index, (prefix, path) in enumerate(self._sources):
                if not path.exists():
                    continue
                with path.open("rb") as source:
                    source.seek(self._offsets[index])
                    while data := source.read(PIECE):
                        end = (
                            len(data)
                            if everything or (len(data) == PIECE and b"\n" not in data)
                            else data.rfind(b"\n") + 1
                        )
                        if not end:
                            break
                        for line in data[:end].splitlines(keepends=True):
                            out.write(prefix + line if line.endswith(b"\n") else prefix + line + b"\n")
                        self._offsets[index] += end
                        source.seek(self._offsets[index])
