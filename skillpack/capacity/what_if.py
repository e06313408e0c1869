"""What a change would bring: the same training before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillpack.capacity.inputs import Inputs
from skillpack.capacity.plan import change
from skillpack.capacity.predict import STEPS, Prediction, predict

FIGURES = {
    "concurrency": ("episodes at once", lambda p: p.workload.concurrency),
    "step_seconds": ("step time, mean (s)", lambda p: p.simulation and p.simulation.step.mean),
    "step_p50": ("step time, p50 (s)", lambda p: p.simulation and p.simulation.p50),
    "step_p95": ("step time, p95 (s)", lambda p: p.simulation and p.simulation.p95),
    "episodes_per_hour": ("episodes per hour", lambda p: p.simulation and p.simulation.episodes_per_hour.mean),
    "utilisation": ("slot utilisation", lambda p: p.simulation and p.simulation.utilisation),
    "surplus": ("surplus episodes per step", lambda p: p.simulation and p.simulation.surplus),
    "partial": ("episodes in unfinished groups", lambda p: p.simulation and p.simulation.partial),
    "dropped": ("episodes without signal", lambda p: p.simulation and p.simulation.dropped),
}
"""Rows of a comparison: name in JSON, words for people, and where the figure is in a prediction."""


def what_if_report(
    before: Inputs, changes: Mapping[str, Any], engine: str | None = None, steps: int = STEPS, seed: int = 0
) -> dict[str, Any]:
    """Return the JSON document of ``capacity.py what-if``: both predictions and a table of figures."""
    after = before.replace(changes, "--set")
    first, second = predict(before, engine, steps, seed), predict(after, engine, steps, seed)
    return {
        "question": "what-if",
        "changes": [change(before, key, value) for key, value in changes.items()],
        "restart": restarts(changes),
        "table": comparison(first, second),
        "before": first.as_json(),
        "after": second.as_json(),
        "assumptions": second.assumptions,
    }


def restarts(changes: Mapping[str, Any]) -> list[str]:
    """Return what must be restarted for changes: the engine for its configuration, else the clients."""
    found = []
    if any(key.startswith("ajet.") for key in changes):
        found.append("engine")
    if any(not key.startswith("ajet.") for key in changes):
        found.append("clients")
    return found


def comparison(before: Prediction, after: Prediction) -> list[dict[str, Any]]:
    """Return a row per figure: before, after and the factor between them (null where there is none)."""
    rows: list[dict[str, Any]] = []
    for name, (label, read) in FIGURES.items():
        first, second = read(before), read(after)
        factor = second / first if first and second is not None else None
        rows.append(
            {
                "name": name,
                "label": label,
                "before": short(first),
                "after": short(second),
                "factor": short(factor),
            }
        )
    return rows


def short(value: float | None) -> float | None:
    """Return a number with four significant digits."""
    return None if value is None else float(f"{value:.4g}")


def what_if_text(report: dict[str, Any]) -> str:
    """Return a what-if report as text for people."""
    lines = [f"{item['key']}: {item['from']} -> {item['to']}" for item in report["changes"]]
    lines += ["", *table_lines(report["table"]), ""]
    lines.append(f"bottleneck: {report['before']['bottleneck']} -> {report['after']['bottleneck']}")
    if report["restart"]:
        lines.append(f"restart: {', '.join(report['restart'])}")
    return "\n".join([*lines, *assumption_lines(report)])


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return a comparison as lines."""

    def cell(value: float | None) -> str:
        return "unknown" if value is None else f"{value:g}"

    lines = [f"{'':<32} {'before':>10} {'after':>10} {'factor':>8}"]
    return lines + [
        f"{row['label']:<32} {cell(row['before']):>10} {cell(row['after']):>10} {cell(row['factor']):>8}"
        for row in rows
    ]


def assumption_lines(report: dict[str, Any]) -> list[str]:
    """Return the assumptions of a report's predictions, each with how to replace it by a measurement."""
    lines = [f"engine: {report['after']['engine']} (another one: --engine)"]
    return lines + [f"assumed {item['name']} = {item['value']}: {item['replace_by']}" for item in report["assumptions"]]
