"""A policy that repeats the question: for trying out a client's plumbing."""

from __future__ import annotations

from ajet.backbone.policies.base import ChatRequest, Reply, message_text
from ajet.backbone.policies.fixed import FixedPolicy


class EchoPolicy(FixedPolicy):
    """Answers with the text of the last message; learns nothing."""

    name = "echo"

    def describe(self) -> str:
        """Say what this policy is."""
        return "repeats the last message; nothing is learned"

    async def reply(self, request: ChatRequest, temperature: float, top_p: float) -> Reply:
        """Return the last message's text."""
        return Reply(content=message_text(request.messages[-1]) if request.messages else "")
