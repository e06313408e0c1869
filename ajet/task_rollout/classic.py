"""The rollout of a classic run: the engine itself runs the user's workflow on the tasks of a batch."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ajet.schema.task import Task, WorkflowOutput, WorkflowTask
from ajet.tuner import AjetTuner
from ajet.tuner_lib.as_oai_baseurl_apikey import OpenaiBaseUrlAndApiKey
from ajet.tuner_lib.experimental.engine_status import ROLLING
from ajet.tuner_lib.experimental.episode import TRAIN, Episode
from ajet.tuner_lib.experimental.episode_pool import EpisodePool, Refused, finite_reward
from ajet.tuner_lib.experimental.interchange_utils import ClaimEpisodeRequest, EndEpisodeRequest
from ajet.utils.config_tree import ConfigTree
from ajet.utils.dynamic_import import dynamic_import
from ajet.workflow import Workflow

log = logging.getLogger(__name__)

ATTEMPTS = 3
"""How often a workflow may fail on one episode before the run fails (value of released engines)."""

CLIENT = "classic"

T = TypeVar("T")


class WorkflowFailed(Exception):
    """A workflow failed on every attempt; the message names it, the task and the last error."""


class ClassicRollout:
    """Runs episodes of a workflow on an engine in this process, each in a thread with its own event loop.

    ``server_url`` is where the chat calls of the workflows go; at most ``ajet.rollout.max_env_worker``
    episodes run at once. Raises ValueError, ImportError or AttributeError if the workflow cannot be imported.
    """

    def __init__(self, pool: EpisodePool, server_url: str, config: ConfigTree) -> None:
        self.pool = pool
        self.server_url = server_url
        self.config = config
        self.workflow: type[Workflow] = dynamic_import(str(config.get("ajet.rollout.user_workflow")))
        self._places = asyncio.Semaphore(int(config.get("ajet.rollout.max_env_worker")))
        self._judge: Any = None

    async def run(self, tasks: Iterable[Task], repeats: int, episode_type: str = TRAIN) -> list[list[WorkflowOutput]]:
        """Run ``repeats`` episodes of each task; return their outputs by task.

        An episode that the workflow terminated has none. Raises WorkflowFailed.
        """
        groups = [
            [asyncio.create_task(self._episode(task, number, repeat, episode_type)) for repeat in range(repeats)]
            for number, task in enumerate(tasks)
        ]
        running = [one for group in groups for one in group]
        try:
            await asyncio.gather(*running)
        finally:
            for one in running:
                one.cancel()
            self.pool.withdraw_unclaimed()
        return [[output for one in group if (output := one.result()) is not None] for group in groups]

    async def _episode(self, task: Task, batch_index: int, repeat: int, episode_type: str) -> WorkflowOutput | None:
        async with self._places:
            for attempt in range(1, ATTEMPTS + 1):
                episode = self._claim(episode_type)
                try:
                    return await self._attempt(task, batch_index, repeat, episode)
                except Exception as error:
                    self.pool.abort(episode.episode_uuid, CLIENT)
                    name = self.workflow.__qualname__
                    if attempt == ATTEMPTS:
                        raise WorkflowFailed(
                            f"{name} failed {ATTEMPTS} times on task {task.task_id!r}: {type(error).__name__}: {error}"
                        ) from error
                    log.warning("%s failed on task %r, attempt %d of %d", name, task.task_id, attempt, ATTEMPTS)
        raise AssertionError("unreachable")

    def _claim(self, episode_type: str) -> Episode:
        request = ClaimEpisodeRequest(
            client_uuid=CLIENT,
            episode_type=episode_type,
            discard_episode_timeout=float(self.config.get("ajet.task_runner.wrapper_multiprocessing_timeout") or 3600),
        )
        if self.pool.status.current != ROLLING:
            raise WorkflowFailed(f"the engine is in {self.pool.status.current}")
        episode = self.pool.claim_now(request)
        if episode is None:
            self.pool.register()
            episode = self.pool.claim_now(request)
        assert episode is not None
        return episode

    async def _attempt(self, task: Task, batch_index: int, repeat: int, episode: Episode) -> WorkflowOutput | None:
        workflow = self.workflow(name="ajet-workflow")
        model = OpenaiBaseUrlAndApiKey(
            base_url=f"{self.server_url}/v1", api_key=episode.api_key, episode_uuid=episode.episode_uuid
        )
        tuner = AjetTuner(
            model,
            trainable_targets=workflow.trainable_targets,
            enable_interchange_server=bool(self.config.get("ajet.enable_interchange_server")),
            model_name=str(self.config.get("ajet.model.path")),
        )
        workflow_task = WorkflowTask(
            env_type=task.env_type,
            task_id=task.task_id,
            task_thread_index=repeat,
            task_batch_index=batch_index,
            task_tag=f"T{task.task_id}#R{repeat}",
            episode_uuid=episode.episode_uuid,
            task=task,
        )
        output = await in_daemon_thread(lambda: asyncio.run(_execute(workflow, workflow_task, tuner)))
        if tuner.terminated:
            self.pool.abort(episode.episode_uuid, CLIENT)
            return None
        if not isinstance(output, WorkflowOutput):
            raise TypeError(f"execute() returned {type(output).__name__}; expected a WorkflowOutput")
        if output.reward is None:
            output.reward, output.is_success = await in_daemon_thread(lambda: self._judged(workflow_task, output))
        output.metadata["task_id"] = task.task_id
        try:
            warning = self.pool.end(
                EndEpisodeRequest(
                    client_uuid=CLIENT,
                    episode_uuid=episode.episode_uuid,
                    workflow_output=output,
                    task_id=task.task_id,
                )
            )
        except Refused as refused:
            raise ValueError(refused.detail) from None
        if warning:
            log.warning("task %r: %s", task.task_id, warning)
        output.reward = finite_reward(output)
        return output

    def _judged(self, workflow_task: WorkflowTask, output: WorkflowOutput) -> tuple[Any, bool]:
        protocol = self.config.get("ajet.task_judge.judge_protocol")
        if self._judge is None:
            try:
                self._judge = dynamic_import(str(protocol))(self.config)
            except (ImportError, AttributeError, ValueError) as error:
                raise ValueError(
                    f"the workflow returned no reward, and the judge ajet.task_judge.judge_protocol = {protocol!r} "
                    f"cannot be loaded ({error}); return a reward, or name a judge of your own"
                ) from error
        reward, is_success = self._judge.compute_reward(workflow_task, output)
        return reward, is_success


async def _execute(workflow: Workflow, workflow_task: WorkflowTask, tuner: AjetTuner) -> WorkflowOutput:
    try:
        return await workflow.execute(workflow_task, tuner)
    finally:
        await tuner.close()


def in_daemon_thread(function: Callable[[], T]) -> asyncio.Future[T]:
    """Run ``function`` in a thread that does not keep the process alive, and return a future of its result."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def body() -> None:
        result, failure = None, None
        try:
            result = function()
        except StopIteration as error:  # a future cannot carry it
            failure = RuntimeError(f"StopIteration: {error}")
        except BaseException as error:
            failure = error  # type: ignore[assignment]
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=body, name="episode", daemon=True).start()
    return future
