"""What a step has collected so far, and when it has enough.

The five methods are those of ``ajet.swarm_mode_sample_collection_method``; an unknown name means
``rollout_until_finish_enough_tasks``, as on released engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ajet.tuner_lib.experimental.episode import CompletedEpisode
from ajet.tuner_lib.experimental.swarm_overwatch_utils import ActiveSwarmClient, CurrentBatchRolloutPoolInformation

DEFAULT_METHOD = "rollout_until_finish_enough_tasks"
NON_DUMMY_METHOD = "rollout_until_finish_enough_non_dummy_tasks"


def is_dummy(rewards: Iterable[float]) -> bool:
    """Tell whether a group has no learning signal: fewer than two rewards, or all of them equal."""
    return len(set(rewards)) < 2


@dataclass
class Collection:
    """The completed train episodes of one step, by task; ``cut_short`` ends the step with what there is.

    ``train_batch_size`` counts tasks, ``num_repeat`` episodes per task, ``max_cached_episodes``
    episodes in all.
    """

    method: str
    train_batch_size: int
    num_repeat: int
    max_cached_episodes: int = 9999
    tasks: dict[str, list[CompletedEpisode]] = field(default_factory=dict)
    discarded: int = 0
    cut_short: bool = False

    def __post_init__(self) -> None:
        if self.method not in STOP_CONDITIONS:
            self.method = DEFAULT_METHOD

    def __len__(self) -> int:
        return sum(len(group) for group in self.tasks.values())

    def add(self, episode: CompletedEpisode) -> None:
        """Take one more completed episode.

        Where released engines throw the whole cache away when it is full, full groups without a
        learning signal make room first, and ``finished`` is true if that is not enough.
        """
        self.tasks.setdefault(episode.task_id, []).append(episode)
        if len(self) > self.max_cached_episodes and self.method == NON_DUMMY_METHOD:
            for task_id, group in list(self.tasks.items()):
                if len(group) >= self.num_repeat and is_dummy(one.reward for one in group):
                    self.discarded += len(self.tasks.pop(task_id))

    def full_groups(self) -> list[list[CompletedEpisode]]:
        """Return the groups that have all their repeats."""
        return [group for group in self.tasks.values() if len(group) >= self.num_repeat]

    def non_dummy_groups(self) -> list[list[CompletedEpisode]]:
        """Return the full groups whose rewards differ."""
        return [group for group in self.full_groups() if not is_dummy(one.reward for one in group)]

    def finished(self, clients: Iterable[ActiveSwarmClient]) -> bool:
        """Tell whether the step has enough, by its method; ``clients`` are the active ones."""
        if self.cut_short and len(self):
            return True
        return len(self) > self.max_cached_episodes or STOP_CONDITIONS[self.method](self, list(clients))

    def batch(self) -> list[CompletedEpisode]:
        """Return the episodes to train on.

        Surplus episodes and groups with too few repeats are trained on too; only the non-dummy
        method drops groups without a learning signal.
        """
        groups = self.tasks.values()
        if self.method == NON_DUMMY_METHOD:
            return [one for group in groups if not is_dummy(one.reward for one in group) for one in group]
        return [one for group in groups for one in group]

    def describe(self) -> CurrentBatchRolloutPoolInformation:
        """Return the counts, targets and groups in the form of the wire."""
        return CurrentBatchRolloutPoolInformation(
            sample_collection_method=self.method,
            completed_episodes=len(self),
            completed_episode_target=self.train_batch_size * self.num_repeat,
            completed_tasks=len(self.full_groups()),
            completed_task_target=self.train_batch_size,
            completed_non_dummy_tasks=len(self.non_dummy_groups()),
            completed_non_dummy_task_target=self.train_batch_size,
            task_expected_num_repeat=self.num_repeat,
            completed_tasks_details={task: [one.episode_uuid for one in group] for task, group in self.tasks.items()},
            completed_tasks_rewards={task: [one.reward for one in group] for task, group in self.tasks.items()},
            completed_tasks_client_uuids={
                task: [one.client_uuid for one in group] for task, group in self.tasks.items()
            },
        )


STOP_CONDITIONS: dict[str, Callable[[Collection, list[ActiveSwarmClient]], bool]] = {
    "rollout_until_finish_enough_episodes": lambda step, _: len(step) >= step.train_batch_size * step.num_repeat,
    DEFAULT_METHOD: lambda step, _: len(step.full_groups()) >= step.train_batch_size,
    NON_DUMMY_METHOD: lambda step, _: len(step.non_dummy_groups()) >= step.train_batch_size,
    "rollout_until_any_client_agree_sync_weight": lambda _, clients: any(one.allowed_sync_weight for one in clients),
    "rollout_until_all_clients_agree_sync_weight": lambda _, clients: (
        bool(clients) and all(one.allowed_sync_weight for one in clients)
    ),
}
AGREE_METHODS = ("rollout_until_any_client_agree_sync_weight", "rollout_until_all_clients_agree_sync_weight")
