"""The checks that go beyond what a client reads: each yields problems for one skill."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skillpack.validate.checks import body, description, files, links, metadata, network, openai, safety, scripts
from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem

CHECKS: tuple[Callable[[Skill], Iterable[Problem]], ...] = tuple(
    module.check for module in (metadata, description, files, body, links, scripts, openai, safety, network)
)
