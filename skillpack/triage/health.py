"""Is a training healthy? Checks on the last steps of its metrics; rules in ``health.yaml``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

import yaml

Steps = Sequence[tuple[int, dict[str, float]]]
STEP_SECONDS = ("timing_s/step", "perf/time_per_step")


@dataclass(frozen=True)
class Finding:
    """One check that did not pass: the metric, the steps looked at, what was seen against which threshold."""

    id: str
    key: str
    first_step: int
    last_step: int
    seen: str
    threshold: str
    fails: bool
    meaning: str
    remedy: dict[str, Any]


@cache
def checks() -> list[dict[str, Any]]:
    """Return the checks of ``health.yaml``, in order."""
    document = yaml.safe_load((Path(__file__).parent / "health.yaml").read_text(encoding="utf-8"))
    return list(document["checks"])


def check_health(recent: Steps, earliest: Steps) -> list[Finding]:
    """Return what is wrong with the metrics: ``recent`` are the last steps in order, ``earliest`` the first ones.

    A check whose metric is missing, or has fewer steps than its window, says nothing; only NaN
    is told from a single step.
    """
    findings = []
    for check in checks():
        finding = _run(check, recent, earliest)
        if finding:
            findings.append(finding)
    return findings


def step_seconds(recent: Steps) -> float | None:
    """Return the median seconds of the last steps, as the log tells them; None if it does not."""
    seconds = [values[key] for _, values in recent for key in STEP_SECONDS[:1] if values.get(key, 0) > 0]
    seconds = seconds or [values[STEP_SECONDS[1]] for _, values in recent if values.get(STEP_SECONDS[1], 0) > 0]
    return median(seconds[-50:]) if seconds else None


def _series(steps: Steps, key: str) -> list[tuple[int, float]]:
    return [(step, values[key]) for step, values in steps if key in values]


def _run(check: dict[str, Any], recent: Steps, earliest: Steps) -> Finding | None:
    window = check["window"]
    if check["kind"] == "equal":
        return _equal(check, recent, window)
    for key in check["keys"]:
        series = _series(recent, key)[-window:]
        if not series:
            continue
        values = [value for _, value in series]
        if check["kind"] == "finite":
            bad = [step for step, value in series if not math.isfinite(value)]
            if bad:
                return _finding(check, key, series, f"not finite at step {bad[0]}", "finite")
            continue
        values = [value for value in values if math.isfinite(value)]
        if len(values) < window:
            return None
        told = _compare(check, values, [v for _, v in _series(earliest, key)[:window] if math.isfinite(v)])
        return _finding(check, key, series, *told) if told else None
    return None


def _compare(check: dict[str, Any], values: list[float], first: list[float]) -> tuple[str, str] | None:
    """Return (seen, threshold) if the window does not pass."""
    kind, mean = check["kind"], fmean(values)
    if kind == "above" and mean > check["limit"]:
        return f"mean {mean:.4g}", f"> {check['limit']}"
    if kind == "below" and mean < check["limit"]:
        return f"mean {mean:.4g}", f"< {check['limit']}"
    if kind in ("growth", "shrink") and len(first) == len(values) and fmean(first) > 0:
        ratio = mean / fmean(first)
        seen = f"mean {mean:.4g}, {ratio:.2f} times that of the first {len(first)} steps"
        if kind == "growth" and ratio > check["factor"] and mean >= check.get("at_least", 0.0):
            return seen, f"> {check['factor']} times"
        if kind == "shrink" and ratio < check["factor"]:
            return seen, f"< {check['factor']} times"
    if kind == "flat" and max(values) - min(values) <= 0.01 * max(1.0, abs(mean)):
        return f"between {min(values):.4g} and {max(values):.4g}", "spread of at most 1 % of the scale"
    return None


def _equal(check: dict[str, Any], recent: Steps, window: int) -> Finding | None:
    rows = [
        (step, [values[key] for key in check["keys"]]) for step, values in recent if _has_all(values, check["keys"])
    ]
    rows = rows[-window:]
    if len(rows) < window or any(max(row) != min(row) for _, row in rows):
        return None
    series = [(step, row[0]) for step, row in rows]
    return _finding(check, " = ".join(check["keys"]), series, f"equal in the last {len(rows)} steps", "must differ")


def _has_all(values: dict[str, float], keys: list[str]) -> bool:
    return all(math.isfinite(values.get(key, math.nan)) for key in keys)


def _finding(check: dict[str, Any], key: str, series: list[tuple[int, float]], seen: str, threshold: str) -> Finding:
    return Finding(
        check["id"],
        key,
        series[0][0],
        series[-1][0],
        seen,
        threshold,
        check["fails"],
        check["meaning"],
        check["remedy"],
    )
