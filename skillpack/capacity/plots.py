"""Pictures of predictions and observations. matplotlib is imported only here."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillpack.files import write_atomically
from skillpack.metrics.plot import check_picture
from skillpack.script import Unavailable

PHASES = ("full", "stragglers", "timeouts", "update", "resume")
COLOURS = ("tab:green", "tab:orange", "tab:red", "tab:blue", "tab:gray")


def _figure() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise Unavailable(
            "matplotlib is not installed", hint="pip install 'agentjet-skills[swanlab]', or go without the picture"
        ) from None
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    return Figure(figsize=(8, 4.5), layout="constrained")


def _save(figure: Any, path: Path) -> Path:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=check_picture(path), dpi=120)
    return write_atomically(path, buffer.getvalue())


def plot_sweep(
    rows: Sequence[dict[str, Any]], first: str, others: Sequence[str], knees: Sequence[dict[str, Any]], path: Path
) -> Path:
    """Draw episodes per hour over the first varied key, a line per value of the others, knees marked."""
    figure = _figure()
    axes = figure.add_subplot()
    for item in knees:
        curve = [row for row in rows if all(row[key] == item[key] for key in others)]
        label = ", ".join(f"{key.rsplit('.', 1)[-1]}={item[key]}" for key in others) or None
        (line,) = axes.plot(
            [row[first] for row in curve], [row["episodes_per_hour"] for row in curve], marker=".", label=label
        )
        for row in curve:
            if row[first] == item[first]:
                axes.plot(row[first], row["episodes_per_hour"], "o", markersize=10, color=line.get_color())
                axes.annotate(
                    f"knee {row[first]}",
                    (row[first], row["episodes_per_hour"]),
                    textcoords="offset points",
                    xytext=(6, -14),
                )
    axes.set_xlabel(first)
    axes.set_ylabel("episodes per hour")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if others:
        axes.legend()
    return _save(figure, path)


def plot_steps(predictions: dict[str, dict[str, Any]], path: Path) -> Path:
    """Draw where the time of a step goes, a bar per prediction (as in JSON) that ends."""
    figure = _figure()
    axes = figure.add_subplot()
    known = {name: item for name, item in predictions.items() if item["step"] is not None}
    left = dict.fromkeys(known, 0.0)
    for phase, colour in zip(PHASES, COLOURS, strict=True):
        widths = [item["shares"][phase] * item["step"]["step"]["mean"] for item in known.values()]
        axes.barh(list(known), widths, left=list(left.values()), label=phase, color=colour)
        left = {name: start + width for (name, start), width in zip(left.items(), widths, strict=True)}
    axes.set_xlabel("seconds of a step")
    axes.invert_yaxis()
    axes.legend(ncols=len(PHASES), loc="upper center", bbox_to_anchor=(0.5, 1.12), frameon=False)
    return _save(figure, path)


def plot_durations(seconds: Sequence[float], running: Sequence[tuple[float, int]], cap: int | None, path: Path) -> Path:
    """Draw observed episode durations, and running episodes over time against the cap."""
    figure = _figure()
    left, right = figure.subplots(1, 2)
    left.hist(list(seconds), bins=30)
    left.set_xlabel("seconds of an episode")
    right.step([at for at, _ in running], [count for _, count in running], where="post")
    if cap is not None:
        right.axhline(cap, linestyle="--", color="tab:red", label=f"cap {cap}")
        right.legend()
    right.set_xlabel("seconds")
    right.set_ylabel("running episodes")
    right.set_ylim(bottom=0)
    return _save(figure, path)


def plot_memory(parts: dict[str, dict[str, float]], gpu_gib: float | None, path: Path) -> Path:
    """Draw the parts of a training step's memory on one GPU (GiB: middle, with low and high), and the GPU's size."""
    figure = _figure()
    axes = figure.add_subplot()
    names = list(parts)
    middles = [parts[name]["middle"] for name in names]
    reach = [
        [part["middle"] - part["low"] for part in parts.values()],
        [part["high"] - part["middle"] for part in parts.values()],
    ]
    axes.barh(names, middles, xerr=reach, color="tab:blue", ecolor="tab:gray")
    title = f"training step: {sum(middles):.1f} GiB a GPU"
    axes.set_title(title if gpu_gib is None else f"{title} of {gpu_gib:g}")
    axes.set_xlabel("GiB")
    axes.invert_yaxis()
    return _save(figure, path)


def plot_fleet(servers: Sequence[dict[str, Any]], machines: int, path: Path) -> Path:
    """Draw the running episodes of each server, and what each of the machines holds of them."""
    figure = _figure()
    axes = figure.add_subplot()
    for row in servers:
        left = 0
        for machine in range(machines):
            width = min(row["pool_per_machine"], row["episodes"] - left)
            axes.barh(row["server"], width, left=left, color=COLOURS[machine % len(COLOURS)], edgecolor="white")
            left += width
    axes.set_xlabel(f"running episodes, split over {machines} machines")
    axes.invert_yaxis()
    return _save(figure, path)
