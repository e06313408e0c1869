"""The client that training scripts use: begin an episode, run it, end it.

Works with reference and with released servers. Where the server can hold a request until there is
something to say, nothing is polled.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from ajet.schema.task import Task, WorkflowOutput
from ajet.task_rollout.collection import AGREE_METHODS
from ajet.tuner_lib.as_oai_baseurl_apikey import OpenaiBaseUrlAndApiKey
from ajet.tuner_lib.experimental.delivery import FIRST_PAUSE, deliver
from ajet.tuner_lib.experimental.engine_status import (
    BOOTING,
    COLLECTING,
    OFFLINE,
    ROLLING,
    ROLLING_POST,
    WEIGHT_SYNCING,
)
from ajet.tuner_lib.experimental.episode_runs import auto_train_with_dataset, run_episodes_until_all_complete
from ajet.tuner_lib.experimental.interchange_utils import (
    CurrentBatchRolloutPoolInformation,
    EpisodeBufferResponse,
    EpisodeStatus,
    SwarmThrottlePolicy,
)
from ajet.tuner_lib.experimental.status_watch import CANNOT_CONNECT, StatusWatch, pause
from ajet.tuner_lib.experimental.swarm_http import (
    GENERAL_TIMEOUT,
    SwarmHttp,
    SwarmServerError,
    raise_for_status_with_detail,
)
from ajet.tuner_lib.experimental.throttle import Throttle

if TYPE_CHECKING:
    from ajet.copilot.job import AgentJetJob

__all__ = [
    "SwarmClient",
    "SwarmServerError",
    "SwarmServerOfflineError",
    "SwarmThrottlePolicy",
    "auto_train_with_dataset",
    "raise_for_status_with_detail",
    "run_episodes_until_all_complete",
]

log = logging.getLogger(__name__)

CLAIM_WAIT_SECONDS = 20.0
EMPTY_POOL_SECONDS = 0.5
"""How often a server without long polls is asked for an episode (released clients: 2 s)."""

UNREACHABLE_SECONDS = 2.0
LOCAL_LIFETIME = 8
"""An episode older than so many times its timeout is aborted instead of ended (as released clients do)."""

NO_EPISODE = "No available episodes to claim."


class SwarmServerOfflineError(RuntimeError):
    """The engine went OFFLINE while this client was waiting for it."""


class _Claim(NamedTuple):
    """An episode that this client holds: when it began (monotonic), its timeout (s), the engine's run."""

    begun: float
    timeout: float
    run: str | None


