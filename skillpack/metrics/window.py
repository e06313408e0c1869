"""The x axis of a fetch and the part of it that is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

from skillpack.metrics.series import AXES, RunMetrics
from skillpack.script import BadInput


@dataclass(frozen=True)
class Window:
    """``x`` is ``step``, ``time``, ``relative`` (seconds) or a key; bounds are inclusive and in its unit.

    ``start`` and ``end`` are numbers, for ``time`` ISO 8601 (UTC without an offset) or Unix
    seconds or milliseconds. ``tail`` keeps the last so many steps of what is left.
    """

    x: str = "step"
    start: str | float | None = None
    end: str | float | None = None
    tail: int | None = None

    def __post_init__(self) -> None:
        bounds = self.bounds()
        if None not in bounds and bounds[0] > bounds[1]:  # type: ignore[operator]
            raise BadInput(f"--from {self.start} lies behind --to {self.end}")
        if self.tail is not None and self.tail < 1:
            raise BadInput(f"--tail {self.tail} is no number of points", expected="1 or more")

    @property
    def key(self) -> str | None:
        """The key that serves as x axis, if one does."""
        return None if self.x in AXES else self.x

    def bounds(self) -> tuple[float | None, float | None]:
        """Return start and end as numbers (times in ms). Raises BadInput."""
        read = _moment if self.x == "time" else _number
        low = None if self.start is None else read(self.start)
        high = None if self.end is None else read(self.end)
        return low, high

    def document(self) -> dict[str, Any] | None:
        """Return the window as JSON-ready values, None where everything is wanted."""
        wanted = {"from": self.start, "to": self.end, "tail": self.tail}
        return {name: value for name, value in wanted.items() if value is not None} or None

    def apply(self, metrics: RunMetrics) -> None:
        """Cut the run's series to this window; the axis keeps the origin it had before."""
        import numpy

        _ = metrics.start_ms  # fixed before the first points go
        low, high = self.bounds()
        if (low, high, self.tail) == (None, None, None):
            return
        steps = metrics.steps
        if self.x == "step":
            place = steps.astype("float64")
        elif self.x == "time":
            place = metrics.clock.astype("float64")
        elif self.x in metrics.series or self.x == "relative":
            place = metrics.columns()[self.x][0]
        else:
            return  # the axis is missing, and its status says so
        with numpy.errstate(invalid="ignore"):
            kept = numpy.ones(len(steps), dtype=bool)
            if low is not None:
                kept &= place >= low
            if high is not None:
                kept &= place <= high
        left = numpy.flatnonzero(kept)
        if self.tail is not None and len(left) > self.tail:
            kept[: left[-self.tail]] = False
        for key, series in metrics.series.items():
            metrics.series[key] = series.taken(kept[numpy.searchsorted(steps, series.steps)])
        metrics.forget()


def settle(metrics: RunMetrics, window: Window, keep: Literal["first", "last"]) -> None:
    """Leave one point per step, cut the series to the window and count what is left in each key's state."""
    logged = {}
    for key, series in metrics.series.items():
        metrics.series[key], metrics.status[key].duplicates = series.deduplicated(keep)
        logged[key] = len(metrics.series[key])
    window.apply(metrics)
    for key, series in metrics.series.items():
        one = metrics.status[key]
        one.describe(series, logged[key])
        if one.state == "ok" and not logged[key]:
            one.state, one.why = "empty", "the key exists, but nothing was logged to it"


def _number(text: str | float) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{text!r} is no number", expected="a number on the x axis") from None


def _moment(text: str | float) -> float:
    try:
        number = float(text)
        return number * 1000 if abs(number) < 1e11 else number
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(str(text).strip().replace("Z", "+00:00"))
    except ValueError:
        raise BadInput(f"{text!r} is no time", expected="such as 2026-03-01T08:00 or Unix seconds") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1000
