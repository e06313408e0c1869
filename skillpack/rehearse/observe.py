"""What happened on one engine during a rehearsal."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ajet.backbone.policies.base import ChatRequest
    from ajet.tuner_lib.experimental.episode import Episode
    from ajet.tuner_lib.experimental.swarm_server import SwarmServer


@dataclass
class Watcher:
    """Listens to an engine and keeps what a verdict needs; ``on_event`` is called at each sign of life.

    Times are seconds of ``time.monotonic``. ``groups`` holds the rewards by step and task;
    ``prompts`` the first question of each episode, as a digest, by task.
    """

    server: SwarmServer
    url: str
    on_event: Callable[[], None]
    last_event: float = field(default_factory=time.monotonic)
    counts: Counter[str] = field(default_factory=Counter)
    open_at_stop: int = 0
    waiting_at_stop: int = 0
    peak: int = 0
    running_seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    groups: dict[int, dict[str, list[float]]] = field(default_factory=dict)
    prompts: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    episode_seconds: list[float] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)
    recycled: list[dict[str, Any]] = field(default_factory=list)
    late: int = 0
    refusals: dict[tuple[str, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    refusal_counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    clients: set[str] = field(default_factory=set)
    stopped: bool = False
    _touched: bool = False
    _running_before: int = 0
    _open_prompts: dict[str, str] = field(default_factory=dict)
    _recycled_uuids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        status = self.server.pool.status
        self._since = self._changed = time.monotonic()
        status.listeners.append(self._on_status)
        self.server.pool.listeners.append(self._on_episode)
        self.server.app.on_error = self._on_error
        self.server.chat.on_call = self._on_call

    @property
    def updates(self) -> int:
        """How many weight updates the engine has made."""
        trainer = self.server.engine.trainer
        return len(trainer.history) if trainer else 0

    @property
    def used(self) -> bool:
        """Whether the client ever sent this engine anything."""
        return self.server.engine.config_text is not None or bool(self.refusal_counts) or self._touched

    def stop(self) -> None:
        """Take no notice of what comes now: the rehearsal is over and the client is being stopped."""
        self._count_running()
        self._count_phase(self.server.pool.status.current)
        self.open_at_stop, self.waiting_at_stop = self.server.pool.running, self.server.pool.waiting
        self.stopped = True

    def _alive(self) -> None:
        self.last_event = time.monotonic()
        self.on_event()

    def _on_status(self, old: str, new: str) -> None:
        if self.stopped:
            return
        self._count_phase(old)
        self._touched = True
        self._alive()

    def _count_phase(self, status: str) -> None:
        now = time.monotonic()
        self.phases[status] += now - self._since
        self._since = now

    def _count_running(self) -> None:
        now = time.monotonic()
        self.running_seconds += self._running_before * (now - self._changed)
        self._changed = now
        self._running_before = self.server.pool.running

    def _on_episode(self, event: str, data: dict[str, Any]) -> None:
        if self.stopped:
            return
        self._count_running()
        self.counts[event] += 1
        self.peak = max(self.peak, data["running"])
        uuid = data["episode_uuid"]
        if event == "claimed":
            self.clients.add(data["client_uuid"])
            self.timeouts.append(self.server.pool.episodes[uuid].discard_episode_timeout)
        elif event == "ended":
            self.groups.setdefault(self.server.pool.status.global_step or 0, {}).setdefault(data["task_id"], []).append(
                data["reward"]
            )
            self.episode_seconds.append(data["seconds"])
            self.calls.append(data["llm_call_count"])
            if uuid in self._open_prompts:
                self.prompts[data["task_id"]].add(self._open_prompts.pop(uuid))
        elif event == "recycled":
            self.recycled.append({"timeout": data["timeout"], "calls": data["llm_call_count"]})
            self._recycled_uuids.add(uuid)
        if event != "claimed":
            self._open_prompts.pop(uuid, None)
        self._alive()

    def _on_call(self, episode: Episode, chat: ChatRequest, answer: dict[str, Any]) -> None:
        if self.stopped:
            return
        if episode.episode_uuid not in self._open_prompts:
            asked = [message for message in chat.messages if message.get("role") != "system"]
            text = json.dumps(asked[:1], sort_keys=True, default=str)
            self._open_prompts[episode.episode_uuid] = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        self._alive()

    def _on_error(self, path: str, status: int, body: bytes) -> None:
        if self.stopped:
            return
        text = body.decode("utf-8", errors="replace")[:300]
        self.refusal_counts[path, status] += 1
        if len(self.refusals[path, status]) < 3:
            self.refusals[path, status].append(text)
        if any(uuid in text for uuid in self._recycled_uuids):
            self.late += 1
        self._alive()
