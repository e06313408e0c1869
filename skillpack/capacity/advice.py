"""What to do about the limits: one sentence per finding, most important first."""

from __future__ import annotations

from collections.abc import Sequence

from skillpack.capacity import inputs as keys
from skillpack.capacity.inputs import Inputs
from skillpack.capacity.limits import (
    CLASSIC,
    RELEASED,
    Limit,
    ceiling_of,
    documented_cap,
    nearest_multiples,
)


def advise(inputs: Inputs, limits: Sequence[Limit], engines: Sequence[str], *, slots_bind: bool = True) -> list[str]:
    """Return what to change about a configuration, and what would be in vain.

    ``slots_bind`` is false where it was seen that something else holds the episodes back now.
    """
    advice = []
    workers, repeat = inputs.value(keys.MAX_ENV_WORKER), inputs.value(keys.NUM_REPEAT)
    batch = inputs.value(keys.TRAIN_BATCH_SIZE)
    if CLASSIC not in engines and workers is not None and repeat is not None:
        advice += _divisibility(workers, repeat)
    if RELEASED in engines and workers is not None and repeat is not None:
        advice += _batch(workers, repeat, batch)
    for limit in limits:
        if limit.name in ("inference_tracker_threads", *keys.SURROUNDINGS) and _binds_first(limit, limits):
            advice.append(
                f"{limit.name} {limit.value} ({limit.source}) binds before the engine does: raise {limit.raised_by}."
            )
    for engine in engines if slots_bind else ():
        if {"engine_slots", "thread_pool"} & set(ceiling_of(limits, engine).binding):
            advice.append(
                f"On a {engine} engine max_env_worker binds: to run more episodes raise it"
                " (a multiple of num_repeat) and restart the engine; see: capacity.py plan --target N."
            )
            break
    if CLASSIC not in engines:
        advice.append("Batch size, num_repeat, the number of clients and their pools never raise the cap.")
    return advice


def _binds_first(limit: Limit, limits: Sequence[Limit]) -> bool:
    """Tell whether a limit beside the engine's slots is lower than they are, not only as low."""
    slots = [
        other.value for other in limits if other.name in ("engine_slots", "thread_pool") and other.value is not None
    ]
    return bool(limit.binds) and limit.value is not None and all(limit.value < value for value in slots)


def _divisibility(workers: int, repeat: int) -> list[str]:
    multiples = nearest_multiples(workers, repeat)
    if multiples == [workers]:
        return []
    choices = " or ".join(str(multiple) for multiple in multiples)
    return [
        f"max_env_worker {workers} is not a multiple of num_repeat {repeat}: set {choices};"
        f" {workers} already gives {documented_cap(workers, repeat)} slots by the documented rule,"
        f" and released engines leave {documented_cap(workers, repeat) - workers} of them without a thread."
    ]


def _batch(workers: int, repeat: int, batch: int | None) -> list[str]:
    groups = -(-workers // repeat)
    if batch is None:
        return [
            f"train_batch_size is unknown: a released engine runs min({workers}, train_batch_size * {repeat}) at most,"
            f" so below train_batch_size {groups} the batch binds there; give --batch-size."
        ]
    if batch >= groups:
        return []
    return [
        f"On a released engine the batch binds: train_batch_size {batch} * num_repeat {repeat} ="
        f" {batch * repeat} running episodes; max_env_worker above {batch * repeat} brings nothing there"
        f" unless train_batch_size rises to {groups}."
    ]
