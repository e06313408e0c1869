"""What a training example is, and what a workflow makes of it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Task(BaseModel):
    """One training example; episodes with the same ``task_id`` form one group for the advantage."""

    main_query: str = ""
    init_messages: list[dict[str, Any]] = Field(default_factory=list)
    task_id: str = ""
    env_type: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)


class WorkflowTask(BaseModel):
    """A task as one episode of a classic workflow sees it."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    env_type: str = ""
    task_id: str = ""
    task_thread_index: int = 0
    task_batch_index: int = 0
    task_tag: str = ""
    episode_uuid: str = ""
    observation_window: dict[str, Any] = Field(default_factory=dict)
    llm_inference_fn: Any = None
    tokenizer: Any = None
    task: Task = Field(default_factory=Task)
    gym_env: Any = None


class WorkflowOutput(BaseModel):
    """What an episode came to.

    ``reward`` is the number that is trained on; on the wire it may also be a list or null, which
    ``end_episode`` refuses. ``metadata["task_id"]`` names the group. ``log_metrics`` may hold
    ``tool_stats`` and ``reward_stats``.
    """

    reward: float | list[float] | None = None
    is_success: bool | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    log_metrics: dict[str, float | list[float] | dict[str, Any]] = Field(default_factory=dict)
