"""The step loop: collect episodes, update the policy, write the metrics, repeat.

Reads ``ajet.rollout.max_env_worker`` as the parallelism of the rollout, as the verl trainer of a
released AgentJet does; the update itself is the policy's (``ajet.backbone.policies``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ajet.backbone.metrics import step_metrics
from ajet.backbone.policies.base import Policy
from ajet.backbone.run_state import RunStore
from ajet.backbone.settings import RunSettings
from ajet.backbone.validation import Validation
from ajet.task_rollout.collection import Collection
from ajet.task_rollout.native_parallel_worker import rollout_swarm
from ajet.tuner_lib.experimental.engine_status import ROLLING, WEIGHT_SYNCING
from ajet.tuner_lib.experimental.episode import CompletedEpisode
from ajet.tuner_lib.experimental.episode_pool import EpisodePool
from ajet.utils.files import append_line
from ajet.utils.tracking import METRICS, Tracker, last_step, open_trackers

log = logging.getLogger(__name__)

Result = TypeVar("Result")


Rollout = Callable[[Collection, Callable[[CompletedEpisode], None]], Awaitable[None]]
"""Fills a collection in the status ROLLING and returns when the step has enough; as ``rollout_swarm``."""


class Trainer:
    """One training run on a pool of episodes; ``collection`` is that of the open step.

    Episodes come from swarm clients, or from ``rollout``; a classic run also has a ``validation``.
    """

    def __init__(
        self,
        pool: EpisodePool,
        policy: Policy,
        settings: RunSettings,
        rollout: Rollout | None = None,
        validation: Validation | None = None,
    ) -> None:
        self.pool = pool
        self.policy = policy
        self.settings = settings
        self.rollout = rollout or self._rollout_swarm
        self.validation = validation
        self.collection = self._new_collection()
        self.history: list[dict[str, float]] = []

    def _new_collection(self) -> Collection:
        return Collection(
            method=self.settings.sample_collection_method,
            train_batch_size=self.settings.train_batch_size,
            num_repeat=self.settings.num_repeat,
            max_cached_episodes=self.settings.max_cached_episodes,
        )

    async def fit(self) -> None:
        """Train until ``total_steps``; resume from what the run's folder holds.

        Episodes that were completed in a step that a dead engine left open count in that step.
        Raises OSError if the run's files cannot be written, ValueError for another policy's state.
        """
        settings = self.settings
        async with contextlib.AsyncExitStack() as files:
            files.push_async_callback(self.policy.close)
            store = RunStore(settings.experiment_dir, settings.checkpoint_dir)
            files.callback(store.close)
            trackers = open_trackers(
                settings.loggers,
                settings.experiment_dir,
                settings.project_name,
                settings.experiment_name,
                settings.train_lines,
            )
            for tracker in trackers:
                files.callback(tracker.close)
            await self._fit(store, trackers)

    async def _fit(self, store: RunStore, trackers: list[Tracker]) -> None:
        settings = self.settings

        def tell(step: int, metrics: dict[str, float]) -> None:
            self.history.append(metrics)
            for tracker in trackers:
                tracker.log(step, metrics)

        state = store.load()
        if state.metrics and last_step(settings.experiment_dir / METRICS) < state.step:
            tell(state.step, state.metrics)  # the engine died between the end of the step and its metrics
        if state.policy is not None:
            self.policy.load(state.policy)
            log.info("resumed behind step %d with %d episodes of the next", state.step, len(state.episodes))
        if self.validation and (self.validation.only or (self.validation.before_train and state.step == 0)):
            tell(state.step, await self._validate(state.step))
            if self.validation.only:
                return
        kept = state.episodes
        for step in range(state.step + 1, settings.total_steps + 1):
            metrics = await self._step(step, store, kept)
            kept = []
            if self.validation and self.validation.due(step, settings.total_steps):
                metrics = {**await self._validate(step), **metrics}
            tell(step, metrics)

    async def _rollout_swarm(self, collection: Collection, on_completed: Callable[[CompletedEpisode], None]) -> None:
        await rollout_swarm(self.pool, collection, self.settings.cap, on_completed)

    async def _validate(self, step: int) -> dict[str, float]:
        assert self.validation is not None
        began = time.perf_counter()
        self.pool.status.set(ROLLING, global_step=step)
        metrics = await self.validation.metrics(step)
        self.pool.status.set(WEIGHT_SYNCING, global_step=step)
        if self.settings.val_lines:
            append_line(self.settings.val_lines, repr({**metrics, "target_dataset_name": "main_val_dataset"}))
        return {**metrics, "timing_s/testing": time.perf_counter() - began}

    async def _step(self, step: int, store: RunStore, kept: list[CompletedEpisode]) -> dict[str, float]:
        settings, timing, start = self.settings, {}, time.perf_counter()
        self.collection = self._new_collection()
        for episode in kept:
            self.collection.add(episode)
            self.pool.note_ended(episode)
        self.pool.status.set(ROLLING, global_step=step)
        await self.rollout(self.collection, lambda episode: store.record(step, episode))
        timing["gen"] = time.perf_counter() - start
        self.pool.status.set(WEIGHT_SYNCING, global_step=step)
        began = time.perf_counter()
        collected = [one for group in self.collection.tasks.values() for one in group]
        batch = self.collection.batch()
        # no chat call runs while weights sync, so the policy may be changed in a thread
        update = await in_thread(self.policy.update, batch, settings.kl_coef)
        timing["update_actor"] = time.perf_counter() - began
        began = time.perf_counter()
        timing["step"] = began - start
        metrics = step_metrics(
            collected,
            batch,
            update=update,
            timing=timing,
            step=step,
            epoch=(step - 1) // settings.steps_per_epoch,
            max_response_length=settings.max_response_length,
        )
        await in_thread(self._save, step, store, metrics)
        return {**metrics, "timing_s/save_checkpoint": time.perf_counter() - began}

    def _save(self, step: int, store: RunStore, metrics: dict[str, float]) -> None:
        policy = self.policy.state()
        settings = self.settings
        if step == settings.total_steps or (settings.save_freq > 0 and step % settings.save_freq == 0):
            store.save_checkpoint(step, policy)
        store.finish_step(step, policy, metrics)


async def in_thread(function: Callable[..., Result], *args: Any) -> Result:
    """Call a function in a thread and return its result; who cancels this waits until it is done.

    A thread cannot be broken off, and the files that it writes must not be closed under it.
    """
    work = asyncio.ensure_future(asyncio.to_thread(function, *args))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise
