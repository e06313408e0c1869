"""Signs that a model has lost its mind: the same words over and over, or characters that are no text."""

from __future__ import annotations

from collections.abc import Sequence

UNLIKELY = "\ufffd"
"""What a decoder leaves of bytes that are no text."""


def has_repeat(token: Sequence[str] | Sequence[int], remember_n_words: int = 5, patience_max: int = 10) -> bool:
    """Tell whether one of the last ``remember_n_words`` distinct tokens comes again ``patience_max`` times on end."""
    recent: list[str | int] = []
    repeats = 0
    for one in token:
        if one in recent:
            repeats += 1
            if repeats >= patience_max:
                return True
            continue
        repeats = 0
        recent.append(one)
        del recent[:-remember_n_words]
    return False


def compute_string_madness(completion: str, detail: bool = False, checklist: Sequence[str] = ("nonsense",)) -> float:
    """Return 0.0 for a sane text and -1.0 for a mad one.

    ``checklist`` names the checks: ``nonsense`` looks for undecodable characters and for words
    that repeat; others are ignored. ``detail`` is accepted and changes nothing.
    """
    if "nonsense" not in checklist:
        return 0.0
    return -1.0 if UNLIKELY in completion or has_repeat(completion.split()) else 0.0
