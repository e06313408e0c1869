"""What policies that never learn have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ajet.tuner_lib.experimental.episode import CompletedEpisode


class FixedPolicy:
    """A policy that learns nothing; a subclass has a ``name`` and answers."""

    name = ""
    learns = False

    def update(self, episodes: Iterable[CompletedEpisode], kl_coef: float) -> dict[str, float]:
        """Learn nothing."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return nothing but the name."""
        return {"policy": self.name}

    def load(self, state: dict[str, Any]) -> None:
        """Take over nothing."""

    async def close(self) -> None:
        """Close nothing: such a policy holds no connections."""
