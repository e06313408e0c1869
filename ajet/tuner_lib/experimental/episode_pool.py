"""All episodes of an engine: registered, claimed, ended, recycled.

Everything happens on one event loop and no method awaits between reading and writing a record, so
an episode is claimed by one client and ended once.
"""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any

from ajet.schema.task import WorkflowOutput
from ajet.tuner_lib.experimental.active_clients import ActiveClients
from ajet.tuner_lib.experimental.engine_status import COLLECTING, OFFLINE, ROLLING, EngineStatus
from ajet.tuner_lib.experimental.episode import (
    CLAIMED,
    EPISODE_TYPES,
    EVAL,
    REGISTERED,
    Call,
    CompletedEpisode,
    Episode,
)
from ajet.tuner_lib.experimental.episode_key import base_key, issue_key, read_key
from ajet.tuner_lib.experimental.interchange_utils import ClaimEpisodeRequest, EndEpisodeRequest

SHOWN_AT_ONCE = 500
"""Running episodes that are written between two turns of the event loop."""

Listener = Callable[[str, dict[str, Any]], None]


class Refused(Exception):
    """The pool will not do what was asked; ``status`` is the HTTP code that says so."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


MAX_PATIENCE = 7 * 24 * 3600.0
"""Seconds that an episode may stand idle at most, whatever its client asked for: a step must end some day."""


class EpisodePool:
    """The episodes of one engine and the rules under which clients get and return them.

    ``counts`` adds up what happened since the server began (claimed, ended, ended_eval, aborted,
    recycled, dropped, …); each listener is told the same as it happens, with the episode's data.
    ``on_completed`` takes each completed episode before its client is answered; if it raises, the
    episode stays claimed and the client may end it again.
    """

    def __init__(self) -> None:
        self.status = EngineStatus(on_change=self._status_changed)
        self.clients = ActiveClients()
        self.episodes: dict[str, Episode] = {}
        self.counts: Counter[str] = Counter()
        self.listeners: list[Listener] = []
        self.on_completed: Callable[[CompletedEpisode], None] | None = None
        self._unclaimed: dict[str, Episode] = {}
        self._claimed: dict[str, Episode] = {}
        self._ended: dict[str, str] = {}
        self._keys: dict[str, Episode] = {}
        self._waiters: dict[asyncio.Future[Episode | None], ClaimEpisodeRequest] = {}
        self._claims = 0

    @property
    def running(self) -> int:
        """How many episodes are claimed now: the Running Episodes gauge."""
        return len(self._claimed)

    def claimed(self) -> Iterable[Episode]:
        """Return the episodes that are claimed now."""
        return self._claimed.values()

    @property
    def unclaimed(self) -> int:
        """How many episodes wait to be claimed."""
        return len(self._unclaimed)

    @property
    def waiting(self) -> int:
        """How many claims are being held until there is an episode."""
        return len(self._waiters)

    def _tell(self, event: str, episode: Episode, **more: Any) -> None:
        self.counts[event] += 1
        for listener in self.listeners:
            listener(
                event,
                {
                    "episode_uuid": episode.episode_uuid,
                    "client_uuid": episode.client_uuid,
                    "episode_type": episode.episode_type,
                    "llm_call_count": episode.llm_call_count,
                    "running": len(self._claimed),
                    **more,
                },
            )

    def register(self, episode_uuid: str = "", *, api_key: str = "", zmq_listen_result_addr: str = "") -> Episode:
        """Offer an episode; registering a known uuid returns the record that is there.

        Raises Refused outside ROLLING.
        """
        if self.status.current != ROLLING:
            raise Refused(400, "Engine is not in rolling state. Cannot register episode.")
        episode_uuid = episode_uuid or str(uuid.uuid4())
        if episode_uuid in self.episodes:
            return self.episodes[episode_uuid]
        episode = Episode(
            episode_uuid,
            asyncio.get_running_loop().create_future(),
            registered_key=api_key,
            zmq_listen_result_addr=zmq_listen_result_addr,
        )
        self.episodes[episode_uuid] = episode
        self._offer(episode)
        return episode

    def withdraw_unclaimed(self) -> None:
        """Withdraw all episodes that nobody has claimed: the step is full."""
        for episode in list(self._unclaimed.values()):
            self._forget(episode, None)

    async def claim(self, request: ClaimEpisodeRequest) -> Episode | None:
        """Claim an episode, waiting for one for ``wait_seconds``: through a weight sync, not through OFFLINE.

        Waiting clients are served in the order in which they came. Returns None if no episode
        came. Raises Refused as ``claim_now`` does.
        """
        episode = self.claim_now(request)
        if episode or request.wait_seconds <= 0 or self.status.current == OFFLINE:
            return episode
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Episode | None] = loop.create_future()
        self._waiters[waiter] = request
        timer = loop.call_later(request.wait_seconds, self._send_away, waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled() and (handed := waiter.result()):
                self.abandon(handed, handed.claim)
            raise
        finally:
            timer.cancel()
            self._waiters.pop(waiter, None)

    def claim_now(self, request: ClaimEpisodeRequest) -> Episode | None:
        """Claim the episode that has waited longest; None if there is none, or outside ROLLING.

        Raises Refused for an unknown episode type or a timeout that is not above 0.
        """
        self.clients.refresh(request.client_uuid)
        request.discard_episode_timeout = min(request.discard_episode_timeout, MAX_PATIENCE)
        if request.episode_type not in EPISODE_TYPES:
            raise Refused(
                400, f"Unknown episode_type: {request.episode_type}. It is one of {', '.join(EPISODE_TYPES)}."
            )
        if not request.discard_episode_timeout > 0:
            raise Refused(
                400, f"discard_episode_timeout is {request.discard_episode_timeout}; it is a number of seconds above 0."
            )
        if self.status.current != ROLLING or not self._unclaimed:
            return None
        episode = self._unclaimed.pop(next(iter(self._unclaimed)))
        loop = asyncio.get_running_loop()
        self._claims += 1
        self._claimed[episode.episode_uuid] = episode
        episode.claim = self._claims
        episode.episode_status = CLAIMED
        episode.episode_type = request.episode_type
        episode.client_uuid = request.client_uuid
        episode.discard_episode_timeout = request.discard_episode_timeout
        episode.task_id = request.throttle_policy.current_task_id if request.throttle_policy else ""
        episode.claimed_at = episode.last_activity = loop.time()
        episode.api_key = episode.registered_key or issue_key(episode.episode_uuid, self._claims)
        self._keys[episode.api_key] = episode
        episode.timer = loop.call_later(request.discard_episode_timeout, self._recycle_if_idle, episode)
        episode.shown = _shown(episode)
        self._tell("claimed", episode)
        return episode

    def abandon(self, episode: Episode, claim: int) -> None:
        """Take back a claim whose answer could not be delivered."""
        if episode.claim == claim and episode.episode_status == CLAIMED:
            self._tell("undelivered", episode)
            self._free(episode)

    def _offer(self, episode: Episode) -> None:
        """Hand an episode to the client that has waited longest, or keep it for the next that asks."""
        self._unclaimed[episode.episode_uuid] = episode
        while self._waiters and self._unclaimed:
            waiter = next(iter(self._waiters))
            request = self._waiters.pop(waiter)
            if not waiter.done():
                waiter.set_result(self.claim_now(request))

    def _send_away(self, waiter: asyncio.Future[Episode | None]) -> None:
        self._waiters.pop(waiter, None)
        if not waiter.done():
            waiter.set_result(None)

    def end(self, request: EndEpisodeRequest) -> str:
        """Take the result of a claimed episode; return a warning, empty if it will be trained on.

        The same client ending the same episode again (its first answer was lost) is told yes and
        counted once. Raises Refused, and then the episode stays claimed.
        """
        if not self.status.collecting:
            raise Refused(400, f"Engine is not in rolling state. Current status: [{self.status.current}].")
        _check_task_id(request)
        if self._ended.get(request.episode_uuid) == request.client_uuid:
            return ""
        episode = self.episodes.get(request.episode_uuid)
        if episode is None:
            raise Refused(400, f"Episode {request.episode_uuid} not found.")
        if episode.episode_status != CLAIMED:
            raise Refused(400, f"Episode {request.episode_uuid} is not in claimed status ({episode.episode_status}).")
        if episode.client_uuid != request.client_uuid:
            raise Refused(404, f"Episode {request.episode_uuid} is claimed by different client: {episode.client_uuid}.")
        reward = finite_reward(request.workflow_output)
        if episode.episode_type == EVAL:
            self._tell("ended_eval", episode, reward=reward, task_id=request.task_id)
            self._free(episode)
            return ""
        if request.declare_client_active:
            self.clients.enter(request.client_uuid)
        if not episode.calls:
            self._ended[episode.episode_uuid] = request.client_uuid
            self._tell("dropped", episode, reward=reward, task_id=request.task_id)
            self._forget(episode, None)
            return "the episode made no chat call: there is nothing to train on, and it is not counted"
        completed = CompletedEpisode(
            episode_uuid=episode.episode_uuid,
            task_id=request.task_id,
            client_uuid=episode.client_uuid,
            reward=reward,
            is_success=request.workflow_output.is_success,
            metadata=request.workflow_output.metadata,
            log_metrics=request.workflow_output.log_metrics,
            calls=episode.calls,
            seconds=asyncio.get_running_loop().time() - episode.claimed_at,
        )
        if self.on_completed:
            self.on_completed(completed)
        self._ended[episode.episode_uuid] = request.client_uuid
        self._tell("ended", episode, reward=reward, task_id=request.task_id, seconds=completed.seconds)
        self._forget(episode, completed)
        return ""

    def note_ended(self, episode: CompletedEpisode) -> None:
        """Take note of an episode that ended before a restart: a client that ends it again is told yes."""
        self._ended[episode.episode_uuid] = episode.client_uuid

    def abort(self, episode_uuid: str, client_uuid: str) -> None:
        """Give an episode back unfinished; an unknown episode is no fault.

        Raises Refused if another client holds it: released servers let any client abort it.
        """
        self.clients.refresh(client_uuid)
        episode = self.episodes.get(episode_uuid)
        if not self.status.collecting or episode is None or episode.episode_status != CLAIMED:
            return
        if episode.client_uuid != client_uuid:
            raise Refused(404, f"Episode {episode_uuid} is claimed by different client: {episode.client_uuid}.")
        self._tell("aborted", episode)
        self._free(episode)

    def can_continue(self, episode_uuid: str, client_uuid: str) -> bool:
        """Tell whether this client still holds the episode."""
        episode = self.episodes.get(episode_uuid)
        return (
            self.status.collecting
            and episode is not None
            and episode.episode_status == CLAIMED
            and episode.client_uuid == client_uuid
        )

    def is_claimed(self, episode_uuid: str, *, unregister_if_not_claimed: bool = False) -> bool:
        """Tell whether anyone holds the episode; on request drop it if not."""
        episode = self.episodes.get(episode_uuid)
        if episode is not None and episode.episode_status == CLAIMED:
            return self.status.collecting
        if episode is not None and unregister_if_not_claimed:
            self._forget(episode, None)
        return False

    def begin_call(self, api_key: str) -> Episode:
        """Return the episode that a chat call with this key belongs to, and note the call.

        Raises Refused: 401 for a key that is none, 404 if the episode cannot take calls now.
        """
        episode = self._keys.get(api_key)
        if episode is None:
            try:
                episode_uuid = read_key(api_key)["episode_uuid"]
                episode = self._keys.get(base_key(api_key)[0])
            except ValueError as error:
                raise Refused(401, f"Unauthorized: {error}.") from None
        if episode is None:
            if not self.status.collecting:
                raise Refused(404, "The server is not in ENGINE.ROLLING status, cannot accept new requests.")
            known = self.episodes.get(episode_uuid)
            if known is None:
                raise Refused(404, f"Episode {episode_uuid} not found.")
            if known.episode_status != CLAIMED:
                raise Refused(404, f"The episode {episode_uuid} is not claimed, cannot accept new requests.")
            raise Refused(404, f"The episode {episode_uuid} was given to another client since; begin a new episode.")
        if not self.status.collecting:
            raise Refused(404, "The server is not in ENGINE.ROLLING status, cannot accept new requests.")
        episode.last_activity = asyncio.get_running_loop().time()
        episode.calls_in_flight += 1
        episode.llm_call_count += 1
        self.clients.refresh(episode.client_uuid)
        return episode

    def finish_call(self, episode: Episode, claim: int, call: Call | None) -> None:
        """Note the end of a chat call; ``call`` is None if it came to nothing.

        Raises Refused if the claim that the call was made under is gone: then nothing is recorded.
        """
        episode.calls_in_flight -= 1
        if episode.claim != claim or episode.episode_status != CLAIMED or episode.episode_uuid not in self.episodes:
            raise Refused(404, f"The episode {episode.episode_uuid} is not claimed, cannot accept new requests.")
        episode.last_activity = asyncio.get_running_loop().time()
        if call is not None:
            episode.calls.append(call)

    def _recycle_if_idle(self, episode: Episode) -> None:
        loop = asyncio.get_running_loop()
        if episode.calls_in_flight:
            episode.last_activity = loop.time()
        left = episode.last_activity + episode.discard_episode_timeout - loop.time()
        if left > 0:
            episode.timer = loop.call_later(left, self._recycle_if_idle, episode)
            return
        episode.timer = None
        self._tell("recycled", episode, timeout=episode.discard_episode_timeout)
        self._free(episode)

    def _free(self, episode: Episode) -> None:
        """End a claim that came to nothing: back to the queue, or gone if the step is full."""
        self._release(episode)
        if self.status.current == ROLLING:
            episode.reset()
            self._offer(episode)
        else:
            self._forget(episode, None)

    def _release(self, episode: Episode) -> None:
        self._claimed.pop(episode.episode_uuid, None)
        episode.episode_status = REGISTERED
        self._keys.pop(episode.api_key, None)

    def _forget(self, episode: Episode, outcome: CompletedEpisode | None) -> None:
        self._release(episode)
        self._unclaimed.pop(episode.episode_uuid, None)
        self.episodes.pop(episode.episode_uuid, None)
        episode.resolve(outcome)

    def _status_changed(self, old: str, new: str) -> None:
        if old in COLLECTING and new not in COLLECTING:
            for episode in list(self.episodes.values()):
                if episode.episode_status == CLAIMED:
                    self._tell("cut_off", episode)
                self._forget(episode, None)
            self._ended.clear()
            self.clients.clear()
        if new == OFFLINE:
            for waiter in list(self._waiters):
                self._send_away(waiter)

    async def running_episode_details(self) -> bytes:
        """Return the claimed episodes as the JSON object of the wire, ``null`` if there are none.

        It shows one moment. With thousands of episodes the text is made in parts, and claims are
        served between them.
        """
        now = asyncio.get_running_loop().time()
        moment = [(one.shown, now - one.last_activity, one.llm_call_count) for one in self._claimed.values()]
        if not moment:
            return b"null"
        parts: list[str] = []
        for begin in range(0, len(moment), SHOWN_AT_ONCE):
            if begin:
                await asyncio.sleep(0)
            parts.extend(
                f"{head}{idle:.1f}{middle}{calls}{tail}"
                for (head, middle, tail), idle, calls in moment[begin : begin + SHOWN_AT_ONCE]
            )
        return f"{{{','.join(parts)}}}".encode()

    def wall_time(self, episode: Episode) -> float:
        """Return the Unix time of the episode's last activity (now, if it was never claimed)."""
        if not episode.last_activity:
            return time.time()
        return time.time() - (asyncio.get_running_loop().time() - episode.last_activity)


