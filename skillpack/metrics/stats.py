"""Figures about curves: a summary of one, a comparison of several, a stitch of one training's pieces."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from skillpack.metrics.series import KeyStatus, RunMetrics, Series, unique_label
from skillpack.script import BadInput

if TYPE_CHECKING:
    import numpy
    import pandas

LESS_IS_BETTER = re.compile(r"loss|error|perplexity|\bppl\b|/kl|_kl|regret|(^|/)time|timing|clip", re.IGNORECASE)

FIGURES = ("first", "last", "min", "max", "mean", "std", "best", "best_is", "best_step", "slope")
Direction = Literal["auto", "max", "min"]


def summarize(series: Series, best: Direction = "auto") -> dict[str, Any]:
    """Return first, last, min, max, mean, std, best (with its step), slope and counts of one curve.

    Statistics are over the finite values (std: of the population). ``slope`` is the least-squares
    slope per 1,000 steps. ``best`` is the maximum, for losses, errors, divergences and times the
    minimum, or as told. A figure that cannot be had, or is too large for a float, is None.
    """
    import numpy

    finite = numpy.isfinite(series.values)
    values, steps = series.values[finite], series.steps[finite].astype("float64")
    figures: dict[str, Any] = {
        "key": series.key,
        "count": len(series),
        "nan": int(numpy.isnan(series.values).sum()),
        "inf": int(numpy.isinf(series.values).sum()),
        "first_step": int(series.steps[0]) if len(series) else None,
        "last_step": int(series.steps[-1]) if len(series) else None,
    }
    if not len(values):
        return {**figures, **dict.fromkeys(FIGURES)}
    least = LESS_IS_BETTER.search(series.key) is not None if best == "auto" else best == "min"
    place = int(values.argmin() if least else values.argmax())
    spread = steps - steps.mean()
    squares = float((spread**2).sum())
    with numpy.errstate(over="ignore", invalid="ignore"):
        mean, std = values.mean(), values.std()
        slope = (spread * (values - mean)).sum() / squares * 1000 if squares else math.nan
    return {
        **figures,
        "first": float(values[0]),
        "last": float(values[-1]),
        "min": float(values.min()),
        "max": float(values.max()),
        "mean": finite_or_none(mean),
        "std": finite_or_none(std),
        "best": float(values[place]),
        "best_is": "min" if least else "max",
        "best_step": int(steps[place]),
        "slope": finite_or_none(slope),
    }


def finite_or_none(value: float) -> float | None:
    """Return a figure as a plain float; None for NaN and infinities."""
    return float(value) if math.isfinite(value) else None


@dataclass
class Aligned:
    """One key of several runs on one axis: a column per run, and ``mean``, ``std`` and ``n`` over the runs.

    ``std`` is of the sample (n - 1), NaN where only one run has a value.
    """

    key: str
    frame: pandas.DataFrame
    mean: pandas.Series
    std: pandas.Series
    n: pandas.Series


def align(runs: Sequence[RunMetrics], key: str) -> Aligned:
    """Bring one key of several runs onto one x axis.

    On steps the runs are joined where they are, gaps stay NaN. On any other axis no two runs share
    points, so each is interpolated, within its own range, on the axis of the run with most points.
    """
    import numpy
    import pandas

    columns: dict[str, Any] = {}
    for place, run in enumerate(runs):
        if key in run.series and len(run.series[key]):
            series = run.series[key]
            values = numpy.where(numpy.isfinite(series.values), series.values, numpy.nan)
            label = unique_label(runs, place)
            columns[label] = pandas.Series(values, index=_x(run.axis(series)))
    if runs[0].x == "step":
        frame = pandas.DataFrame(columns).sort_index()
    else:
        curves = {label: _increasing(column.dropna()) for label, column in columns.items()}
        grid = max((curve.index.to_numpy() for curve in curves.values()), key=len, default=numpy.array([]))
        frame = pandas.DataFrame(
            {
                label: numpy.interp(grid, curve.index, curve.to_numpy(), left=numpy.nan, right=numpy.nan)
                for label, curve in curves.items()
                if len(curve)
            },
            index=grid,
        )
    frame.index.name = runs[0].x
    with numpy.errstate(over="ignore", invalid="ignore"):
        return Aligned(key, frame, frame.mean(axis=1), frame.std(axis=1), frame.count(axis=1))


def config_differences(runs: Sequence[RunMetrics]) -> dict[str, list[Any]]:
    """Return the configuration entries (dotted names) that are not the same in all runs, a value per run."""
    flat = [dict(_flattened(run.meta.get("config") or {})) for run in runs]
    names = dict.fromkeys(name for one in flat for name in one)
    table = {name: [one.get(name) for one in flat] for name in names}
    return {name: values for name, values in table.items() if any(value != values[0] for value in values)}


def stitch(runs: Sequence[RunMetrics]) -> RunMetrics:
    """Join the pieces of one resumed training into one run.

    Pieces are put in the order in which they were created. Each replaces what earlier ones logged
    from its first step on, for the training that went on from there is the later one.
    Raises BadInput if there is nothing to join or the axis is not the step.
    """
    import numpy

    pieces = sorted((run for run in runs if run.series), key=lambda run: str(run.meta.get("created") or ""))
    if not pieces:
        raise BadInput("there is nothing to stitch", expected="at least one run with points")
    if any(run.x != "step" for run in pieces):
        raise BadInput("runs are stitched by step", hint="leave out --x, and draw with --x afterwards")
    starts = [int(run.steps[0]) if len(run.steps) else None for run in pieces]
    parts: dict[str, list[Series]] = {}
    replaced = 0
    for place, run in enumerate(pieces):
        later = [start for start in starts[place + 1 :] if start is not None]
        for key, series in run.series.items():
            kept = series.taken(series.steps < min(later)) if later else series
            replaced += len(series) - len(kept)
            parts.setdefault(key, []).append(kept)
    joined = {
        key: Series(
            key, *(numpy.concatenate([getattr(one, name) for one in some]) for name in ("steps", "values", "stamps"))
        )
        for key, some in parts.items()
    }
    status = _joined_status(runs, joined)
    last = pieces[-1].meta
    meta = {**last, "pieces": [run.meta.get("run_id") for run in pieces], "points_replaced": replaced}
    meta["points"] = sum(len(series) for series in joined.values())
    return RunMetrics(joined, status, meta)


def _joined_status(runs: Sequence[RunMetrics], joined: Mapping[str, Series]) -> dict[str, KeyStatus]:
    """A key of a stitched run is as good as in its worst piece that has it; one that no piece has keeps its state."""
    status: dict[str, KeyStatus] = {}
    for run in runs:
        for key, one in run.status.items():
            known = status.get(key)
            if known is None or one.state == "failed" or (known.state in ("missing", "empty") and one.ok):
                status[key] = replace(one)
    for key, series in joined.items():
        status[key].describe(series)
    return status


def _flattened(config: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for name, value in config.items():
        if isinstance(value, Mapping):
            pairs += _flattened(value, f"{prefix}{name}.")
        else:
            pairs.append((f"{prefix}{name}", value))
    return pairs


def _x(axis: numpy.ndarray) -> numpy.ndarray:
    """Return an axis as numbers; times as seconds since 1970."""
    import numpy

    if numpy.issubdtype(axis.dtype, numpy.datetime64):
        return axis.astype("datetime64[ms]").astype("int64") / 1000
    return axis


def _increasing(curve: pandas.Series) -> pandas.Series:
    """Return a curve as interpolation needs it: by x, without unknown and repeated x (the last counts)."""
    known = curve[curve.index.notna()]
    return known[~known.index.duplicated(keep="last")].sort_index()
