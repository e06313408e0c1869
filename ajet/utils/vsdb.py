"""Breakpoints that stay in the code and only stop a debugging run."""

from __future__ import annotations

import os

_seen: set[str] = set()


def bp(tag: str | None = None, once: bool = True) -> None:
    """Stop in the debugger if RAY_DEBUG_POST_MORTEM is set and ``tag`` is in DEBUG_TAGS (``a|b``).

    Without a tag it stops in any debugging run; with ``once`` a tag stops once per process.
    """
    if not os.environ.get("RAY_DEBUG_POST_MORTEM"):
        return
    if tag is not None and tag not in os.environ.get("DEBUG_TAGS", "").split("|"):
        return
    name = tag or ""
    if once and name in _seen:
        return
    _seen.add(name)
    breakpoint()