def _shown(episode: Episode) -> tuple[str, str, str]:
    """Return a claimed episode as JSON text around its idle seconds and its number of calls."""
    return (
        f'{_quoted(episode.episode_uuid)}:{{"episode_status":"{CLAIMED}","time_since_last_activity":"',
        f's","discard_episode_timeout":"{episode.discard_episode_timeout:.1f}s","llm_call_count":"',
        f'","client_uuid":{_quoted(episode.client_uuid)},"optional_task_id":{_quoted(episode.task_id)}}}',
    )


def _check_task_id(request: EndEpisodeRequest) -> None:
    named = request.workflow_output.metadata.get("task_id")
    if not request.task_id or named != request.task_id:
        raise Refused(
            400,
            f"workflow_output.metadata['task_id'] is {named!r} and task_id is {request.task_id!r}; "
            "both must name the same task.",
        )


def finite_reward(output: WorkflowOutput) -> float:
    """Return the reward as one finite number. Raises Refused (400) that says what came instead.

    A released server accepts null and lists here and loses a worker thread to them later.
    """
    reward = output.reward
    if not isinstance(reward, (int, float)) or not math.isfinite(reward):
        raise Refused(400, f"workflow_output.reward is {reward!r}; it must be one finite number per episode.")
    return float(reward)
