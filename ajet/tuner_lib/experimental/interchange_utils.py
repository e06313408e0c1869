"""The bodies of the swarm protocol: what clients and server send each other.

Field names, defaults and endpoints are those of released AgentJet servers. Fields marked
*additive* are ours: optional in requests, ignored by released servers and clients.
"""

from __future__ import annotations

import time

from pydantic import BaseModel, Field

from ajet.schema.task import WorkflowOutput
from ajet.tuner_lib.experimental.swarm_overwatch_utils import (
    ActiveSwarmClient,
    CurrentBatchRolloutPoolInformation,
    SwarmClientInstruction,
)

__all__ = [
    "ActiveSwarmClient",
    "AgreeSyncWeightRequest",
    "BoolResponse",
    "CanContinueEpisodeRequest",
    "CanContinueEpisodeResponse",
    "CheckWhetherEpisodeClaimedRequest",
    "ClaimEpisodeRequest",
    "ClaimEpisodeResponse",
    "CurrentBatchRolloutPoolInformation",
    "EndEpisodeRequest",
    "EndEpisodeResponse",
    "EngineStatusResponse",
    "EpisodeBufferResponse",
    "EpisodeStatus",
    "PushVerboseLogRequest",
    "RegisterEpisodeRequest",
    "SwarmClientInstruction",
    "SwarmThrottlePolicy",
    "SyncTrainConfigRequest",
    "UpdateEngineStatusRequest",
    "VerboseLogEntry",
    "VerboseLogsResponse",
]


class SwarmThrottlePolicy(BaseModel):
    """A client's promise not to run ahead of the others; the server stores only ``current_task_id``."""

    ratio: float = 1.5
    expected_batch_size: int
    expected_num_repeat: int
    current_task_id: str


class SyncTrainConfigRequest(BaseModel):
    """The merged configuration, as ``AgentJetJob.dump_job_as_yaml`` writes it."""

    yaml_as_string: str


class UpdateEngineStatusRequest(BaseModel):
    """A status that an engine outside this process reports."""

    engine_status: str = ""
    engine_status_detail: str | None = None
    global_step: int | None = None


class EngineStatusResponse(BaseModel):
    """The engine status.

    ``revision`` (additive) grows with each change and can be waited on; ``run`` (additive) differs
    with each start of the engine, and claims are good within one run only.
    """

    engine_status: str
    engine_status_detail: str | None = None
    global_step: int | None = None
    revision: int = 0
    run: str | None = None


class BoolResponse(BaseModel):
    """Yes, or no and why."""

    success: bool
    failure_reason: str = ""


class RegisterEpisodeRequest(BaseModel):
    """An episode that an engine outside this process offers."""

    episode_uuid: str
    openai_base_url: str = ""
    openai_api_key: str = ""
    zmq_listen_result_addr: str = ""


class ClaimEpisodeRequest(BaseModel):
    """A client asks for an episode.

    ``discard_episode_timeout`` (seconds) is how long the episode may stand idle before it is
    given to somebody else. ``wait_seconds`` (additive) makes the server hold the answer until an
    episode is there, for at most that long.
    """

    client_uuid: str
    episode_type: str
    discard_episode_timeout: float
    throttle_policy: SwarmThrottlePolicy | None = None
    wait_seconds: float = 0.0


class ClaimEpisodeResponse(BaseModel):
    """A claimed episode with the base URL and key for its chat calls, or ``fail_cause``.

    ``waits`` (additive) tells that this server honours ``wait_seconds``.
    """

    success: bool
    client_uuid: str
    episode_uuid: str
    openai_base_url: str = ""
    openai_api_key: str = ""
    fail_cause: str = ""
    waits: bool = False


class EndEpisodeRequest(BaseModel):
    """The result of a claimed episode."""

    client_uuid: str
    episode_uuid: str
    workflow_output: WorkflowOutput
    task_id: str
    declare_client_active: bool = True


class EndEpisodeResponse(BaseModel):
    """``warning`` (additive) says why an accepted result will not be trained on."""

    success: bool
    warning: str = ""


class CanContinueEpisodeRequest(BaseModel):
    """Is this claim still good?"""

    client_uuid: str
    episode_uuid: str


class CanContinueEpisodeResponse(BaseModel):
    """Whether the claim is still good."""

    can_continue: bool


class CheckWhetherEpisodeClaimedRequest(BaseModel):
    """An engine outside this process drains: is the episode claimed, and if not, drop it?"""

    episode_uuid: str
    unregister_if_not_claimed: bool = False


class EpisodeStatus(BaseModel):
    """An episode record as ``/get_episode_buffer`` shows it, without its key."""

    episode_uuid: str
    episode_status: str = ""
    episode_type: str = "train"
    openai_base_url: str = ""
    openai_api_key: str = ""
    client_uuid: str = ""
    zmq_listen_result_addr: str = ""
    latest_activity_timestamp: float = Field(default_factory=time.time)
    discard_episode_timeout: float
    llm_call_count: int = 0
    debug_log: list[str] = Field(default_factory=list)
    optional_task_id: str = ""


class EpisodeBufferResponse(BaseModel):
    """All active episode records."""

    buffer: list[EpisodeStatus]


class AgreeSyncWeightRequest(BaseModel):
    """A client agrees that the weights be updated now."""

    client_uuid: str


class PushVerboseLogRequest(BaseModel):
    """A line for overwatch."""

    message: str
    tag: str = ""


class VerboseLogEntry(BaseModel):
    """A pushed line and when it came (Unix time)."""

    timestamp: float
    message: str
    tag: str = ""


class VerboseLogsResponse(BaseModel):
    """The lines of the last 30 s."""

    entries: list[VerboseLogEntry] = Field(default_factory=list)
