"""What a check yields, and typed looks at a configuration's values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from skillpack.config.sources import Source


@dataclass(frozen=True)
class Hit:
    """A rule that is broken: the keys concerned, the names that the rule's texts take, the line if it is known."""

    rule: str
    keys: tuple[str, ...] = ()
    names: dict[str, Any] = field(default_factory=dict)
    line: int | None = None
    file: str | None = None


class Values:
    """The values of a source; one that is unknown, or of another type than asked for, is None."""

    def __init__(self, source: Source) -> None:
        self._tree = source.tree

    def get(self, key: str) -> Any:
        """Return the value of a key below ``ajet.``."""
        return self._tree.get(f"ajet.{key}")

    def whole(self, key: str) -> int | None:
        """Return it if it is a whole number of 1 or more."""
        value = self.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else None

    def number(self, key: str) -> float | None:
        """Return it if it is a number."""
        value = self.get(key)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def text(self, key: str) -> str | None:
        """Return it if it is text."""
        value = self.get(key)
        return value if isinstance(value, str) else None

    @property
    def swarm(self) -> bool:
        """Whether this is a swarm training, as far as is known."""
        return self.get("enable_swarm_mode") is True
