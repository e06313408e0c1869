"""Loops over tasks that simple client scripts need no executor for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.as_oai_baseurl_apikey import OpenaiBaseUrlAndApiKey
from ajet.utils.thread_executors import PeriodicDrainThreadPoolExecutor, call_until_success

if TYPE_CHECKING:
    from ajet.tuner_lib.experimental.swarm_client import SwarmClient

T = TypeVar("T")
R = TypeVar("R")


def run_episodes_until_all_complete(
    tasks: Sequence[T], func: Callable[[T], R], max_workers: int | None = None, auto_retry: bool = True
) -> list[R]:
    """Run ``func`` on all tasks at once, or ``max_workers`` at a time, and return the results in order.

    With ``auto_retry`` a call that raises is made again until it succeeds; without, the first
    error is raised when all have run.
    """
    if not tasks:
        return []
    with ThreadPoolExecutor(max_workers=max_workers or len(tasks)) as pool:
        if auto_retry:
            futures = [pool.submit(call_until_success, func, task) for task in tasks]
        else:
            futures = [pool.submit(func, task) for task in tasks]
        return [future.result() for future in futures]


def auto_train_with_dataset(
    dataset: Any,
    swarm_worker: SwarmClient,
    execute_agent: Callable[[Task, OpenaiBaseUrlAndApiKey], WorkflowOutput],
    local_grpo_n: int = 2,
    remote_batch_size: int = 8,
) -> None:
    """Train on all training tasks of ``dataset`` (a task reader), ``local_grpo_n`` episodes each.

    ``execute_agent`` runs one episode. An episode that raises is aborted and run again.
    """

    def episode(task: Task) -> float | list[float] | None:
        episode_uuid, model = swarm_worker.begin_episode()
        try:
            output = execute_agent(task, model)
            swarm_worker.end_episode(task, episode_uuid, output)
        except Exception:
            swarm_worker.abort_episode(episode_uuid)
            raise
        return output.reward

    tasks: Iterable[Task] = dataset.generate_training_tasks()
    with PeriodicDrainThreadPoolExecutor(workers=remote_batch_size * local_grpo_n) as executor:
        for task in tasks:
            for _ in range(local_grpo_n):
                executor.submit_with_periodic_drain(episode, task)
        executor.drain()
