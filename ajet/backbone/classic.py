"""A classic run: the engine reads the tasks, runs the user's workflow on them, and validates."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ajet.backbone.settings import RunSettings, settings_of
from ajet.backbone.validation import Validation
from ajet.schema.task import Task, WorkflowOutput
from ajet.task_reader import RouterTaskReader
from ajet.task_rollout.classic import ClassicRollout
from ajet.task_rollout.collection import Collection
from ajet.tuner_lib.experimental.engine_status import ROLLING
from ajet.tuner_lib.experimental.episode import EVAL, CompletedEpisode
from ajet.utils.config_tree import ConfigError, ConfigTree
from ajet.utils.config_utils import experiment_name_of, load_config
from ajet.utils.config_yaml import dump_text

if TYPE_CHECKING:
    from ajet.tuner_lib.experimental.swarm_server import SwarmServer


class ClassicRun:
    """Everything that one classic run needs, read and checked before it begins.

    Raises ConfigError for a configuration that cannot be used, ValueError for tasks that cannot be
    read, ImportError or AttributeError for a workflow that cannot be imported.
    """

    def __init__(self, conf: Path, exp_dir: Path, server: SwarmServer, *, seed: int = 0) -> None:
        self.server = server
        self.config = _load(conf, exp_dir)
        self.seed = seed
        reader_type = str(self.config.get("ajet.task_reader.type"))
        self.reader = RouterTaskReader(reader_type, self.config.get("ajet.task_reader"))
        self.rollout = ClassicRollout(server.pool, server.base_url, self.config)
        self.tasks: list[Task] = []
        if not self.config.get("ajet.trainer_common.val_only"):
            self.tasks = sorted(self.reader.task_reader.get_training_tasks(), key=lambda task: task.task_id)
        self.settings: RunSettings = settings_of(self.config, tasks=max(1, len(self.tasks)))
        batch = self.settings.train_batch_size
        if self.tasks and batch > len(self.tasks):
            raise ConfigError(
                f"ajet.data.train_batch_size is {batch}, but there are only {len(self.tasks)} training tasks; "
                "an epoch would have no batch"
            )
        self._order: list[Task] = []
        self._epoch = -1

    def launch(self) -> None:
        """Begin to train on the server's engine. Raises Refused and OSError as ``Engine.launch`` does."""
        validation = Validation.of(self.config, self.reader.get_validation_tasks, self._validate)
        text = dump_text(self.config.to_dict())
        self.server.engine.model_path = self.settings.model_path
        self.server.engine.launch(self.settings, text, rollout=self._collect, validation=validation)

    async def _collect(self, collection: Collection, on_completed: Callable[[CompletedEpisode], None]) -> None:
        def complete(episode: CompletedEpisode) -> None:
            on_completed(episode)
            collection.add(episode)

        pool = self.server.pool
        step = pool.status.global_step or 1
        pool.on_completed = complete
        try:
            # repeats of a dead engine's step are in the collection already
            await self.rollout.run(self._batch(step, collection), self.settings.num_repeat)
        finally:
            pool.on_completed = None
        if not len(collection):
            raise ValueError(f"no episode of step {step} can be trained on: none made a chat call that counts")

    async def _validate(self, tasks: list[Task], repeats: int) -> list[list[WorkflowOutput]]:
        assert self.server.pool.status.current == ROLLING
        return await self.rollout.run(tasks, repeats, EVAL)

    def _batch(self, step: int, collection: Collection) -> list[Task]:
        """Return the tasks of a step that are not complete yet; the order is fixed by seed and epoch."""
        epoch, place = divmod(step - 1, self.settings.steps_per_epoch)
        if epoch != self._epoch:
            self._order = list(self.tasks)
            random.Random(f"{self.seed}/{epoch}").shuffle(self._order)
            self._epoch = epoch
        size = self.settings.train_batch_size
        batch = self._order[place * size : (place + 1) * size]
        full = {task_id for task_id, group in collection.tasks.items() if len(group) >= self.settings.num_repeat}
        return [task for task in batch if task.task_id not in full]


def _load(conf: Path, exp_dir: Path) -> ConfigTree:
    if conf.suffix not in (".yaml", ".yml"):
        raise ConfigError(f"{conf}: the name of a configuration file ends in .yaml")
    config = load_config(conf, "classic")
    if config.get("ajet.enable_swarm_mode"):
        raise ConfigError(
            f"{conf} is a swarm configuration (ajet.enable_swarm_mode is true); its engine is started by "
            f"python -m ajet.swarm_cli start --conf {conf}, and clients bring the episodes"
        )
    name = experiment_name_of(config.to_dict(), conf)
    config.set("ajet.experiment_name", name)
    config.set("ajet.experiment_dir", str(exp_dir / name))
    config.set("ajet.backbone", "debug")
    return config
