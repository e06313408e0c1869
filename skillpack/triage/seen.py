"""What has been seen in a log: signatures, steps, the last lines. Everything here has a bound."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from skillpack.triage.signatures import Signature

TRACEBACK_LINES = 400


@dataclass
class Traceback:
    """A traceback that is being read: whose it is, the line reached, how many lines it may still have."""

    who: str
    line: int
    left: int = TRACEBACK_LINES


@dataclass
class Sighting:
    """Where a signature was seen: number of the line (from 1), its place in bytes, its text and surroundings' stage."""

    line: int
    offset: int
    text: str
    stage: str = "any"
    who: str = ""
    groups: dict[str, str] = field(default_factory=dict)


@dataclass
class Seen:
    """How often a signature was seen, and where first: since the last step, and in the interval before it."""

    count: int = 0
    survived: int = 0
    current: Sighting | None = None
    previous: Sighting | None = None
    first: Sighting | None = None


@dataclass
class Scan:
    """What a log says, after so many bytes of it. Everything here has a bound."""

    offset: int = 0
    lines: int = 0
    steps: int = 0
    first_step: int | None = None
    last_step: int | None = None
    last_step_line: int = 0
    seen: dict[str, Seen] = field(default_factory=dict)
    recent: deque[tuple[int, dict[str, float]]] = field(default_factory=lambda: deque(maxlen=400))
    earliest: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=5))
    total_steps: int | None = None
    validations: int = 0
    open_traceback: Traceback | None = None

    def note(self, one: Signature, sighting: Sighting, times: int = 1) -> None:
        """Count a sighting."""
        seen = self.seen.setdefault(one.id, Seen())
        seen.count += times
        seen.first = seen.first or sighting
        seen.current = seen.current or sighting

    def note_step(self, step: int, values: dict[str, float], line: int) -> None:
        """Count a metric line: whatever was seen before it has been survived."""
        self.steps += 1
        self.first_step = step if self.first_step is None else self.first_step
        self.last_step = step
        self.last_step_line = line
        for seen in self.seen.values():
            seen.previous, seen.current = seen.current, None
            seen.survived = seen.count
        if self.recent and self.recent[-1][0] == step:
            values = {**self.recent.pop()[1], **values}
        self.recent.append((step, values))
        if len(self.earliest) < 20 or self.earliest[-1][0] == step:
            if self.earliest and self.earliest[-1][0] == step:
                self.earliest.pop()
            self.earliest.append((step, values))
        if any("pass_rate@" in key or key.startswith(("val-", "val/", "val_")) for key in values):
            self.validations += 1
