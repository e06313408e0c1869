"""A grid of configurations: predictions as CSV, a plot, and the knee of the curve."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillpack.capacity.inputs import Inputs
from skillpack.capacity.predict import STEPS, predict
from skillpack.capacity.what_if import FIGURES, short
from skillpack.files import write_atomically
from skillpack.script import BadInput

POINTS_AT_MOST = 400
ROWS_SHOWN = 20
COLUMNS = (*FIGURES, "bottleneck")


def parse_grid(texts: Sequence[str], also: Sequence[str]) -> dict[str, list[Any]]:
    """Read ``KEY=first:last:step`` and ``KEY=a,b,c`` texts as values by key. Raises BadInput."""
    from skillpack.capacity.inputs import parse_settings

    grid: dict[str, list[Any]] = {}
    for text in texts:
        key, _, values = text.partition("=")
        span = re.fullmatch(r"(\d+):(\d+):(\d+)", values)
        if span:
            first, last, step = (int(group) for group in span.groups())
            if step < 1 or last < first:
                raise BadInput(
                    f"--vary {text}: an empty range", expected="first:last:step", hint=f"--vary {key}=8:64:8"
                )
            grid[key] = list(range(first, last + 1, step))
            parse_settings([f"{key}={first}"], also)
        else:
            grid[key] = [parse_settings([f"{key}={value}"], also)[key] for value in values.split(",")]
    points = 1
    for choices in grid.values():
        points *= len(choices)
    if not grid or points > POINTS_AT_MOST:
        raise BadInput(
            f"the grid has {points if grid else 0} points",
            expected=f"1 to {POINTS_AT_MOST}",
            hint="--vary ajet.rollout.max_env_worker=32:256:32",
        )
    return grid


def sweep_report(
    inputs: Inputs,
    grid: dict[str, list[Any]],
    out: Path,
    *,
    engine: str | None = None,
    steps: int = STEPS,
    seed: int = 0,
    plot: bool = True,
) -> dict[str, Any]:
    """Predict every point of the grid, write ``sweep.csv`` (and ``sweep.png``) to ``out``, return the JSON document.

    Raises Unavailable if a plot is wanted and matplotlib is missing.
    """
    rows = []
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        prediction = predict(inputs.replace(point, "--vary"), engine, steps, seed)
        figures = {name: short(read(prediction)) for name, (_, read) in FIGURES.items()}
        rows.append({**point, **figures, "bottleneck": prediction.bottleneck})
    first = next(iter(grid))
    others = list(grid)[1:]
    knees = []
    for key in dict.fromkeys(tuple(row[name] for name in others) for row in rows):
        curve = [row for row in rows if tuple(row[name] for name in others) == key]
        at = knee([row[first] for row in curve], [row["episodes_per_hour"] for row in curve])
        knees.append({**dict(zip(others, key, strict=True)), first: at})
    table = write_atomically(out / "sweep.csv", _csv([*grid, *COLUMNS], rows))
    picture = None
    if plot:
        from skillpack.capacity.plots import plot_sweep

        picture = plot_sweep(rows, first, others, knees, out / "sweep.png")
    return {
        "question": "sweep",
        "points": len(rows),
        "varied": list(grid),
        "knees": knees,
        "rows": rows[:ROWS_SHOWN],
        "csv": str(table),
        "png": None if picture is None else str(picture),
    }


def knee(xs: Sequence[Any], ys: Sequence[float | None]) -> Any:
    """Return where a rising curve bends most: the point farthest above the chord from its first to its last point.

    Satopaa et al., "Finding a Kneedle in a Haystack" (2011), without smoothing. None if the curve
    does not rise, has fewer than three known points, or its values are not numbers.
    """
    known = [(x, y) for x, y in zip(xs, ys, strict=True) if y is not None and isinstance(x, int | float)]
    if len(known) < 3:
        return None
    (x0, y0), (x1, _) = known[0], known[-1]
    top = max(y for _, y in known)
    if x1 == x0 or top <= y0:
        return None
    heights = [(y - y0) / (top - y0) - (x - x0) / (x1 - x0) for x, y in known]
    best = max(range(len(known)), key=lambda index: heights[index])
    return known[best][0] if heights[best] > 0 else None


def _csv(columns: list[str], rows: list[dict[str, Any]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def sweep_text(report: dict[str, Any]) -> str:
    """Return a sweep as text for people."""
    varied = report["varied"]
    lines = ["  ".join([*varied, "episodes/h", "step s", "p95 s", "utilisation", "bottleneck"])]
    for row in report["rows"]:
        figures = (row["episodes_per_hour"], row["step_seconds"], row["step_p95"], row["utilisation"])
        cells = ["unknown" if value is None else f"{value:g}" for value in figures]
        lines.append("  ".join([*(str(row[key]) for key in varied), *cells, row["bottleneck"]]))
    if report["points"] > len(report["rows"]):
        lines.append(f"… {report['points']} points in all")
    for item in report["knees"]:
        where = ", ".join(f"{key} = {value}" for key, value in item.items())
        lines.append(f"knee: {where}" if item[varied[0]] is not None else f"no knee: {where}")
    return "\n".join([*lines, report["csv"], *([report["png"]] if report["png"] else [])])
