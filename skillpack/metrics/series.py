"""What a fetch hands back: series of points, the state of each key, and frames made of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy
    import pandas

State = Literal["ok", "missing", "empty", "failed"]
OWN_COLUMNS = ("run", "run_name", "step")
"""What a table of many runs has before its keys."""
AXES = ("step", "time", "relative")


@dataclass
class Series:
    """The logged points of one key, ordered by step: equally long arrays, one entry per point.

    ``steps`` int64; ``values`` float64, NaN and infinities as they were logged; ``stamps``
    float64, milliseconds since 1970, NaN where unknown. A step without a point has no entry.
    """

    key: str
    steps: numpy.ndarray
    values: numpy.ndarray
    stamps: numpy.ndarray

    def __len__(self) -> int:
        return len(self.steps)

    def taken(self, chosen: Any) -> Series:
        """Return the points that ``chosen`` (a mask, a slice or indices) selects."""
        return Series(self.key, self.steps[chosen], self.values[chosen], self.stamps[chosen])

    @classmethod
    def of(cls, key: str, points: Iterable[tuple[int, float, float]]) -> Series:
        """Make a series of ``(step, value, timestamp in ms)`` tuples; points of one step keep their order."""
        collected = Points()
        for step, value, stamp in points:
            collected.add(step, value, stamp)
        return collected.series(key)

    def deduplicated(self, keep: Literal["first", "last"]) -> tuple[Series, int]:
        """Return the series with one point per step, and how many points were dropped."""
        import numpy

        if len(self) < 2:
            return self, 0
        same = self.steps[1:] == self.steps[:-1]
        dropped = int(same.sum())
        if not dropped:
            return self, 0
        kept = numpy.ones(len(self), dtype=bool)
        kept[1 if keep == "first" else 0 : None if keep == "first" else -1] = ~same
        return self.taken(kept), dropped


class Points:
    """The points of one key while they are read, 24 bytes each."""

    def __init__(self) -> None:
        self._steps, self._values, self._stamps = array("q"), array("d"), array("d")

    def add(self, step: int, value: float, stamp: float) -> None:
        """Take one more point; ``stamp`` is in ms, NaN where unknown."""
        self._steps.append(step)
        self._values.append(value)
        self._stamps.append(stamp)

    def series(self, key: str) -> Series:
        """Return what was collected, ordered by step; points of one step keep their order."""
        import numpy

        steps = numpy.array(self._steps, dtype="int64")
        order = numpy.argsort(steps, kind="stable")
        return Series(key, steps[order], numpy.array(self._values)[order], numpy.array(self._stamps)[order])


@dataclass
class KeyStatus:
    """What became of one key.

    ``asked`` is what the user wrote (a name, an alias or a pattern). ``points`` of ``of`` logged
    points are in the frame. ``verified`` is False where the server gave nothing to check the last
    step against.
    """

    key: str
    state: State
    asked: str = ""
    why: str = ""
    did_you_mean: list[str] = field(default_factory=list)
    points: int = 0
    of: int = 0
    first_step: int | None = None
    last_step: int | None = None
    nan: int = 0
    inf: int = 0
    duplicates: int = 0
    verified: bool = False

    @property
    def ok(self) -> bool:
        """Whether the series is there, whole and understood."""
        return self.state == "ok"

    @property
    def good(self) -> bool:
        """Whether this is what was asked for: a key without points is, if only a pattern or "all" named it."""
        return self.ok or (self.state == "empty" and self.asked != self.key)

    def describe(self, series: Series, of: int | None = None) -> None:
        """Fill in the counts from the series that goes into the frame."""
        import numpy

        self.points = len(series)
        self.of = len(series) if of is None else of
        if len(series):
            self.first_step, self.last_step = int(series.steps[0]), int(series.steps[-1])
        self.nan = int(numpy.isnan(series.values).sum())
        self.inf = int(numpy.isinf(series.values).sum())


@dataclass
class RunMetrics:
    """One run's series with their states and where they came from.

    ``status`` maps each key (or, where there is none, what was asked for) to its state; ``meta``
    is JSON-ready: url, run id, name, state, created, config, SDK, path used, sampled, aliases …
    """

    series: dict[str, Series]
    status: dict[str, KeyStatus]
    meta: dict[str, Any]
    x: str = "step"

    @property
    def ok(self) -> bool:
        """Whether every asked key is ok (a key without points that nobody named is no fault)."""
        return all(status.good for status in self.status.values())

    @property
    def label(self) -> str:
        """The run's name, with its id where it has none."""
        return str(self.meta.get("name") or self.meta.get("run_id") or self.meta.get("source") or "run")

    @cached_property
    def frame(self) -> pandas.DataFrame:
        """Wide: index ``step``, a column per key, every step that any key has, gaps as NaN.

        With another axis than step it comes first, as column ``time`` (UTC), ``relative``
        (seconds since the first point) or the key that was asked for.
        """
        import pandas

        columns = self.columns()
        frame = pandas.DataFrame({key: columns[key][0] for key in columns}, index=self.steps, copy=False)
        frame.index.name = "step"
        return frame

    @property
    def long(self) -> pandas.DataFrame:
        """One row per point: ``key``, ``step``, ``value``, ``timestamp`` (UTC)."""
        return long_frame([self])

    @cached_property
    def steps(self) -> numpy.ndarray:
        """Every step that any key has, in order."""
        import numpy

        arrays = [series.steps for series in self.series.values()]
        if not arrays:
            return numpy.array([], dtype="int64")
        first = max(arrays, key=len)
        if all(array is first or (len(array) == len(first) and (array == first).all()) for array in arrays):
            return first
        return numpy.unique(numpy.concatenate(arrays))

    def columns(self) -> dict[str, tuple[Any, Any]]:
        """Return per column its values on ``steps`` and a mask of the places with a point (None: all)."""
        columns: dict[str, tuple[Any, Any]] = {}
        if self.x == "time":
            columns["time"] = (self.clock.astype("datetime64[ms]"), None)
        elif self.x == "relative":
            columns["relative"] = ((self.clock - self.start_ms) / 1000, None)
        first = None if self.x in AXES else self.x
        for key in sorted(self.series, key=lambda key: key != first):  # stable: only the x key moves to the front
            column = spread(self.steps, self.series[key].steps, self.series[key].values)
            columns[key if key not in columns else renamed(key)] = column
        return columns

    @cached_property
    def start_ms(self) -> float:
        """When the first of the run's fetched points was logged, in ms; where ``relative`` is zero."""
        import numpy

        firsts = [numpy.nanmin(one.stamps) for one in self.series.values() if not numpy.isnan(one.stamps).all()]
        return float(min(firsts, default=numpy.nan))

    def forget(self) -> None:
        """Drop what was derived from the series, after they were changed; the start stays."""
        for name in ("steps", "clock", "frame"):
            self.__dict__.pop(name, None)

    @cached_property
    def clock(self) -> numpy.ndarray:
        """The time of each of ``steps``: the earliest timestamp of any key, int64 ms; unknown ones interpolated."""
        import numpy

        earliest = numpy.full(len(self.steps), numpy.inf)
        for series in self.series.values():
            places = numpy.searchsorted(self.steps, series.steps)
            known = ~numpy.isnan(series.stamps)
            numpy.minimum.at(earliest, places[known], series.stamps[known])
        known = numpy.isfinite(earliest)
        if not known.any():
            return numpy.full(len(self.steps), numpy.iinfo("int64").min)  # NaT
        filled = numpy.interp(self.steps, self.steps[known], earliest[known])
        return filled.astype("int64")

    def axis(self, series: Series) -> numpy.ndarray:
        """Return the x value of each point of a series: step, UTC time, seconds or the x key's value there."""
        import numpy

        if self.x == "step" or (self.x not in AXES and self.x not in self.series):
            return series.steps
        places = numpy.searchsorted(self.steps, series.steps)
        values: numpy.ndarray = self.columns()[self.x][0][places]
        return values


