"""What watching a server tells: the durations' fit, the bottleneck, and what one change would bring."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from skillpack.capacity import inputs as keys
from skillpack.capacity import parameters as names
from skillpack.capacity.bottleneck import STRAGGLERS, TIMEOUTS, UPDATE, gains
from skillpack.capacity.inputs import MEASURED, Input, Inputs
from skillpack.capacity.limits import engines_of
from skillpack.capacity.live import kind_of, live_report, live_text, stale_episodes
from skillpack.capacity.predict import predict
from skillpack.capacity.watch import ROLLING_POST, SYNCING, Observed, Watch, as_json, durations, summarise
from skillpack.capacity.what_if import short
from skillpack.script import BadInput

STALE_SHARE = 0.5
EPISODES_AT_LEAST = 5


def watched_report(url: str, seen: Watch, given: Inputs, engine: str | None = None, seed: int = 0) -> dict[str, Any]:
    """Return the JSON document of ``capacity.py live --for``: the last look, and what the watch showed."""
    report = live_report(url, seen.last, given, engine)
    ceiling = None if report["idle_slots"] is None else report["idle_slots"] + report["running"]
    observed = summarise(seen, ceiling, lambda look: len(stale_episodes(look)))
    quantiles = durations(seen)
    report["observed"] = as_json(observed)
    report["durations"] = _fit(quantiles, seen)
    report["bottleneck"] = bottleneck_of(observed, report)
    report["prediction"], report["gains"] = _predict(seen, given, engine, observed, quantiles, seed)
    return report


def bottleneck_of(observed: Observed, report: dict[str, Any]) -> dict[str, Any]:
    """Name what held the steps up, by the phase that took most of the time and by who waited for whom."""
    phases = observed.phase_shares
    if phases.get(SYNCING, 0.0) > 0.5:
        return {"name": UPDATE, "why": f"{phases[SYNCING]:.0%} of the time the engine synced weights"}
    if observed.stale_share > STALE_SHARE:
        return {"name": TIMEOUTS, "why": f"{observed.stale_share:.0%} of the running episodes were stale"}
    if phases.get(ROLLING_POST, 0.0) > 0.5:
        return {
            "name": STRAGGLERS,
            "why": f"{phases[ROLLING_POST]:.0%} of the time the step waited for its last episodes",
        }
    if observed.full_share >= 0.5:
        binding = next((item["binding"] for item in reversed(report["ceilings"]) if item["binding"]), ["engine_slots"])
        return {"name": binding[0], "why": f"all slots were taken in {observed.full_share:.0%} of the rollout"}
    if observed.waiting_share >= 0.5:
        return {
            "name": keys.CLIENT_POOLS,
            "why": f"in {observed.waiting_share:.0%} of the rollout an offered episode waited for a client",
        }
    return dict(report["bottleneck"])


def _fit(quantiles: list[float], seen: Watch) -> dict[str, Any] | None:
    if not quantiles:
        return None
    mean = statistics.fmean(quantiles)
    return {
        "ended": len(seen.ended),
        "unended": len(seen.unended),
        "mean": short(mean),
        "p50": short(quantiles[len(quantiles) // 2]),
        "p95": short(quantiles[int(0.95 * len(quantiles))]),
        "cv": short(statistics.pstdev(quantiles) / mean if mean else 0.0),
    }


def _predict(
    seen: Watch, given: Inputs, engine: str | None, observed: Observed, quantiles: list[float], seed: int
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return the prediction from what was measured, and what one change would bring; None if too little was seen."""
    if len(seen.ended) < EPISODES_AT_LEAST:
        return None, []
    measured = {names.DURATIONS: quantiles, keys.CLIENTS: len(observed.peak_by_client)}
    if observed.update_seconds is not None:
        measured[names.UPDATE] = observed.update_seconds
    if observed.peak_by_client and observed.waiting_share >= 0.5:
        measured[keys.CLIENT_POOL] = round(observed.peak_running / len(observed.peak_by_client))
    told = seen.last.inputs().over(given)
    inputs = told.over(Inputs({name: Input(value, "watched", MEASURED) for name, value in measured.items()}))
    if inputs.value(keys.MAX_ENV_WORKER) is None and seen.last.waiting is not None:
        slots = Input(max(1, observed.peak_running), "most episodes seen at once", MEASURED)
        inputs = Inputs({keys.MAX_ENV_WORKER: slots}).over(inputs)
    try:
        prediction = predict(inputs, engine or kind_of(seen.last) or engines_of(inputs)[0], seed=seed)
    except BadInput:
        return None, []
    return prediction.as_json(), gains(prediction, seed=seed)


def watched_text(report: dict[str, Any]) -> str:
    """Return a watch as text for people."""
    observed, fit = report["observed"], report["durations"]
    lines = [live_text(report), "", f"watched {observed['seconds']:g} s:"]
    if fit is not None:
        lines.append(
            f"  {fit['ended']} episodes ended, mean {fit['mean']:g} s, p50 {fit['p50']:g} s,"
            f" p95 {fit['p95']:g} s, cv {fit['cv']:g}"
        )
    lines.append(
        f"  {observed['episodes_per_hour']:g} episodes per hour, {observed['mean_running']:g} running on average"
    )
    if observed["step_seconds"] is not None:
        lines.append(f"  {observed['steps']} whole steps of {observed['step_seconds']:g} s")
    if report["prediction"] and report["prediction"]["step"]:
        step = report["prediction"]["step"]
        lines.append(
            f"  model: {step['episodes_per_hour']['mean']:g} episodes per hour, {step['step']['mean']:g} s a step"
        )
    lines += [
        f"  {gain['change']}: step time x {gain['step_time_factor']:g},"
        f" episodes per hour x {gain['episodes_per_hour_factor']:g}"
        for gain in report["gains"]
    ]
    return "\n".join(lines)


def save_picture(seen: Watch, report: dict[str, Any], path: Path) -> Path:
    """Draw the durations and the gauge. Raises Unavailable without matplotlib."""
    from skillpack.capacity.plots import plot_durations

    gauge = [(at, len(look.running)) for at, look in seen.looks]
    return plot_durations(seen.ended, gauge, report["cap"], path)
