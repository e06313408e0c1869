"""The engine of a server: one training run at a time, started and stopped by clients."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from ajet.backbone.policies import make_policy
from ajet.backbone.settings import RunSettings, read_settings
from ajet.backbone.trainer_verl import Rollout, Trainer
from ajet.backbone.validation import Validation
from ajet.task_rollout.native_parallel_worker import count_slots
from ajet.tuner_lib.experimental.chaos import ChaosOptions
from ajet.tuner_lib.experimental.engine_status import BOOTING, OFFLINE
from ajet.tuner_lib.experimental.episode_pool import EpisodePool, Refused
from ajet.tuner_lib.experimental.oai_model_server import Sampling
from ajet.tuner_lib.experimental.swarm_overwatch_utils import CurrentBatchRolloutPoolInformation, EngineCapacity
from ajet.utils.config_utils import ConfigError
from ajet.utils.files import lock_file, replace_file

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EngineOptions:
    """How the reference engine is run; none of it is part of a configuration.

    ``slots`` is how the worker slots are counted (see ``count_slots``); relative paths of the
    configuration lie under ``base_dir``; ``overrides`` replaces settings of the configuration.
    """

    policy: str = "learn"
    seed: int = 0
    slots: str = "documented"
    base_dir: Path | None = None
    chaos: ChaosOptions = field(default_factory=ChaosOptions)
    overrides: Mapping[str, Any] = field(default_factory=dict)


class Engine:
    """Holds the synced configuration and runs the trainer on the pool."""

    def __init__(self, pool: EpisodePool, options: EngineOptions) -> None:
        self.pool = pool
        self.options = options
        self.policy = make_policy(options.policy, seed=options.seed)
        self.config_text: str | None = None
        self.model_path: str | None = None
        self.settings: RunSettings | None = None
        self.trainer: Trainer | None = None
        self.failure: BaseException | None = None
        self.run_id: str | None = None
        self._relaunch: Callable[[], None] | None = None
        self._restarting = False
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether a training run of this process is on."""
        return self._task is not None and not self._task.done()

    def sync_config(self, text: str) -> None:
        """Take a configuration for the next start.

        Raises Refused unless the engine is OFFLINE, and for a text that is no configuration:
        released servers accept that, and fail when it is too late to see why.
        """
        if self.pool.status.current != OFFLINE:
            raise Refused(400, f"Engine is not offline ({self.pool.status.current}). Stop it before a new config.")
        try:
            self.model_path = self._settings(text).model_path
        except ConfigError as error:
            raise Refused(400, f"The training config cannot be used: {error}") from None
        self.config_text = text

    def start(self) -> None:
        """Begin to train: BOOTING at once, ROLLING as soon as the run is ready.

        Raises Refused if the engine is not OFFLINE, has no configuration, or if another engine
        trains in the same experiment folder; OSError if that cannot be written.
        """
        if self.pool.status.current != OFFLINE:
            raise Refused(400, f"Engine is not offline. Current status: [{self.pool.status.current}].")
        if self.config_text is None:
            raise Refused(200, "No training config found")
        self.launch(self._settings(self.config_text), self.config_text)

    def _settings(self, text: str) -> RunSettings:
        options = self.options
        settings = read_settings(text, slots=options.slots, base_dir=options.base_dir)
        settings = replace(settings, **options.overrides)
        cap = count_slots(settings.max_env_worker, settings.num_repeat, settings.train_batch_size, options.slots)
        return replace(settings, cap=cap)

    def launch(
        self,
        settings: RunSettings,
        config_text: str,
        rollout: Rollout | None = None,
        validation: Validation | None = None,
    ) -> None:
        """Begin the run of these settings; without ``rollout`` swarm clients bring the episodes.

        Raises Refused if another engine trains in the same experiment folder or the policy cannot be made,
        OSError if the folder cannot be written; then nothing is held.
        """
        lock = lock_file(settings.experiment_dir / "engine.lock")
        if lock is None:
            raise Refused(200, f"Another engine trains in {settings.experiment_dir}; choose another experiment_name")
        with contextlib.ExitStack() as held:
            held.enter_context(lock)
            replace_file(settings.experiment_dir / "yaml_backup.yaml", config_text)
            try:
                policy = make_policy(self.options.policy, seed=self.options.seed)
            except ValueError as error:
                raise Refused(200, f"The policy cannot be made: {error}") from None
            trainer = Trainer(self.pool, policy, settings, rollout, validation)
            held.pop_all()
        self.settings = settings
        self.failure = None
        self.run_id = uuid.uuid4().hex
        self.policy = policy
        self.trainer = trainer
        self._relaunch = lambda: self.launch(settings, config_text, rollout, validation)
        self.pool.status.set(BOOTING)
        self._task = asyncio.create_task(trainer.fit())
        # a callback, for a task that is cancelled before its first step runs none of its own code
        self._task.add_done_callback(lambda task: self._ended(task, settings, lock))

    def _ended(self, task: asyncio.Task[None], settings: RunSettings, lock: IO[str]) -> None:
        lock.close()
        detail = f"finished after step {settings.total_steps}"
        if task.cancelled():
            detail = "stopped"
        elif (error := task.exception()) is not None:
            log.error("the training run failed", exc_info=error)
            self.failure = error
            detail = f"failed: {type(error).__name__}: {error}"
        self.pool.status.set(BOOTING if self._restarting else OFFLINE, detail=detail)

    def sync_early(self) -> None:
        """End the open step with what it has: clients see their step cut short, as when others fill the batch."""
        if self.trainer is not None and self.running:
            self.trainer.collection.cut_short = True
            self.pool.clients.on_change()

    async def restart(self) -> None:
        """Break the run off and begin it again from its files, as a crashed server that is started again.

        All claims are lost; the completed episodes of the open step are not. A run that cannot begin
        again leaves the engine OFFLINE, with the reason in the status.
        """
        if self._task is None or self._task.done() or self._restarting:
            return
        self._restarting = True
        try:
            self._task.cancel()
            await self.wait()
        finally:
            self._restarting = False
        if self._relaunch is None:  # stop() came meanwhile
            self.pool.status.set(OFFLINE, detail="stopped")
            return
        try:
            self._relaunch()
        except (Refused, OSError) as error:
            log.exception("the training run could not begin again")
            self.failure = error
            self.pool.status.set(OFFLINE, detail=f"failed: {type(error).__name__}: {error}")

    async def stop(self) -> None:
        """End the run and wait until it has; completed episodes of the open step stay in its journal."""
        self._relaunch = None
        if self._task is not None:
            self._task.cancel()
            await self.wait()
            self._task = None
        if self.pool.status.current != OFFLINE:
            self.pool.status.set(OFFLINE, detail="stopped")

    async def wait(self) -> None:
        """Return when the run has ended."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def sampling(self) -> Sampling:
        """Return the chat settings of the run, or the defaults before the first."""
        if self.settings is None:
            return Sampling()
        return Sampling(**{name: getattr(self.settings, name) for name in Sampling.__dataclass_fields__})

    def progress(self) -> CurrentBatchRolloutPoolInformation:
        """Return the counts of the open step and what bounds its running episodes."""
        if self.trainer is None or self.settings is None or not self.running:
            return CurrentBatchRolloutPoolInformation()
        information = self.trainer.collection.describe()
        settings = self.settings
        information.capacity = EngineCapacity(
            max_env_worker=settings.max_env_worker,
            num_repeat=settings.num_repeat,
            train_batch_size=settings.train_batch_size,
            cap=settings.cap,
            slots=settings.slots,
            idle_slots=self.pool.unclaimed,
            waiting_claims=self.pool.waiting,
        )
        return information
