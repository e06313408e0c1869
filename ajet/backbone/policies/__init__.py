"""What can answer the chat calls of the reference engine."""

from __future__ import annotations

from pathlib import Path

from ajet.backbone.policies.base import Policy
from ajet.backbone.policies.echo import EchoPolicy
from ajet.backbone.policies.learn import LearningPolicy

POLICIES = ("learn", "script", "echo", "proxy")

ARGUMENTS = {"script": "a YAML file of replies", "proxy": "the URL of an OpenAI-compatible server"}
"""Policy: what its name must be followed by."""


def make_policy(name: str, *, seed: int = 0) -> Policy:
    """Return a new policy: ``learn``, ``echo``, ``script FILE`` or ``proxy URL``.

    Raises ValueError for an unknown name, a missing or surplus argument, or one that cannot be used.
    """
    kind, _, argument = name.partition(" ")
    if kind not in POLICIES:
        raise ValueError(f"policy is {kind!r}; it is one of {', '.join(POLICIES)}")
    if bool(argument) != (kind in ARGUMENTS):
        needs = f"needs {ARGUMENTS[kind]}" if kind in ARGUMENTS else f"takes no argument; {argument!r} was given"
        raise ValueError(f"policy {kind!r} {needs}")
    if kind == "script":
        from ajet.backbone.policies.script import ScriptPolicy

        return ScriptPolicy(Path(argument))
    if kind == "proxy":
        from ajet.backbone.policies.proxy import ProxyPolicy

        return ProxyPolicy(argument)
    return LearningPolicy(seed) if kind == "learn" else EchoPolicy()
