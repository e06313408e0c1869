"""Is a curve flat? Mann-Kendall's test for a trend, Theil and Sen's slope for its size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, median
from typing import Any

KEYS = ("critic/rewards/mean", "critic/score/mean", "critic/success_rate", "task_pass_rate@1", "mean_reward")
LEAST_POINTS = 8
"""Below this the normal approximation of Mann-Kendall's statistic is poor, and a trend can hardly be told."""


@dataclass(frozen=True)
class Trend:
    """A verdict (rising, falling, flat or unknown) and the figures behind it."""

    verdict: str
    why: str
    key: str
    points: int
    first_step: int | None = None
    last_step: int | None = None
    tau: float | None = None
    p_value: float | None = None
    slope: float | None = None
    """Theil-Sen's slope per step."""
    change: float | None = None
    """What that slope makes of the window."""
    threshold: float | None = None
    test: str = "Mann-Kendall (two-sided, ties corrected) and Theil-Sen slope"

    def as_json(self) -> dict[str, Any]:
        """Return the trend as JSON data."""
        return vars(self)


def trend(key: str, points: Sequence[tuple[int, float]], *, window: int, alpha: float, least_change: float) -> Trend:
    """Judge the last ``window`` points (step, value) of a curve.

    It rises or falls if Mann-Kendall's test (H. B. Mann 1945, M. G. Kendall 1975) refutes "no
    trend" at level ``alpha`` and the slope (P. K. Sen 1968) over the window makes at least
    ``least_change`` of the scale, the larger of the curve's whole range and its mean's size.
    Steps are taken as independent, so neighbouring steps that resemble each other make the test
    find trends too easily; the least change guards against that.
    """
    finite = [(step, value) for step, value in points if math.isfinite(value)]
    kept = finite[-window:]
    if len(kept) < LEAST_POINTS:
        return Trend("unknown", f"{len(kept)} points are too few; {LEAST_POINTS} are needed", key, len(kept))
    values = [value for _, value in kept]
    statistic, deviation = _mann_kendall(values)
    p_value = 1.0 if deviation == 0 else 2 * (1 - NormalDist().cdf(max(0, abs(statistic) - 1) / deviation))
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for place, earlier in enumerate(kept)
        for later in kept[place + 1 :]
        if later[0] != earlier[0]
    ]
    slope = median(slopes) if slopes else 0.0
    change = slope * (kept[-1][0] - kept[0][0])
    everything = [value for _, value in finite]
    scale = max(max(everything) - min(everything), abs(fmean(values)))
    threshold = least_change * scale
    moves = p_value < alpha and abs(change) >= threshold
    verdict = "flat" if not moves else "rising" if change > 0 else "falling"
    why = (
        f"p = {p_value:.3g} (level {alpha:g}), change over the window {change:+.4g} "
        f"(at least {threshold:.4g} would count)"
    )
    pairs = len(values) * (len(values) - 1) / 2
    return Trend(
        verdict, why, key, len(kept), kept[0][0], kept[-1][0], statistic / pairs, p_value, slope, change, threshold
    )


def _mann_kendall(values: Sequence[float]) -> tuple[int, float]:
    """Return Kendall's S and its standard deviation under "no trend", corrected for ties."""
    size = len(values)
    statistic = sum(
        (values[later] > values[earlier]) - (values[later] < values[earlier])
        for earlier in range(size)
        for later in range(earlier + 1, size)
    )
    ties = [values.count(value) for value in set(values)]
    variance = size * (size - 1) * (2 * size + 5) - sum(tie * (tie - 1) * (2 * tie + 5) for tie in ties)
    return statistic, math.sqrt(max(0, variance) / 18)
