"""Every limit on episodes and LLM calls at once, in one list, and which of them binds.

Three kinds of engine differ in what they enforce:

* ``documented``: ``ceil(max_env_worker / num_repeat) * num_repeat`` worker slots, nothing else;
* ``released``: that many loops at most, but loops for no more than ``train_batch_size`` tasks, on a
  pool of ``max_env_worker`` threads (AgentJet's ``native_parallel_worker.py``, read 2026-05-26);
* ``classic``: one batch of ``train_batch_size * num_repeat`` episodes on ``max_env_worker`` threads.

An episode makes one LLM call at a time, so a limit on LLM calls binds only where it lies below
the episodes that can run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from skillpack.capacity import inputs as keys
from skillpack.capacity.inputs import ASSUMED, KNOWN, UNKNOWN, Input, Inputs
from skillpack.capacity.parameters import THROTTLE_RATIO

DOCUMENTED, RELEASED, CLASSIC = "documented", "released", "classic"
SWARM_ENGINES = (DOCUMENTED, RELEASED)
EVERY_ENGINE = (DOCUMENTED, RELEASED, CLASSIC)
RUNNING_EPISODES, LLM_CALLS = "running_episodes", "llm_calls"

FORMULA = {
    DOCUMENTED: "ceil(max_env_worker / num_repeat) * num_repeat",
    RELEASED: "min(max_env_worker, min(train_batch_size, ceil(max_env_worker / num_repeat)) * num_repeat)",
    CLASSIC: "min(max_env_worker, train_batch_size * num_repeat)",
}


@dataclass(frozen=True)
class Limit:
    """One limit.

    ``caps`` says what it limits, ``engines`` which kinds of engine have it, ``binds_on`` on which of
    them it is the lowest. ``value`` is None where it is unknown. ``raised_by`` names what to change.
    """

    name: str
    value: int | None
    caps: str
    engines: tuple[str, ...]
    source: str
    known: str
    raised_by: str
    binds_on: tuple[str, ...] = ()

    @property
    def binds(self) -> bool | None:
        """Whether it is the lowest anywhere; None if the limit itself is unknown."""
        return None if self.value is None else bool(self.binds_on)

    def as_json(self) -> dict[str, Any]:
        """Return the limit as a JSON object."""
        return {**asdict(self), "binds": self.binds}


@dataclass(frozen=True)
class Ceiling:
    """What one kind of engine allows: ``value`` is exact only if no limit of the engine itself is unknown."""

    engine: str
    caps: str
    value: int | None
    exact: bool
    binding: tuple[str, ...]
    unknown: tuple[str, ...]


def documented_cap(max_env_worker: int, num_repeat: int) -> int:
    """Return the documented cap on running episodes, summed over all clients."""
    return -(-max_env_worker // num_repeat) * num_repeat


def nearest_multiples(max_env_worker: int, num_repeat: int) -> list[int]:
    """Return the multiples of ``num_repeat`` next to ``max_env_worker``: itself, or those below and above."""
    above = documented_cap(max_env_worker, num_repeat)
    return [above] if above == max_env_worker else [n for n in (above - num_repeat, above) if n > 0]


def engines_of(inputs: Inputs, engine: str | None = None) -> tuple[str, ...]:
    """Return the kinds of engine to report: the one that is known, else those of the mode."""
    if engine is not None:
        return (engine,)
    return (CLASSIC,) if inputs.value(keys.SWARM_MODE) is False else SWARM_ENGINES


def limits_of(inputs: Inputs, engines: Iterable[str]) -> list[Limit]:
    """Return every limit that the given kinds of engine have, and which of them binds where."""
    engines = tuple(engines)
    relevant = [
        replace(limit, engines=tuple(kind for kind in limit.engines if kind in engines))
        for limit in _all_limits(inputs)
    ]
    relevant = [limit for limit in relevant if limit.engines]
    bound: dict[str, list[str]] = {}
    for ceiling in ceilings(relevant):
        for name in ceiling.binding:
            bound.setdefault(name, []).append(ceiling.engine)
    return [replace(limit, binds_on=tuple(bound.get(limit.name, ()))) for limit in relevant]


def ceilings(limits: Iterable[Limit]) -> list[Ceiling]:
    """Return, for each kind of engine, the ceiling on running episodes and the one on LLM calls."""
    limits = list(limits)
    found = []
    for engine in EVERY_ENGINE:
        own = [limit for limit in limits if engine in limit.engines]
        if not own:
            continue
        running = _lowest(engine, RUNNING_EPISODES, own)
        calls = _lowest(engine, LLM_CALLS, own)
        if calls.value is None or (running.value is not None and calls.value >= running.value):
            calls = replace(calls, value=running.value, binding=())
        found += [running, replace(calls, exact=calls.exact and running.exact)]
    return found


def ceiling_of(limits: Iterable[Limit], engine: str, caps: str = RUNNING_EPISODES) -> Ceiling:
    """Return one ceiling. Raises StopIteration if ``limits`` has none of that engine."""
    return next(item for item in ceilings(limits) if item.engine == engine and item.caps == caps)


def _lowest(engine: str, caps: str, limits: list[Limit]) -> Ceiling:
    own = [limit for limit in limits if limit.caps == caps]
    values = [limit.value for limit in own if limit.value is not None]
    lowest = min(values, default=None)
    unknown = tuple(limit.name for limit in own if limit.value is None and limit.name not in keys.SURROUNDINGS)
    binding = tuple(limit.name for limit in own if limit.value is not None and limit.value == lowest)
    return Ceiling(engine, caps, lowest, not unknown, binding, unknown)


def _all_limits(inputs: Inputs) -> Iterator[Limit]:
    yield _computed(
        "engine_slots",
        RUNNING_EPISODES,
        SWARM_ENGINES,
        "ceil({} / {}) * {}",
        (keys.MAX_ENV_WORKER, keys.NUM_REPEAT, keys.NUM_REPEAT),
        inputs,
        lambda workers, repeat, _: documented_cap(workers, repeat),
        keys.MAX_ENV_WORKER,
    )
    workers = inputs[keys.MAX_ENV_WORKER]
    yield _given("thread_pool", RUNNING_EPISODES, (RELEASED, CLASSIC), workers, keys.MAX_ENV_WORKER)
    yield _computed(
        "batch",
        RUNNING_EPISODES,
        (RELEASED, CLASSIC),
        "{} * {}",
        (keys.TRAIN_BATCH_SIZE, keys.NUM_REPEAT),
        inputs,
        lambda batch, repeat: batch * repeat,
        keys.TRAIN_BATCH_SIZE,
    )
    yield from _optional(inputs)
    yield _computed(
        "max_num_seqs",
        LLM_CALLS,
        EVERY_ENGINE,
        "{} * ({} * {} // {})",
        (keys.MAX_NUM_SEQS, keys.N_GPUS_PER_NODE, keys.NNODES, keys.TENSOR_PARALLEL),
        inputs,
        lambda seqs, gpus, nodes, tp: seqs * (gpus * nodes // tp),
        keys.MAX_NUM_SEQS,
    )
    yield _given("kv_cache", LLM_CALLS, EVERY_ENGINE, inputs[keys.KV_SEQUENCES], keys.GPU_MEMORY_UTILIZATION)


def _optional(inputs: Inputs) -> Iterator[Limit]:
    """Yield the limits that some trainings do not have, or that lie outside the engine."""
    threads = inputs[keys.TRACKER_THREADS]
    if threads.known != UNKNOWN:
        yield _given("inference_tracker_threads", RUNNING_EPISODES, (RELEASED,), threads, keys.TRACKER_THREADS)
    if inputs[keys.OPEN_SLOTS].known != UNKNOWN:
        yield _given("open_slots", RUNNING_EPISODES, SWARM_ENGINES, inputs[keys.OPEN_SLOTS], keys.MAX_ENV_WORKER)
    processes = (keys.FASTAPI_THREADS, keys.FASTAPI_PROCESSES)
    if all(inputs[key].known != UNKNOWN for key in processes):
        yield _computed(
            "fastapi_threads",
            LLM_CALLS,
            (RELEASED,),
            "{} * {}",
            processes,
            inputs,
            lambda threads, processes: threads * processes,
            keys.FASTAPI_THREADS,
        )
    throttle = (THROTTLE_RATIO, keys.TRAIN_BATCH_SIZE, keys.NUM_REPEAT, keys.CLIENTS)
    if all(inputs[key].known != UNKNOWN for key in throttle):
        yield _computed(
            "throttle_policy",
            RUNNING_EPISODES,
            SWARM_ENGINES,
            "ceil({} * {}) * {} * {} clients",
            throttle,
            inputs,
            lambda ratio, batch, repeat, clients: math.ceil(ratio * batch) * repeat * clients,
            "SwarmThrottlePolicy.ratio or expected_batch_size",
        )
    for name, raised_by in keys.SURROUNDINGS.items():
        if inputs[name].known != UNKNOWN or name in keys.ALWAYS_LISTED:
            engines = SWARM_ENGINES if name == keys.CLIENT_POOLS else EVERY_ENGINE
            yield _given(name, RUNNING_EPISODES, engines, inputs[name], raised_by)


def _given(name: str, caps: str, engines: tuple[str, ...], item: Input, raised_by: str) -> Limit:
    return Limit(name, item.value, caps, engines, item.source, item.known, raised_by)


def _computed(
    name: str,
    caps: str,
    engines: tuple[str, ...],
    pattern: str,
    of: tuple[str, ...],
    inputs: Inputs,
    formula: Any,
    raised_by: str,
) -> Limit:
    """Return a limit that is ``formula`` of the inputs ``of``; unknown if one of them is, assumed if one is."""
    parts = [inputs[key] for key in of]
    text = pattern.format(
        *(key.rpartition(".")[2] if inputs[key].known == UNKNOWN else inputs[key].value for key in of)
    )
    if any(part.known == UNKNOWN for part in parts):
        return Limit(name, None, caps, engines, f"{text}: not given", UNKNOWN, raised_by)
    where = "; ".join(dict.fromkeys(part.source for part in parts))
    known = ASSUMED if any(part.known == ASSUMED for part in parts) else KNOWN
    return Limit(name, formula(*(part.value for part in parts)), caps, engines, f"{text}: {where}", known, raised_by)
