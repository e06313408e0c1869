"""A policy that repeats the question: for trying out a client's plumbing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ajet.backbone.policies.base import ChatRequest, Reply, message_text
from ajet.tuner_lib.experimental.episode import CompletedEpisode


class EchoPolicy:
    """Answers with the text of the last message; learns nothing."""

    name = "echo"
    learns = False

    def describe(self) -> str:
        """Say what this policy is."""
        return "repeats the last message; nothing is learned"

    async def reply(self, request: ChatRequest, temperature: float, top_p: float) -> Reply:
        """Return the last message's text."""
        return Reply(content=message_text(request.messages[-1]) if request.messages else "")

    def update(self, episodes: Iterable[CompletedEpisode], kl_coef: float) -> dict[str, float]:
        """Learn nothing."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return nothing but the name."""
        return {"policy": self.name}

    def load(self, state: dict[str, Any]) -> None:
        """Take over nothing."""