def renamed(key: str) -> str:
    """Return another name for a key that is called like a column of the table itself."""
    return f"{key} (metric)"


def spread(steps: numpy.ndarray, own: numpy.ndarray, values: numpy.ndarray) -> tuple[Any, Any]:
    """Lay values given at ``own`` steps out on ``steps``: the array with NaN in the gaps, and where it has points."""
    import numpy

    if own is steps or len(own) == len(steps):
        return values, None
    places = numpy.searchsorted(steps, own)
    column = numpy.full(len(steps), numpy.nan)
    column[places] = values
    present = numpy.zeros(len(steps), dtype=bool)
    present[places] = True
    return column, present


def unique_label(runs: Sequence[RunMetrics], place: int) -> str:
    """Return a run's name, with its id (or its place) where another of the runs has the same name."""
    run = runs[place]
    if sum(other.label == run.label for other in runs) == 1:
        return run.label
    return f"{run.label} ({run.meta.get('run_id') or place + 1})"


def wide_frame(runs: Sequence[RunMetrics]) -> pandas.DataFrame:
    """Stack the runs' wide frames: columns ``run``, ``run_name``, ``step``, then the keys of any run."""
    import pandas

    parts = []
    for run in runs:
        part = run.frame.rename(columns={name: renamed(name) for name in OWN_COLUMNS}).reset_index()
        part.insert(0, "run", run.meta.get("run_id", ""))
        part.insert(1, "run_name", run.label)
        parts.append(part)
    return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame()


def long_frame(runs: Sequence[RunMetrics], *, with_run: bool = False) -> pandas.DataFrame:
    """Return one row per point of every run: [``run``, ``run_name``,] ``key``, ``step``, ``value``, ``timestamp``."""
    import numpy
    import pandas

    parts = []
    for run in runs:
        for key, series in run.series.items():
            stamps = numpy.where(numpy.isnan(series.stamps), numpy.iinfo("int64").min, series.stamps)
            part = pandas.DataFrame(
                {
                    "key": key,
                    "step": series.steps,
                    "value": series.values,
                    "timestamp": stamps.astype("int64").astype("datetime64[ms]"),
                }
            )
            if with_run:
                part.insert(0, "run", run.meta.get("run_id", ""))
                part.insert(1, "run_name", run.label)
            parts.append(part)
    columns = (["run", "run_name"] if with_run else []) + ["key", "step", "value", "timestamp"]
    return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame(columns=columns)


def status_document(status: Mapping[str, KeyStatus]) -> list[dict[str, Any]]:
    """Return the states as JSON-ready dictionaries, without what is empty or has not happened."""
    counts = {"nan", "inf", "duplicates"}
    return [
        {
            name: value
            for name, value in asdict(one).items()
            if value not in ("", None, []) and not (name in counts and value == 0)
        }
        for one in status.values()
    ]


def iso(stamp_ms: float | None) -> str | None:
    """Return a timestamp in ms as ISO 8601 in UTC, or None."""
    if stamp_ms is None:
        return None
    return datetime.fromtimestamp(stamp_ms / 1000, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
