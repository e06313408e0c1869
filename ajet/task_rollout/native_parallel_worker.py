"""The worker slots of a step: how many there are, and when they stop."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from ajet.task_rollout.collection import Collection
from ajet.tuner_lib.experimental.engine_status import ROLLING, ROLLING_POST
from ajet.tuner_lib.experimental.episode import CompletedEpisode
from ajet.tuner_lib.experimental.episode_pool import EpisodePool

SLOTS = ("documented", "released")


def count_slots(max_env_worker: int, num_repeat: int, train_batch_size: int, slots: str = "documented") -> int:
    """Return how many episodes can run at once, over all swarm clients.

    ``documented`` is ``ceil(max_env_worker / num_repeat) * num_repeat``. ``released`` is what
    released engines do: their loops are also bounded by the batch and share ``max_env_worker``
    threads, so it is ``min(max_env_worker, min(train_batch_size, ceil(max_env_worker /
    num_repeat)) * num_repeat)``. Raises ValueError for another name or a number below 1.
    """
    for name, value in [
        ("max_env_worker", max_env_worker),
        ("num_repeat", num_repeat),
        ("train_batch_size", train_batch_size),
    ]:
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    groups = math.ceil(max_env_worker / num_repeat)
    if slots == "documented":
        return groups * num_repeat
    if slots == "released":
        return min(max_env_worker, min(train_batch_size, groups) * num_repeat)
    raise ValueError(f"slots is {slots!r}; it is one of {', '.join(SLOTS)}")


async def rollout_swarm(
    pool: EpisodePool,
    collection: Collection,
    slots: int,
    on_completed: Callable[[CompletedEpisode], None] = lambda _: None,
) -> None:
    """Fill ``collection`` with the episodes that swarm clients complete.

    Starts ``slots`` worker slots; each registers an episode, waits for a client to claim and end
    it, and repeats. When the collection has enough, the engine enters ROLLING_POST, unclaimed
    episodes are withdrawn, claimed ones are waited for (their results count too), and the call
    returns. ``on_completed`` is called with each completed episode before it counts and before its
    client is answered.
    """
    enough = asyncio.Event()

    def check() -> None:
        if collection.finished(pool.clients):
            enough.set()

    def complete(episode: CompletedEpisode) -> None:
        on_completed(episode)
        collection.add(episode)
        check()

    async def slot() -> None:
        while pool.status.current == ROLLING and not enough.is_set():
            await pool.register().outcome

    pool.on_completed, pool.clients.on_change = complete, check
    workers = [asyncio.create_task(slot()) for _ in range(slots)]
    try:
        check()
        await enough.wait()
        pool.status.set(ROLLING_POST, global_step=pool.status.global_step)
        pool.withdraw_unclaimed()
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        pool.on_completed, pool.clients.on_change = None, lambda: None
