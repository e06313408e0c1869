"""The validation passes of a classic run and their metrics."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ajet.schema.task import Task, WorkflowOutput
from ajet.utils.config_tree import ConfigTree

Run = Callable[[list[Task], int], Awaitable[list[list[WorkflowOutput]]]]

CLIP_SEED = 42


@dataclass(frozen=True)
class Validation:
    """When the validation tasks are run, and how often each: ``ajet.trainer_common`` of a configuration."""

    tasks: Callable[[], list[Task]]
    run: Run
    before_train: bool
    only: bool
    every: int
    repeats: int
    most_tasks: int | None
    clip: str

    @classmethod
    def of(cls, config: ConfigTree, tasks: Callable[[], list[Task]], run: Run) -> Validation:
        """Read the settings; ``run(tasks, repeats)`` runs episodes and returns their outputs by task."""

        def get(key: str) -> object:
            return config.get(f"ajet.trainer_common.{key}")

        most = get("val_max_num_task_each_validation")
        return cls(
            tasks=tasks,
            run=run,
            before_train=bool(get("val_before_train")),
            only=bool(get("val_only")),
            every=int(str(get("test_freq"))),
            repeats=int(str(get("val_pass_n"))),
            most_tasks=None if most is None else int(str(most)),
            clip=str(get("val_max_num_task_clip_method")),
        )

    def due(self, step: int, last_step: int) -> bool:
        """Tell whether a pass follows the update of ``step``: every so many steps, and after the last."""
        return step == last_step or (self.every > 0 and step % self.every == 0)

    async def metrics(self, step: int) -> dict[str, float]:
        """Run a pass and return its metrics."""
        outputs = await self.run(self._chosen(), self.repeats)
        return validation_metrics([[float(one.reward) for one in group] for group in outputs], step, self.repeats)  # type: ignore[arg-type]

    def _chosen(self) -> list[Task]:
        tasks = self.tasks()
        if self.most_tasks is None or len(tasks) <= self.most_tasks:
            return tasks
        if self.clip == "first_n":
            return tasks[: self.most_tasks]
        seed = CLIP_SEED if self.clip == "fix_seed_random_n" else None
        ordered = sorted(tasks, key=lambda task: task.task_id)
        return random.Random(seed).sample(ordered, self.most_tasks)


def validation_metrics(rewards: Sequence[Sequence[float]], step: int, repeats: int) -> dict[str, float]:
    """Return the metrics of a pass over groups of rewards; a reward of at least 1 is a success.

    ``task_pass_rate@k`` is the chance that one of k episodes of a task succeeds, averaged over the
    tasks: ``1 - C(n - c, k) / C(n, k)`` for c successes in n (Chen et al. 2021, arXiv:2107.03374).
    """
    groups = [group for group in rewards if group]
    every = [reward for group in groups for reward in group]
    successes = [sum(reward >= 1 for reward in group) for group in groups]
    passed = sum(count > 0 for count in successes)
    perfect = sum(count == len(group) for count, group in zip(successes, groups, strict=True))
    total = max(1, len(groups))

    def rate(k: int) -> float:
        chances = [
            1 - math.comb(len(group) - count, k) / math.comb(len(group), k)
            for group, count in zip(groups, successes, strict=True)
            if len(group) >= k
        ]
        return statistics.fmean(chances) if chances else 0.0

    metrics: dict[str, float] = {
        "global_steps": step,
        "pass_n": repeats,
        "total_tasks": len(groups),
        "num_all_success_tasks": perfect,
        f"num_pass_n_tasks(pass@{repeats})": passed,
        "task_pass_rate@1": rate(1),
        f"task_pass_rate@{repeats}": passed / total,
        f"task_pass_rate@{repeats}-all-pass": perfect / total,
        "mean_reward": statistics.fmean(every) if every else 0.0,
        "std_reward": statistics.pstdev(every) if every else 0.0,
    }
    metrics.update({f"task_pass_rate@{k}": rate(k) for k in (2, 4, 8, 16) if k < repeats})
    return metrics
