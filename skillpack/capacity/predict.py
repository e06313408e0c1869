"""Predict a step: from limits and workload to step time, throughput and the bottleneck."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from skillpack.capacity import inputs as keys
from skillpack.capacity import parameters as names
from skillpack.capacity.bottleneck import name_bottleneck, phase_shares, simulator
from skillpack.capacity.inputs import Inputs
from skillpack.capacity.limits import (
    CLASSIC,
    LLM_CALLS,
    RELEASED,
    RUNNING_EPISODES,
    Limit,
    ceiling_of,
    engines_of,
    limits_of,
)
from skillpack.capacity.parameters import assumption, assumptions, check_parameters, choices_assumed, number
from skillpack.capacity.workload import (
    AGREES,
    ENOUGH_EPISODES,
    ENOUGH_TASKS,
    METHODS,
    Durations,
    Workload,
    read_durations,
)
from skillpack.script import BadInput

if TYPE_CHECKING:
    from skillpack.capacity.simulate import Simulation

STEPS = 400

CLASSIC_WORK = {
    keys.CLIENTS: 1,
    keys.METHOD: ENOUGH_EPISODES,
    names.CLIENT_LOOP: names.BATCH,
    names.TASK_ORDER: names.CLAIM_FIRST,
}
"""A classic engine works through its own batch, and waits for all of it."""

LIKELY_ASSUMED = (
    names.UPDATE,
    names.RESUME,
    names.OVERHEAD,
    names.LLM_SHARE,
    names.VANISH,
)


@dataclass(frozen=True)
class Prediction:
    """A predicted step: the workload that was simulated, what came out (None: the step never ends), and why."""

    engine: str
    workload: Workload
    limits: list[Limit]
    simulation: Simulation | None
    bottleneck: str
    shares: dict[str, float]
    assumptions: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """Return the prediction as a JSON object, without its assumptions: compared predictions share them."""
        return {
            "engine": self.engine,
            "concurrency": self.workload.concurrency,
            "slots": self.workload.slots,
            "step": None if self.simulation is None else _rounded(asdict(self.simulation)),
            "bottleneck": self.bottleneck,
            "shares": _rounded(self.shares),
            "limits": [
                {"name": limit.name, "value": limit.value, "known": limit.known, "binds": limit.binds}
                for limit in self.limits
            ],
        }


def predict(inputs: Inputs, engine: str | None = None, steps: int = STEPS, seed: int = 0) -> Prediction:
    """Predict the steps of a training.

    Raises BadInput that names what is missing (max_env_worker, num_repeat, train_batch_size and
    the duration of an episode are needed), or what leaves no room for a single LLM call.
    """
    engine = engine or default_engine(inputs)
    limits = limits_of(inputs, (engine,))
    workload, assumed = workload_of(inputs, limits, engine)
    simulation = simulator()(workload, steps, seed)
    shares = phase_shares(workload, simulation)
    return Prediction(
        engine, workload, limits, simulation, name_bottleneck(workload, limits, engine, shares), shares, assumed
    )


def default_engine(inputs: Inputs) -> str:
    """Return the kind of engine that is predicted where none is named: the one that people train with."""
    return engines_of(inputs)[-1]


def workload_of(inputs: Inputs, limits: Sequence[Limit], engine: str) -> tuple[Workload, list[dict[str, Any]]]:
    """Return the workload that the inputs describe, and what had to be assumed. Raises BadInput as ``predict`` does."""
    needed = (keys.MAX_ENV_WORKER, keys.NUM_REPEAT, keys.TRAIN_BATCH_SIZE)
    missing = [key for key in needed if inputs.value(key) is None]
    if missing:
        raise BadInput(
            f"{', '.join(missing)} not known",
            expected="a configuration",
            hint="FILE, --from FILE, or --max-env-worker N --num-repeat N --batch-size N",
        )
    check_parameters(inputs)
    if engine == CLASSIC:
        inputs = inputs.replace(CLASSIC_WORK, "classic mode")
    durations, assumed = _durations(inputs)
    batch, repeat = inputs.value(keys.TRAIN_BATCH_SIZE), inputs.value(keys.NUM_REPEAT)
    method = inputs.value(keys.METHOD) or ENOUGH_TASKS
    slots = _ceiling(limits, engine, but=keys.CLIENT_POOLS)
    clients, pool = inputs.value(keys.CLIENTS) or 1, inputs.value(keys.CLIENT_POOL)
    if engine == CLASSIC:
        pool = slots  # it has no clients
    elif pool is None:
        pool = 2 * slots
        assumed.append(
            assumption("client_pools", "never bind", "the clients' max_parallel; --clients N --client-pool N")
        )
    relevant = LIKELY_ASSUMED if inputs.value(names.VANISH) is None else (*LIKELY_ASSUMED, names.TIMEOUT)
    calls = ceiling_of(limits, engine, LLM_CALLS)
    if calls.value == 0:
        limit = next(limit for limit in limits if limit.name == calls.binding[0])
        raise BadInput(
            f"no LLM call could be served: {limit.name} is 0 ({limit.source})",
            expected="GPUs for at least one engine, with a KV cache for at least one request",
            hint="capacity.py fit FILE",
        )
    return Workload(
        durations=durations,
        slots=slots,
        pools=(pool,) * clients,
        batch=batch,
        repeat=repeat,
        method=method if method in METHODS else ENOUGH_TASKS,
        overhead=number(inputs, names.OVERHEAD),
        resume=number(inputs, names.RESUME),
        update=number(inputs, names.UPDATE),
        tasks_per_client=_tasks_per_client(inputs, batch, clients),
        agree_after=inputs.value(names.AGREE_AFTER) if method in AGREES else None,
        dummy_share=number(inputs, names.DUMMY_SHARE),
        vanish=number(inputs, names.VANISH),
        timeout=number(inputs, names.TIMEOUT),
        sweep=10.0 if engine == RELEASED else 0.0,
        llm_share=number(inputs, names.LLM_SHARE),
        llm_parallel=calls.value if calls.binding else None,
        claim_first=inputs.value(names.TASK_ORDER) != names.TASK_FIRST,
    ), [*assumed, *choices_assumed(inputs), *assumptions(inputs, relevant)]


def _durations(inputs: Inputs) -> tuple[Durations, list[dict[str, Any]]]:
    path = inputs.value(names.DURATIONS)
    if path is not None:
        return read_durations(path) if isinstance(path, str) else Durations.from_values(path), []
    mean = inputs.value(names.EPISODE_SECONDS)
    if mean is None:
        raise BadInput(
            "the duration of an episode is unknown, so no step time can be told",
            expected="--episode-seconds MEAN, with --episode-p95 S if it is known, or --durations FILE",
            hint=names.PARAMETERS[names.EPISODE_SECONDS].measure,
        )
    p95 = inputs.value(names.EPISODE_P95)
    if p95 is not None:
        return Durations.of(mean, p95=p95), [assumption("distribution", "lognormal", "--durations FILE")]
    return Durations.of(mean), [assumption("distribution", "exponential", "--episode-p95 SECONDS or --durations FILE")]


def _tasks_per_client(inputs: Inputs, batch: int, clients: int) -> int | None:
    """Return how many tasks a client may start in a step: by its throttle policy, or because it waits for its batch."""
    if inputs.value(names.CLIENT_LOOP) == names.BATCH:
        return -(-batch // clients)
    ratio = inputs.value(names.THROTTLE_RATIO)
    return None if ratio is None else math.ceil(ratio * batch)


def _ceiling(limits: Sequence[Limit], engine: str, but: str) -> int:
    """Return the lowest limit on running episodes but one. Raises BadInput if none is known."""
    value = ceiling_of([limit for limit in limits if limit.name != but], engine, RUNNING_EPISODES).value
    if value is None:
        raise BadInput("no limit on running episodes is known", hint="--max-env-worker N --num-repeat N")
    return value


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    """Return the same object with floats of four significant digits."""
    shown: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            value = _rounded(value)
        shown[key] = float(f"{value:.4g}") if isinstance(value, float) else value
    return shown
