"""Several runs side by side: where each ends, mean and spread over them, and what was configured differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillpack.files import write_atomically
from skillpack.metrics.output import check_name, json_safe
from skillpack.metrics.plot import Curve, Panel, draw
from skillpack.metrics.report import explained, number, table
from skillpack.metrics.series import RunMetrics, unique_label
from skillpack.metrics.stats import Aligned, align, config_differences, finite_or_none


def compare_runs(runs: Sequence[RunMetrics]) -> tuple[dict[str, Any], list[Aligned]]:
    """Compare the keys that at least one run has; return the document and the aligned curves."""
    shown = [run for run in runs if run.series]
    keys = [key for key in dict.fromkeys(key for run in shown for key in run.series) if key != shown[0].x]
    aligned = [align(shown, key) for key in keys if any(len(run.series.get(key, ())) for run in shown)]
    document = {
        "ok": all(run.ok for run in runs),
        "x": shown[0].x,
        "runs": [
            {"label": unique_label(runs, place), "url": run.meta.get("url") or run.meta.get("source"),
             "state": run.meta.get("state")}
            for place, run in enumerate(runs)
        ],
        "keys": [_key_document(one) for one in aligned],
        "config": config_differences(shown),
        "not_ok": [
            {"run": run.label, "key": key, "state": one.state, "why": explained(one)}
            for run in runs
            for key, one in run.status.items()
            if not one.good
        ],
        "files": {},
    }  # fmt: skip
    safe: dict[str, Any] = json_safe(document)
    return safe, aligned


def comparison_text(document: Mapping[str, Any]) -> str:
    """Return the comparison as tables."""
    lines = [
        f"{run['label']} is {run['state']}: its last value may not be its end"
        for run in document["runs"]
        if str(run["state"] or "FINISHED").upper() != "FINISHED"
    ]
    for one in document["keys"]:
        lines.append(one["key"])
        rows = [{"run": label, **figures} for label, figures in one["runs"].items()]
        lines.append(table(rows, ("run", "last", "at", "min", "max")))
        if one["at"] is not None:
            std = f" ± {number(one['std'])}" if one["std"] is not None else ""
            lines.append(
                f"mean ± std at {document['x']} {number(one['at'])}, the last that all have: {number(one['mean'])}{std}"
            )
        else:
            lines.append(f"no {document['x']} that all runs have")
    if document["config"]:
        lines.append("configuration that differs")
        labels = [run["label"] for run in document["runs"]]
        lines += [
            f"  {name}: " + ", ".join(f"{label}={value}" for label, value in zip(labels, values, strict=False))
            for name, values in document["config"].items()
        ]
    lines += [f"{row['state']}  {row['run']}  {row['key']}  {row['why']}" for row in document["not_ok"]]
    lines += [f"wrote {path}" for path in document["files"].values()]
    return "\n".join(lines)


def draw_comparison(
    aligned: Sequence[Aligned],
    path: str | Path,
    *,
    x_label: str,
    smooth: float = 0.6,
    log_x: bool = False,
    log_y: bool = False,
) -> Path:
    """Draw, per key, the runs thinly and their mean with a band of one standard deviation. Raises as ``draw``."""
    panels = []
    for one in aligned:
        x = one.frame.index.to_numpy()
        curves = [Curve(str(label), x, column.to_numpy()) for label, column in one.frame.items()]
        if one.frame.shape[1] > 1:
            label = f"mean of {one.frame.shape[1]} runs"
            curves.append(Curve(label, x, one.mean.to_numpy(), one.std.fillna(0.0).to_numpy()))
        panels.append(Panel(one.key, curves))
    return draw(panels, path, x_label=x_label, smooth=smooth, log_x=log_x, log_y=log_y)


def write_comparison(aligned: Sequence[Aligned], runs: Sequence[RunMetrics], path: str | Path) -> dict[str, str]:
    """Write the aligned curves: ``key``, x, a column per run, ``mean``, ``std``, ``n``. Return the file's name.

    Raises BadInput and OSError.
    """
    import pandas

    kind = check_name(path)
    parts = []
    for one in aligned:
        part = one.frame.assign(mean=one.mean, std=one.std, n=one.n).reset_index()
        part.insert(0, "key", one.key)
        parts.append(part)
    frame = pandas.concat(parts, ignore_index=True)
    if kind == "parquet":
        content: bytes = frame.to_parquet(index=False)
    elif kind == "csv":
        content = frame.to_csv(index=False).encode()
    else:
        content = frame.to_json(orient="records", force_ascii=False).encode()
    return {"out": str(write_atomically(Path(path), content))}


def _key_document(one: Aligned) -> dict[str, Any]:
    shared = one.n[one.n == one.frame.shape[1]]
    place = shared.index[-1] if len(shared) else None
    return {
        "key": one.key,
        "runs": {str(label): _ends(column) for label, column in one.frame.items()},
        "points": len(one.frame),
        "shared_points": len(shared),
        "at": None if place is None else float(place),
        "mean": None if place is None else finite_or_none(one.mean[place]),
        "std": None if place is None else finite_or_none(one.std[place]),
    }


def _ends(column: Any) -> dict[str, Any]:
    known = column.dropna()
    if not len(known):
        return dict.fromkeys(("last", "at", "min", "max"))
    return {
        "last": float(known.iloc[-1]),
        "at": float(known.index[-1]),
        "min": float(known.min()),
        "max": float(known.max()),
    }
