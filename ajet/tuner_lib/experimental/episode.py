"""One episode: the record while it runs, and what remains of it when it is complete."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field
from typing import Any

REGISTERED = "registered"
CLAIMED = "claimed"

TRAIN = "train"
EVAL = "eval"
EPISODE_TYPES = (TRAIN, EVAL)


@dataclass(slots=True)
class Call:
    """One chat completion of an episode, as the policy needs it for learning.

    ``prompt_tokens`` and ``response_tokens`` are the policy's own token counts; ``logprob`` is
    the natural logarithm of the reply's probability and ``entropy`` (nats) that of the choice;
    ``trace`` is what the policy wants back in ``update``.
    """

    prompt_tokens: int
    response_tokens: int
    finish_reason: str = "stop"
    logprob: float = 0.0
    entropy: float = 0.0
    trace: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class CompletedEpisode:
    """A train episode that ended with a reward and at least one chat call."""

    episode_uuid: str
    task_id: str
    client_uuid: str
    reward: float
    is_success: bool | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    log_metrics: dict[str, Any] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that ``from_dict`` reads back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CompletedEpisode:
        """Build an episode from ``to_dict``'s data. Raises TypeError on unknown or missing fields."""
        return cls(**{**data, "calls": [Call(**call) for call in data.get("calls", [])]})


@dataclass(slots=True, eq=False)
class Episode:
    """An episode that a worker slot offers; ``outcome`` resolves when the slot is free again.

    The outcome is the completed episode, or None if there is nothing to train on. Times are
    seconds of the event loop's clock.
    """

    episode_uuid: str
    outcome: asyncio.Future[CompletedEpisode | None]
    episode_status: str = REGISTERED
    episode_type: str = TRAIN
    client_uuid: str = ""
    task_id: str = ""
    api_key: str = ""
    claim: int = 0
    discard_episode_timeout: float = -1.0
    claimed_at: float = 0.0
    last_activity: float = 0.0
    calls: list[Call] = field(default_factory=list)
    llm_call_count: int = 0
    calls_in_flight: int = 0
    timer: asyncio.TimerHandle | None = None
    shown: tuple[str, str, str] = ("", "", "")
    registered_key: str = ""
    zmq_listen_result_addr: str = ""

    def reset(self) -> None:
        """Forget the claim and all that came of it."""
        if self.timer:
            self.timer.cancel()
        self.episode_status = REGISTERED
        self.episode_type = TRAIN
        self.client_uuid = self.task_id = self.api_key = ""
        self.discard_episode_timeout = -1.0
        self.calls = []
        self.llm_call_count = 0
        self.timer = None

    def resolve(self, outcome: CompletedEpisode | None) -> None:
        """Free the slot that offers this episode."""
        if self.timer:
            self.timer.cancel()
            self.timer = None
        if not self.outcome.done():
            self.outcome.set_result(outcome)
