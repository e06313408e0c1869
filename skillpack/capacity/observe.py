"""Ask a running swarm server, real or reference, for what it is doing now.

Wire: ``GET /get_engine_status``, ``GET /get_current_batch_rollout_pool_information`` and
``POST /get_episode_buffer``. The buffer holds API keys: only its statuses are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skillpack.capacity import inputs as keys
from skillpack.capacity.inputs import MEASURED, Input, Inputs
from skillpack.script import BadInput, Unavailable

TIMEOUT = 10.0
"""Seconds that a server gets for one answer."""

ATTEMPTS = 3
"""Released servers answer one pool request in some sixty with an empty body when episodes end at that moment."""

POOL_PATH = "/get_current_batch_rollout_pool_information"


@dataclass(frozen=True)
class RunningEpisode:
    """A claimed episode: how long it has been idle, and how long it may be (seconds)."""

    episode_uuid: str
    client_uuid: str
    task_id: str
    idle_seconds: float
    patience_seconds: float
    llm_calls: int


@dataclass(frozen=True)
class Snapshot:
    """A server at one moment. ``waiting`` counts the offered, unclaimed episodes (None: not told)."""

    engine: str
    status: str
    global_step: int | None
    running: tuple[RunningEpisode, ...]
    waiting: int | None
    clients: tuple[dict[str, Any], ...]
    pool: dict[str, Any]
    capacity: dict[str, Any]

    def inputs(self) -> Inputs:
        """Return what the server tells of its configuration."""
        told = {
            keys.NUM_REPEAT: self.pool.get("task_expected_num_repeat"),
            keys.TRAIN_BATCH_SIZE: self.pool.get("completed_task_target"),
            keys.METHOD: self.pool.get("sample_collection_method"),
            keys.MAX_ENV_WORKER: self.capacity.get("max_env_worker"),
        }
        return Inputs({key: Input(value, "told by the server", MEASURED) for key, value in told.items() if value})


class Server:
    """A swarm server at ``url``; a context manager that holds one connection."""

    def __init__(self, url: str) -> None:
        """Raises BadInput if ``url`` is not an http address, Unavailable if httpx is missing."""
        try:
            import httpx
        except ImportError:
            raise Unavailable("httpx is not installed", hint="pip install 'agentjet-skills[engine]'") from None
        if not url.startswith(("http://", "https://")):
            raise BadInput(f"not a server address: {url}", expected="http://host:port", hint="http://127.0.0.1:10086")
        self.url = url.rstrip("/")
        self._httpx = httpx
        self._http = httpx.Client(base_url=self.url, timeout=TIMEOUT, trust_env=False)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def snapshot(self) -> Snapshot:
        """Return what the server is doing now. Raises Unavailable if there is no swarm server."""
        health = self._ask("GET", "/health")
        status = self._ask("GET", "/get_engine_status")
        if "engine_status" not in status:
            raise Unavailable(f"{self.url} is not a swarm server", expected="engine_status in /get_engine_status")
        pool = self._pool()
        records = self._ask("POST", "/get_episode_buffer").get("buffer")
        try:
            return _snapshot(health, status, pool, records)
        except (AttributeError, TypeError, ValueError) as error:
            raise Unavailable(f"{self.url} answers in another form than swarm servers do: {error}") from None

    def _pool(self) -> dict[str, Any]:
        pool: dict[str, Any] = {}
        for _ in range(ATTEMPTS):
            pool = self._ask("GET", POOL_PATH)
            if pool.get("engine_status") is not None:
                break
        return pool

    def _ask(self, method: str, path: str) -> dict[str, Any]:
        hint = "capacity.py live --url http://HOST:PORT of the machine that runs the swarm server"
        try:
            answer = self._http.request(method, path)
            answer.raise_for_status()
            document = answer.json()
        except self._httpx.TransportError as error:
            raise Unavailable(f"no answer from {self.url}{path}: {error}", hint=hint) from None
        except (self._httpx.HTTPError, self._httpx.InvalidURL, ValueError) as error:
            raise Unavailable(f"{self.url}{path} is not that of a swarm server: {error}", hint=hint) from None
        if not isinstance(document, dict):
            raise Unavailable(f"{self.url}{path} did not answer with an object", hint=hint)
        return document


def _snapshot(health: dict[str, Any], status: dict[str, Any], pool: dict[str, Any], records: Any) -> Snapshot:
    details = pool.get("running_episode_details") or {}
    return Snapshot(
        engine="reference" if health.get("engine") == "reference" else "unknown",
        status=str(status["engine_status"]),
        global_step=status.get("global_step"),
        running=tuple(_running(uuid, record) for uuid, record in details.items()),
        waiting=_registered(records),
        clients=tuple((pool.get("swarm_client_instruction") or {}).get("active_clients") or ()),
        pool=pool,
        capacity=dict(pool.get("capacity") or {}),
    )


def _registered(records: Any) -> int | None:
    if not isinstance(records, list):
        return None
    return sum(isinstance(record, dict) and record.get("episode_status") == "registered" for record in records)


def _running(uuid: str, record: dict[str, Any]) -> RunningEpisode:
    return RunningEpisode(
        episode_uuid=uuid,
        client_uuid=str(record.get("client_uuid", "")),
        task_id=str(record.get("optional_task_id", "")),
        idle_seconds=_seconds(record.get("time_since_last_activity")),
        patience_seconds=_seconds(record.get("discard_episode_timeout")),
        llm_calls=int(_seconds(record.get("llm_call_count"))),
    )


def _seconds(text: Any) -> float:
    """Return the number in ``"0.3s"``; 0 if there is none (released servers send text)."""
    try:
        return float(str(text).rstrip("s"))
    except ValueError:
        return 0.0
