"""What a reply's text says beside its words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TOKEN_OVERFLOW = "Exceeded max model context length. token_overflow"
"""Stands in the reply to a prompt that leaves no room for an answer."""


def is_token_overflow_message(content: str | bytes | Mapping[str, Any] | None) -> bool:
    """Tell whether a reply (its text, or the message that holds it) says that the prompt was too long."""
    if isinstance(content, Mapping):
        content = content.get("content")
    if isinstance(content, bytes):
        content = content.decode("utf-8", errors="replace")
    return isinstance(content, str) and TOKEN_OVERFLOW in content
