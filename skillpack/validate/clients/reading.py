"""What a client makes of a skill, and how that is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

LOADS, CHANGES, REJECTS = "loads", "loads-with-changes", "rejects"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a client refuses a skill, or what it drops or alters."""

    rule: str
    """Id of the rule that the file breaks."""
    text: str
    """What the client does, as the end of a sentence that begins with its name."""
    line: int = 1
    rejects: bool = False
    lost: bool = False
    """Whether the skill is kept, but in a way that its model never hears of it."""


@dataclass(slots=True)
class Reading:
    """A client's answer: the name and description that it would show, and the reasons for any difference."""

    name: str | None = None
    description: str | None = None
    title: str | None = None
    """Another name that is shown beside the name, in parentheses."""
    reasons: list[Reason] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """``loads``, ``loads-with-changes`` or ``rejects``."""
        if any(reason.rejects for reason in self.reasons):
            return REJECTS
        return CHANGES if self.reasons else LOADS

    def __str__(self) -> str:
        """Return the verdict and, behind a colon, its reasons."""
        verdict = self.verdict
        if verdict == LOADS:
            return LOADS
        told: Iterator[Reason] = (r for r in self.reasons if r.rejects == (verdict == REJECTS))
        return f"{verdict}: " + "; ".join(f"{reason.text} (line {reason.line})" for reason in told)

    def change(self, rule: str, text: str, line: int = 1) -> None:
        """Note something that the client drops or alters."""
        self.reasons.append(Reason(rule, text, line))

    def lose(self, rule: str, text: str, line: int = 1) -> None:
        """Note why the model never hears of the skill although the client keeps it."""
        self.reasons.append(
            Reason(rule, f"{text} and keeps it as a slash command that its model never hears of", line, lost=True)
        )

    def reject(self, rule: str, text: str, line: int = 1) -> Reading:
        """Note why the client refuses the skill, and return the reading."""
        self.reasons.append(Reason(rule, text, line, rejects=True))
        return self