class SwarmClient:
    """A swarm client, known to the server by ``client_uuid``; may be shared by many threads.

    ``server_url`` is the server's base URL. ``agentjet_job`` is only needed by clients that start
    the engine. With ``auto_start_swarm_server`` a reference server is started on this machine if
    none answers. Close it, or use it in a ``with`` block, to end its thread and connections.
    """

    def __init__(
        self,
        server_url: str,
        verbose: bool = True,
        agentjet_job: AgentJetJob | None = None,
        auto_start_swarm_server: bool = False,
    ) -> None:
        self._http = SwarmHttp(server_url)
        self.server_url = self._http.server_url
        self.verbose = verbose
        self.agentjet_job = agentjet_job
        self.client_uuid = str(uuid.uuid4())
        self._lock = threading.Lock()
        self._claims: dict[str, _Claim] = {}
        self._throttle = Throttle(self.client_uuid)
        self._throttle_lock = threading.Lock()
        if auto_start_swarm_server:
            _start_server(self.server_url)
        self._watch = StatusWatch(self._http)

    def __enter__(self) -> SwarmClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the watching thread and the connections; claimed episodes stay as they are."""
        self._watch.stop()
        self._http.close()

    def begin_episode(
        self,
        discard_episode_timeout: float = 240,
        episode_type: str = "train",
        throttle_policy: SwarmThrottlePolicy | None = None,
    ) -> tuple[str, OpenaiBaseUrlAndApiKey]:
        """Wait for an episode and claim it; return its uuid and the address of its model.

        An episode that makes no chat call for ``discard_episode_timeout`` seconds is given to
        somebody else; an ``eval`` episode is not trained on. Waits through weight syncs. Raises
        SwarmServerOfflineError if the engine goes OFFLINE meanwhile, SwarmServerError if the
        server refuses the request for good, ValueError for a throttle policy that cannot work.
        """
        request = {
            "client_uuid": self.client_uuid,
            "episode_type": episode_type,
            "discard_episode_timeout": discard_episode_timeout,
            "throttle_policy": throttle_policy.model_dump() if throttle_policy else None,
            "wait_seconds": CLAIM_WAIT_SECONDS,
        }
        was_online = False
        told, wait = "", FIRST_PAUSE
        while True:
            status, _ = self._watch.current
            was_online = was_online or status not in (OFFLINE, CANNOT_CONNECT)
            if status == OFFLINE and was_online:
                raise SwarmServerOfflineError(f"the engine at {self.server_url} went offline")
            if throttle_policy and episode_type == "train":
                self._wait_for_throttle(throttle_policy)
            answer: dict[str, Any] | None = None
            try:
                answer = self._http.post("/claim_episode", request, timeout=CLAIM_WAIT_SECONDS + GENERAL_TIMEOUT)
                cause = str(answer.get("fail_cause", ""))
            except (httpx.HTTPError, ValueError) as error:
                cause = f"{self.server_url} does not answer ({error})"
            except SwarmServerError as error:
                if error.status_code in (400, 422):
                    raise
                cause = str(error)
            if answer is not None and answer.get("success"):
                return self._claimed(answer, discard_episode_timeout)
            if cause != told and self.verbose and not cause.startswith(NO_EPISODE):
                log.info("waiting for an episode: %s", cause)
                told = cause
            if answer is None:
                pause(wait)
                wait = min(2 * wait, UNREACHABLE_SECONDS)
            else:
                wait = FIRST_PAUSE
                self._wait_for_episode(cause, waits=bool(answer.get("waits")))

    def _claimed(self, answer: dict[str, Any], timeout: float) -> tuple[str, OpenaiBaseUrlAndApiKey]:
        episode_uuid = str(answer["episode_uuid"])
        with self._lock:
            self._claims[episode_uuid] = _Claim(time.monotonic(), timeout, self._watch.current[1].get("run"))
        # the server may know itself by another address than the one that this client reaches it by
        path = urlsplit(str(answer.get("openai_base_url", ""))).path or "/v1"
        model = OpenaiBaseUrlAndApiKey(
            base_url=self.server_url + path, api_key=str(answer["openai_api_key"]), episode_uuid=episode_uuid
        )
        return episode_uuid, model

    def _wait_for_episode(self, cause: str, *, waits: bool) -> None:
        """Pass the time until asking again makes sense."""
        status, _ = self._watch.current
        if status == OFFLINE:
            self._watch.wait_until(lambda now, _: now != OFFLINE, CLAIM_WAIT_SECONDS)
        elif cause.startswith(NO_EPISODE):
            if not waits:
                pause(EMPTY_POOL_SECONDS)
        elif not waits:
            if not self._watch.wait_until(lambda now, _: now in (ROLLING, OFFLINE), UNREACHABLE_SECONDS):
                return
            self._watch.refresh()
            pause(0.05)  # the cached status may be older than the refusal

    def _wait_for_throttle(self, policy: SwarmThrottlePolicy) -> None:
        with self._throttle_lock:
            while not self._throttle.admits(policy, self.get_rollout_stat()):
                status, _ = self._watch.current
                if status not in COLLECTING:
                    return  # the claim itself waits for the next step, where the count begins anew
                pause(EMPTY_POOL_SECONDS)

    def end_episode(
        self,
        task: Task,
        episode_uuid: str,
        workflow_output: WorkflowOutput,
        declare_client_active: bool = True,
    ) -> None:
        """Send the result of an episode; its reward is trained on.

        ``metadata["task_id"]`` of the output is set. An episode that this client does not hold, or
        that is far past its timeout, is aborted instead. Raises SwarmServerError (a RuntimeError)
        if the server refuses, RuntimeError if it does not answer (either way the episode may be ended
        again), AssertionError if the task has no ``task_id``.
        """
        if not episode_uuid:
            log.error("end_episode was called without an episode_uuid: nothing is sent")
            return
        assert task.task_id, "task.task_id is empty; episodes of one task share a task_id"
        with self._lock:
            claim = self._claims.pop(episode_uuid, None)
        if claim is None or time.monotonic() - claim.begun > LOCAL_LIFETIME * claim.timeout:
            reason = "is not held by this client" if claim is None else "is far past its timeout"
            log.warning("episode %s %s: it is aborted", episode_uuid, reason)
            self.abort_episode(episode_uuid, declare_client_active)
            return
        workflow_output.metadata["task_id"] = task.task_id
        request = {
            "client_uuid": self.client_uuid,
            "episode_uuid": episode_uuid,
            "workflow_output": workflow_output.model_dump(mode="json"),
            "task_id": task.task_id,
            "declare_client_active": declare_client_active,
        }
        try:
            answer = deliver(self._http, "/end_episode", request)
        except RuntimeError as error:
            if isinstance(error, SwarmServerError) and self._is_lost(error, episode_uuid, claim):
                return
            with self._lock:
                self._claims[episode_uuid] = claim  # the caller may end it again
            raise
        if not answer and self._run() != claim.run:
            log.warning("the engine was restarted while episode %s was being ended: it may be lost", episode_uuid)
        elif answer.get("warning"):
            log.warning("episode %s: %s", episode_uuid, answer["warning"])

    def abort_episode(self, episode_uuid: str, declare_client_active: bool = True) -> None:
        """Give an episode back without a result. Never raises; in an ``except`` block the error is logged."""
        error = sys.exc_info()[1]
        if error is not None:
            log.warning(
                "episode %s is given back: %s: %s", episode_uuid, type(error).__name__, error, extra={"cause": error}
            )
        with self._lock:
            self._claims.pop(episode_uuid, None)
        request = {
            "client_uuid": self.client_uuid,
            "episode_uuid": episode_uuid,
            "workflow_output": {"reward": 0.0, "metadata": {}},
            "task_id": "",
            "declare_client_active": declare_client_active,
        }
        try:
            deliver(self._http, "/abort_episode", request, seconds=GENERAL_TIMEOUT)
        except (SwarmServerError, RuntimeError) as error:
            log.warning("episode %s could not be aborted, its timeout will free it: %s", episode_uuid, error)

    def _is_lost(self, error: SwarmServerError, episode_uuid: str, claim: _Claim) -> bool:
        """Tell, with a warning, whether an end is refused because the episode's step or engine is gone."""
        if error.status_code == 400 and WEIGHT_SYNCING in error.detail:
            log.warning("episode %s came too late for its step: %s", episode_uuid, error.detail)
            return True
        if "not found" in error.detail and self._run() != claim.run:
            log.warning("episode %s was begun with an engine that was restarted since: it is lost", episode_uuid)
            return True
        return False

    def _run(self) -> str | None:
        """Return the id of the engine's present run; None if the server tells none (released servers do not)."""
        self._watch.refresh()
        return self._watch.current[1].get("run")

    def can_continue_episode(self, episode_uuid: str) -> bool:
        """Tell whether this client still holds the episode; False on any error."""
        try:
            request = {"client_uuid": self.client_uuid, "episode_uuid": episode_uuid}
            return bool(self._http.post("/can_continue_episode", request).get("can_continue"))
        except (SwarmServerError, httpx.HTTPError, ValueError):
            return False

    def get_engine_status(self) -> tuple[str, dict[str, Any]]:
        """Return the last known status and the server's whole answer; ENGINE.CANNOT_CONNECT if there is none."""
        return self._watch.current

    def get_global_step(self) -> int | None:
        """Return the step that is being collected; None before the first."""
        return self._watch.current[1].get("global_step")

    def sync_train_config(self, agentjet_job: AgentJetJob | None = None, **older: AgentJetJob) -> None:
        """Send a job's configuration. Raises RuntimeError unless the engine is OFFLINE."""
        job = _one_job("sync_train_config", agentjet_job, older)
        self._require_offline("sync_train_config")
        self.agentjet_job = job
        with tempfile.TemporaryDirectory() as folder:
            text = Path(job.dump_job_as_yaml(str(Path(folder) / "job.yaml"))).read_text(encoding="utf-8")
        self._http.post("/sync_train_config", {"yaml_as_string": text})

    def start_engine(self) -> None:
        """Start the engine and wait until it is ROLLING.

        Raises RuntimeError with the server's reason if it does not start, SwarmServerOfflineError
        if it goes OFFLINE while booting.
        """
        self._require_offline("start_engine")
        revision = self._watch.current[1].get("revision")
        answer = self._http.post("/start_engine", timeout=600.0)
        if not answer.get("success"):
            raise RuntimeError(f"Failed to start training engine: {answer.get('error', 'no reason given')}")
        self._watch.refresh()
        self._wait_for_rolling(revision)

    def auto_sync_train_config_and_start_engine(
        self, agentjet_job: AgentJetJob | None = None, force_restart: bool = False, **older: AgentJetJob
    ) -> None:
        """Make the engine train this job: start it, or join it if it runs already.

        Without a job that of the constructor is meant. Raises RuntimeError if no server answers
        or the engine does not start.
        """
        job = _one_job("auto_sync_train_config_and_start_engine", agentjet_job or self.agentjet_job, older)
        if not self._watch.wait_until(lambda now, _: now != CANNOT_CONNECT, 16.0):
            raise RuntimeError(f"no swarm server answers at {self.server_url}; start one and try again")
        if force_restart:
            self.stop_engine()
        status, _ = self._watch.current
        if status == OFFLINE:
            try:
                self.sync_train_config(job)
                self.start_engine()
                return
            except RuntimeError:
                self._watch.refresh()
                status, _ = self._watch.current
                if status in (OFFLINE, CANNOT_CONNECT):
                    raise
                log.info("another client started the engine at the same time: joining it")
        if status in (BOOTING, WEIGHT_SYNCING):
            self.agentjet_job = job
            self._wait_for_rolling()
        elif status in COLLECTING:
            self.agentjet_job = job
        else:
            raise RuntimeError(f"the engine at {self.server_url} is in {status} and cannot be joined")

    @staticmethod
    def async_and_start_multi_engine(
        clients_and_jobs: Sequence[tuple[SwarmClient, AgentJetJob]], force_restart: bool = False
    ) -> None:
        """Start several engines at once. Raises RuntimeError that lists those that failed."""
        failures: list[str] = []

        def start(client: SwarmClient, job: AgentJetJob) -> None:
            try:
                client.auto_sync_train_config_and_start_engine(job, force_restart=force_restart)
            except Exception as error:
                failures.append(f"{client.server_url}: {error}")

        threads = [threading.Thread(target=start, args=pair) for pair in clients_and_jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise RuntimeError("engines that did not start: " + "; ".join(failures))

    def stop_engine(self) -> None:
        """Stop the engine and wait until it is OFFLINE; nothing is done if it is."""
        self._watch.refresh()
        if self._watch.current[0] == OFFLINE:
            return
        self._http.post("/stop_engine", timeout=120.0)
        self._watch.refresh()
        self._watch.wait_until(lambda now, _: now == OFFLINE)

    def sync_train_code(self, zip_path: str | Path) -> dict[str, Any]:
        """Send a zip of an ``ajet/`` folder. Raises FileNotFoundError, RuntimeError unless OFFLINE."""
        content = Path(zip_path).read_bytes()
        self._require_offline("sync_train_code")
        return self._http.post_bytes("/sync_train_code", content, timeout=300.0)

    def sync_train_code_from_dir(self, directory: str | Path, force_restart: bool = False) -> dict[str, Any]:
        """Zip the files of ``ajet/`` that git tracks in ``directory`` and send them.

        Returns the server's answer with ``local_zip_file_path`` and ``local_zip_file_count``.
        """
        directory = Path(directory)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "ajet"], cwd=directory, capture_output=True, text=True, check=False
        )
        names = [name for name in listed.stdout.split("\0") if name and (directory / name).is_file()]
        if listed.returncode or not names:
            raise RuntimeError(f"{directory} has no ajet/ folder with files that git tracks: {listed.stderr.strip()}")
        with (
            tempfile.NamedTemporaryFile(prefix="ajet_code_", suffix=".zip", delete=False) as stream,
            zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for name in names:
                archive.write(directory / name, name)
        if force_restart:
            self.stop_engine()
        answer = self.sync_train_code(stream.name)
        return {**answer, "local_zip_file_path": stream.name, "local_zip_file_count": len(names)}

    def server_experiment_dir(self) -> str | None:
        """Return the server's folder of the run; ``saved_experiments`` on any error."""
        try:
            return self._http.get("/get_server_experiment_dir").get("server_experiment_dir")
        except (SwarmServerError, httpx.HTTPError, ValueError):
            return "saved_experiments"

    def agree_sync_weight(self) -> bool:
        """Agree that the weights be synced now, and wait until that begins.

        Returns False if the step is not being collected any more. Raises AssertionError if this
        client's job collects by a method without agreement, SwarmServerError if the server's does.
        """
        if self.agentjet_job is not None:
            method = self.agentjet_job.config.ajet.swarm_mode_sample_collection_method
            assert method in AGREE_METHODS, f"agreement needs one of {', '.join(AGREE_METHODS)}; the job has {method}"
        step = self.get_global_step()
        while True:
            self._watch.refresh()
            status, answer = self._watch.current
            if status not in COLLECTING or answer.get("global_step") != step:
                return False
            if self._http.post("/agree_sync_weight", {"client_uuid": self.client_uuid}).get("success"):
                break
            pause(EMPTY_POOL_SECONDS)
        return self._watch.wait_until(
            lambda now, answer: now in (ROLLING_POST, WEIGHT_SYNCING, OFFLINE) or answer.get("global_step") != step
        )

    def get_rollout_stat(self) -> CurrentBatchRolloutPoolInformation:
        """Return how far the step has come; an empty object on any error."""
        try:
            answer = self._http.get("/get_current_batch_rollout_pool_information")
            return CurrentBatchRolloutPoolInformation.model_validate(answer)
        except (SwarmServerError, httpx.HTTPError, ValueError):
            return CurrentBatchRolloutPoolInformation()

    def print_rollout_stat(self) -> None:
        """Print how far the step has come. Never raises."""
        stat = self.get_rollout_stat()
        print(
            f"step {stat.global_step} {stat.engine_status}: "
            f"{stat.completed_episodes}/{stat.completed_episode_target} episodes, "
            f"{stat.completed_tasks}/{stat.completed_task_target} tasks, "
            f"{stat.completed_non_dummy_tasks}/{stat.completed_non_dummy_task_target} non-dummy tasks, "
            f"{len(stat.running_episode_details or {})} running"
        )

    def get_episode_buffer(self) -> list[EpisodeStatus]:
        """Return the active episode records; an empty list on any error."""
        try:
            return EpisodeBufferResponse.model_validate(self._http.post("/get_episode_buffer")).buffer
        except (SwarmServerError, httpx.HTTPError, ValueError):
            return []

    def add_entering_weight_sync_callback(self, callback: Callable[[], None]) -> None:
        """Call ``callback()`` in a thread of this client at each entry into WEIGHT_SYNCING."""
        self._watch.callbacks.append(callback)

    def _wait_for_rolling(self, since_revision: int | None = None) -> None:
        """Wait until episodes can be claimed; OFFLINE counts if it came after ``since_revision``."""
        seen_online = False

        def rolling(status: str, answer: dict[str, Any]) -> bool:
            nonlocal seen_online
            seen_online = seen_online or status not in (OFFLINE, CANNOT_CONNECT)
            newer = since_revision is not None and answer.get("revision", 0) > since_revision
            if status == OFFLINE and (seen_online or newer):
                reason = answer.get("engine_status_detail") or "no reason given"
                raise SwarmServerOfflineError(f"the engine at {self.server_url} went offline: {reason}")
            return status in COLLECTING

        self._watch.wait_until(rolling)

    def _require_offline(self, what: str) -> None:
        self._watch.refresh()
        status, _ = self._watch.current
        if status != OFFLINE:
            raise RuntimeError(f"{what} needs an engine that is {OFFLINE}; it is {status} (stop_engine() first)")


def _one_job(method: str, job: AgentJetJob | None, older: dict[str, AgentJetJob]) -> AgentJetJob:
    """Return the job that a method was given; scripts of April 2026 call the argument agent_jet_job."""
    job = older.pop("agent_jet_job", None) or job
    if older:
        raise TypeError(f"{method}() got an unexpected keyword argument {next(iter(older))!r}")
    if job is None:
        raise TypeError(f"{method}() needs an AgentJetJob as agentjet_job")
    return job


def _start_server(server_url: str, seconds: float = 60.0) -> None:
    """Start a reference server for a loopback URL in the background, unless one answers already.

    It outlives this process; its output goes to a log file that an error names.
    """
    parts = urlsplit(server_url)
    if parts.hostname not in ("127.0.0.1", "localhost") or parts.port is None:
        raise ValueError(
            f"auto_start_swarm_server needs http://127.0.0.1:<port> or http://localhost:<port>, not {server_url}"
        )
    if _is_healthy(server_url):
        return
    command = [sys.executable, "-I", "-m", "ajet.swarm_cli", "start", "--swarm-port", str(parts.port)]
    # a name that nobody can foresee, and lay a link at, in a folder that everybody can write to
    with tempfile.NamedTemporaryFile(prefix=f"ajet_swarm_{parts.port}_", suffix=".log", delete=False) as output:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    deadline = time.monotonic() + seconds
    while not _is_healthy(server_url):
        if server.poll() is not None or time.monotonic() > deadline:
            server.kill()
            raise RuntimeError(f"the swarm server did not start: {' '.join(command)}; see {output.name}")
        pause(0.05)


def _is_healthy(server_url: str) -> bool:
    try:
        return httpx.get(f"{server_url}/health", timeout=2.0, trust_env=False).is_success
    except httpx.HTTPError:
        return False
