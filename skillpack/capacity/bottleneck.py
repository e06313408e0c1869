"""What holds a step up, and what relaxing one thing would bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skillpack.capacity import inputs as keys
from skillpack.capacity.limits import LLM_CALLS, Limit, ceiling_of
from skillpack.capacity.queueing import slowdown
from skillpack.capacity.workload import Durations, Workload
from skillpack.script import Unavailable

if TYPE_CHECKING:
    from skillpack.capacity.predict import Prediction
    from skillpack.capacity.simulate import Simulation

GAIN_STEPS = 200

STRAGGLERS, UPDATE, TIMEOUTS, RESUME = "stragglers", "update", "timeouts", "resume"
CLIENTS_STALL = "clients never start enough tasks"


def simulator() -> Callable[[Workload, int, int], Simulation | None]:
    """Return ``simulate``. Raises Unavailable without numpy."""
    try:
        from skillpack.capacity.simulate import simulate
    except ImportError:
        raise Unavailable("numpy is not installed", hint="pip install 'agentjet-skills[engine]'") from None
    return simulate


def phase_shares(workload: Workload, simulation: Simulation | None) -> dict[str, float]:
    """Return the share of a step in each phase: full (all slots taken), tail, timeouts, update, resume."""
    if simulation is None:
        return {}
    step = simulation.step.mean
    lost = min(simulation.lost_to_timeouts, simulation.collect + simulation.tail)
    rolling = simulation.collect + simulation.tail
    kept = (rolling - lost) / rolling if rolling else 1.0
    return {
        "full": simulation.collect * kept / step,
        STRAGGLERS: simulation.tail * kept / step,
        TIMEOUTS: lost / step,
        UPDATE: workload.update / step,
        RESUME: workload.resume / step,
    }


def name_bottleneck(workload: Workload, limits: Sequence[Limit], engine: str, shares: dict[str, float]) -> str:
    """Name what holds a step up.

    The phase that takes most of the step is meant: stragglers, timeouts, update or resume; in the
    full phase it is the limit that sets the concurrency. Where contention for the LLM takes more
    than half of every episode, its limit holds up both the full phase and the stragglers.
    """
    if not shares:
        return CLIENTS_STALL
    worst = max(shares, key=lambda phase: shares[phase])
    contention = slowdown(workload.concurrency, workload.llm_share, workload.llm_parallel)
    if contention > 2 and worst in ("full", STRAGGLERS):
        return ceiling_of(limits, engine, LLM_CALLS).binding[0]
    if worst != "full":
        return worst
    return ceiling_of(limits, engine).binding[0]


def gains(prediction: Prediction, steps: int = GAIN_STEPS, seed: int = 0) -> list[dict[str, Any]]:
    """Return what relaxing one thing would bring, largest first: factor on episodes per hour and on step time.

    The limit that sets the concurrency is doubled, and so is the one on LLM calls; stragglers are
    given the mean duration; the patience with vanished clients and the update time are halved.
    """
    simulate = simulator()
    workload = prediction.workload
    base = simulate(workload, steps, seed)
    if base is None:
        return []
    changed: dict[str, Workload] = {}
    limit = _limit(prediction.limits, ceiling_of(prediction.limits, prediction.engine).binding[0])
    wider = replace(workload, slots=2 * workload.slots)
    if limit.name == keys.CLIENT_POOLS:
        wider = replace(workload, pools=tuple(2 * pool for pool in workload.pools))
    changed[f"twice the {limit.name} (raised by: {limit.raised_by})"] = wider
    if workload.llm_parallel is not None and workload.llm_share:
        calls = _limit(prediction.limits, ceiling_of(prediction.limits, prediction.engine, LLM_CALLS).binding[0])
        more = replace(workload, llm_parallel=2 * workload.llm_parallel)
        changed[f"twice the {calls.name} (raised by: {calls.raised_by})"] = more
    if workload.durations.cv:
        changed["every episode of mean length"] = replace(
            workload, durations=Durations.of(workload.durations.mean, cv=0)
        )
    if workload.vanish:
        changed["half the discard_episode_timeout"] = replace(workload, timeout=workload.timeout / 2)
    if workload.update:
        changed["half the update time"] = replace(workload, update=workload.update / 2)
    found = []
    for name, other in changed.items():
        after = simulate(other, steps, seed)
        if after is not None:
            found.append(
                {
                    "change": name,
                    "episodes_per_hour_factor": round(after.episodes_per_hour.mean / base.episodes_per_hour.mean, 3),
                    "step_time_factor": round(after.step.mean / base.step.mean, 3),
                }
            )
    return sorted(found, key=lambda gain: gain["step_time_factor"])


def _limit(limits: Sequence[Limit], name: str) -> Limit:
    return next(limit for limit in limits if limit.name == name)
