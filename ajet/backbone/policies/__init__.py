"""What can answer the chat calls of the reference engine."""

from __future__ import annotations

from ajet.backbone.policies.base import Policy
from ajet.backbone.policies.echo import EchoPolicy
from ajet.backbone.policies.learn import LearningPolicy

POLICIES = ("learn", "echo")


def make_policy(name: str, *, seed: int = 0) -> Policy:
    """Return a new policy by its name. Raises ValueError for an unknown one."""
    if name == "learn":
        return LearningPolicy(seed)
    if name == "echo":
        return EchoPolicy()
    raise ValueError(f"policy is {name!r}; it is one of {', '.join(POLICIES)}")
