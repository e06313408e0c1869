"""The snapshot of a running step that overwatch, throttled clients and the capacity report read."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ActiveSwarmClient(BaseModel):
    """A swarm client that has ended an episode in this step, and whether it agreed to sync weights."""

    client_uuid: str
    last_activity_at: float
    allowed_sync_weight: bool = False


class SwarmClientInstruction(BaseModel):
    """What the engine is told about its clients."""

    active_clients: list[ActiveSwarmClient] = Field(default_factory=list)


class EngineCapacity(BaseModel):
    """What bounds the running episodes of a reference engine (additive: released servers do not send it).

    ``cap`` counts episodes. ``slots`` is ``documented`` (``ceil(max_env_worker / num_repeat) *
    num_repeat``) or ``released`` (also bounded by the batch and by the thread pool). ``idle_slots``
    are the episodes that wait to be claimed, ``waiting_claims`` the claims that wait for an episode.
    """

    max_env_worker: int
    num_repeat: int
    train_batch_size: int
    cap: int
    slots: str
    idle_slots: int = 0
    waiting_claims: int = 0


class CurrentBatchRolloutPoolInformation(BaseModel):
    """How far the current step has come; every field has a default, as released clients expect."""

    sample_collection_method: str = ""
    completed_episodes: int = 0
    completed_episode_target: int = 0
    completed_tasks: int = 0
    completed_task_target: int = 0
    completed_non_dummy_tasks: int = 0
    completed_non_dummy_task_target: int = 0
    task_expected_num_repeat: int = 0
    completed_tasks_details: dict[str, list[str]] = Field(default_factory=dict)
    completed_tasks_rewards: dict[str, list[float]] = Field(default_factory=dict)
    completed_tasks_client_uuids: dict[str, list[str]] = Field(default_factory=dict)
    running_episode_details: dict[str, dict[str, str]] | None = None
    engine_status: str | None = None
    global_step: int | None = None
    booting_start_time: float | None = None
    training_model_path: str | None = None
    swarm_client_instruction: SwarmClientInstruction = Field(default_factory=SwarmClientInstruction)
    capacity: EngineCapacity | None = None
