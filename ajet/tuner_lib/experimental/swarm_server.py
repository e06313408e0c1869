"""The swarm server: every endpoint that released clients call, on the pool and engine of this process."""

from __future__ import annotations

import asyncio
import math
import os
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from ajet import __version__
from ajet.task_rollout.collection import AGREE_METHODS
from ajet.tuner_lib.experimental import interchange_utils as wire
from ajet.tuner_lib.experimental.anthropic_model_server import MessagesServer
from ajet.tuner_lib.experimental.asgi import App, HttpError, Request, Response, Route, json_response
from ajet.tuner_lib.experimental.chaos import Chaos, reply_latency
from ajet.tuner_lib.experimental.engine import Engine, EngineOptions
from ajet.tuner_lib.experimental.engine_status import BOOTING, OFFLINE, ROLLING, ROLLING_POST, STATUSES
from ajet.tuner_lib.experimental.episode_pool import EpisodePool, Refused
from ajet.tuner_lib.experimental.oai_model_server import ChatServer
from ajet.tuner_lib.experimental.responses_model_server import ResponsesServer
from ajet.tuner_lib.experimental.swarm_overwatch_utils import CurrentBatchRolloutPoolInformation
from ajet.tuner_lib.experimental.train_code import receive_train_code
from ajet.tuner_lib.experimental.verbose_log import VerboseLog
from ajet.tuner_lib.experimental.watch_page import WatchPage

MAX_WAIT = 60.0
"""Seconds that a long poll is held at most."""

MAX_TRAIN_CODE = 256 * 1024 * 1024

CLAIM_ADVICE = {
    OFFLINE: "Please start the engine first.",
    BOOTING: "Please wait until the engine is fully booted.",
    "ENGINE.WEIGHT_SYNCING": "Engine is syncing weights, try again soon.",
    ROLLING_POST: "Engine is in post-rolling phase, try again when the weights are synced.",
    "ENGINE.WEIGHT_EXPORTING": "Engine is exporting weights, try again soon.",
}
"""Status: what a client is told; released clients look for two of these phrases."""

NOTHING_TO_CLAIM = "No available episodes to claim. Try again in 1 minute."


class SwarmServer:
    """Pool, engine and chat server behind one ASGI application, ``app``."""

    def __init__(self, options: EngineOptions | None = None) -> None:
        self.options = options or EngineOptions()
        self.base_url = ""
        self.pool = EpisodePool()
        self.engine = Engine(self.pool, self.options)
        latency = reply_latency(self.options.chaos, self.options.seed)
        self.chat = ChatServer(self.pool, lambda: self.engine.policy, self.engine.sampling, latency)
        self.watch_page = WatchPage(self)
        self.messages = MessagesServer(self.chat)
        self.responses = ResponsesServer(self.chat)
        self.verbose_log = VerboseLog()
        self._posted_information = CurrentBatchRolloutPoolInformation()
        self.app = App(self._routes())
        self.chaos = Chaos(self.app, self.options.chaos, self.options.seed, self.engine.sync_early, self._restart)

    @property
    def asgi(self) -> App | Chaos:
        """What is to be served: the application, with trouble around it if that was asked for."""
        return self.chaos if self.options.chaos.any else self.app

    def _restart(self) -> None:
        self._restarting = asyncio.create_task(self.engine.restart())

    def _routes(self) -> dict[tuple[str, str], Route]:
        return {
            ("GET", "/"): Route(self.watch_page.page),
            ("GET", "/events"): Route(self.watch_page.events),
            ("GET", "/health"): Route(self.health),
            ("GET", "/openapi.json"): Route(self.openapi),
            ("POST", "/v1/chat/completions"): Route(self.chat_completions),
            ("GET", "/v1/models"): Route(self.models),
            **{
                ("POST", prefix + path): route
                # Anthropic's SDK adds its own /v1 to a base URL that begin_episode ended in one
                for prefix in ("", "/v1")
                for path, route in {
                    "/v1/messages": Route(self.messages.create),
                    "/v1/messages/count_tokens": Route(self.messages.count_tokens),
                }.items()
            },
            ("POST", "/v1/responses"): Route(self.responses.create),
            ("POST", "/replay_latest_llm_call"): Route(self.replay_latest_llm_call),
            ("POST", "/sync_train_config"): Route(self.sync_train_config, wire.SyncTrainConfigRequest),
            ("POST", "/sync_train_code"): Route(self.sync_train_code, max_body=MAX_TRAIN_CODE),
            ("POST", "/start_engine"): Route(self.start_engine),
            ("POST", "/stop_engine"): Route(self.stop_engine),
            ("POST", "/update_engine_status"): Route(self.update_engine_status, wire.UpdateEngineStatusRequest),
            ("GET", "/get_engine_status"): Route(self.get_engine_status),
            ("GET", "/get_server_experiment_dir"): Route(self.get_server_experiment_dir),
            ("POST", "/register_episode"): Route(self.register_episode, wire.RegisterEpisodeRequest),
            ("POST", "/claim_episode"): Route(self.claim_episode, wire.ClaimEpisodeRequest),
            ("POST", "/end_episode"): Route(self.end_episode, wire.EndEpisodeRequest),
            ("POST", "/abort_episode"): Route(self.abort_episode, wire.EndEpisodeRequest),
            ("POST", "/can_continue_episode"): Route(self.can_continue_episode, wire.CanContinueEpisodeRequest),
            ("POST", "/is_episode_claimed"): Route(self.is_episode_claimed, wire.CheckWhetherEpisodeClaimedRequest),
            ("POST", "/get_episode_buffer"): Route(self.get_episode_buffer),
            ("POST", "/update_current_batch_rollout_pool_information_and_fetch_instruction"): Route(
                self.update_pool_information, CurrentBatchRolloutPoolInformation
            ),
            ("POST", "/update_current_batch_rollout_pool_information"): Route(
                self.update_pool_information, CurrentBatchRolloutPoolInformation
            ),
            ("GET", "/get_current_batch_rollout_pool_information"): Route(self.get_pool_information),
            ("POST", "/agree_sync_weight"): Route(self.agree_sync_weight, wire.AgreeSyncWeightRequest),
            ("POST", "/push_verbose_log"): Route(self.push_verbose_log, wire.PushVerboseLogRequest),
            ("GET", "/get_verbose_logs"): Route(self.get_verbose_logs),
        }

    async def health(self, request: Request) -> Response:
        """Say that the server lives, and that it is the reference with which policy."""
        return json_response(
            {
                "status": "ok",
                "engine": "reference",
                "version": __version__,
                "policy": self.engine.policy.name,
                "policy_is": self.engine.policy.describe(),
                "slots": self.options.slots,
                "long_poll": True,
                "chaos": dict(self.chaos.counts) if self.options.chaos.any else None,
                "pid": os.getpid(),
            }
        )

    async def openapi(self, request: Request) -> Response:
        """List the endpoints and the models of their bodies (OpenAPI 3.1)."""
        models = list({route.model for route in self.app.routes.values() if route.model})
        schemas = models_json_schema(
            [(one, "validation") for one in models], ref_template="#/components/schemas/{model}"
        )
        paths: dict[str, dict[str, Any]] = {}
        for (method, path), route in self.app.routes.items():
            operation: dict[str, Any] = {
                "summary": (route.handler.__doc__ or "").partition("\n")[0],
                "responses": {"200": {"description": "Successful Response"}},
            }
            if route.model:
                schema = {"$ref": f"#/components/schemas/{route.model.__name__}"}
                operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
            paths.setdefault(path, {})[method.lower()] = operation
        return json_response(
            {
                "openapi": "3.1.0",
                "info": {"title": "AgentJet reference swarm server", "version": __version__},
                "paths": paths,
                "components": {"schemas": schemas[1].get("$defs", {})},
            }
        )

    async def chat_completions(self, request: Request) -> Response:
        """Answer a chat completion request of a claimed episode."""
        return await self.chat.complete(request)

    async def models(self, request: Request) -> Response:
        """List the one model that is trained."""
        name = self.engine.model_path or "AgentJet-Model"
        return json_response({"object": "list", "data": [{"id": name, "object": "model", "owned_by": "agentjet"}]})

    async def replay_latest_llm_call(self, request: Request) -> Response:
        """Return the last completed chat call."""
        if self.chat.latest_call is None:
            raise HttpError(404, "No LLM call has been completed yet.")
        return json_response(self.chat.latest_call)

    async def sync_train_config(self, body: wire.SyncTrainConfigRequest, request: Request) -> Response:
        """Take the configuration of the next run."""
        self._do(self.engine.sync_config, body.yaml_as_string)
        return json_response({"success": True})

    async def sync_train_code(self, request: Request) -> Response:
        """Take a zip of training code; it is checked and unpacked, not run."""
        if self.pool.status.current != OFFLINE:
            raise HttpError(400, f"Engine is not offline ({self.pool.status.current}). Stop it before new train code.")
        try:
            path = await asyncio.to_thread(receive_train_code, request.body, self.options.base_dir or Path.cwd())
        except ValueError as error:
            raise HttpError(400, f"The train code cannot be used: {error}.") from None
        message = "Train code received and checked; the reference engine does not run it."
        return json_response({"success": True, "message": message, "temp_ajet_code_path": str(path)})

    async def start_engine(self, request: Request) -> Response:
        """Start the training run."""
        try:
            self.engine.start()
        except Refused as refused:
            if refused.status == 200:
                return json_response({"success": False, "error": refused.detail})
            raise HttpError(refused.status, refused.detail) from None
        except OSError as error:
            return json_response({"success": False, "error": f"The experiment folder cannot be used: {error}"})
        return json_response({"success": True, "pid": os.getpid()})

    async def stop_engine(self, request: Request) -> Response:
        """Stop the training run and wait until it has stopped."""
        await self.engine.stop()
        return json_response(wire.BoolResponse(success=True))

    async def update_engine_status(self, body: wire.UpdateEngineStatusRequest, request: Request) -> Response:
        """Take a status from an engine outside this process, while none runs in it."""
        if body.engine_status not in STATUSES:
            return json_response(wire.BoolResponse(success=False, failure_reason="Invalid engine status"))
        if self.engine.running:
            reason = "The reference engine of this process runs and sets its own status; stop it first"
            return json_response(wire.BoolResponse(success=False, failure_reason=reason))
        self.pool.status.set(body.engine_status, global_step=body.global_step, detail=body.engine_status_detail)
        return json_response(wire.BoolResponse(success=True))

    async def get_engine_status(self, request: Request) -> Response:
        """Return status, detail and step; ``?revision=N&wait_seconds=S`` waits for a change."""
        query, status = request.query, self.pool.status
        if "revision" in query:
            try:
                revision, seconds = int(query["revision"]), float(query.get("wait_seconds", MAX_WAIT))
                if math.isnan(seconds):
                    raise ValueError
            except ValueError:
                raise HttpError(422, "revision is a whole number and wait_seconds a number of seconds.") from None
            await status.wait_for_change(revision, min(seconds, MAX_WAIT))
        return json_response(
            wire.EngineStatusResponse(
                engine_status=status.current,
                engine_status_detail=status.detail,
                global_step=status.global_step,
                revision=status.revision,
                run=self.engine.run_id,
            )
        )

    async def get_server_experiment_dir(self, request: Request) -> Response:
        """Return the folder of the current or last run."""
        settings = self.engine.settings
        return json_response({"server_experiment_dir": str(settings.experiment_dir) if settings else None})

    async def register_episode(self, body: wire.RegisterEpisodeRequest, request: Request) -> Response:
        """Offer an episode of an engine outside this process."""
        if self.engine.running:
            reason = "The reference engine of this process runs and registers its own episodes"
            return json_response(wire.BoolResponse(success=False, failure_reason=reason))
        try:
            self.pool.register(
                body.episode_uuid,
                api_key=body.openai_api_key,
                zmq_listen_result_addr=body.zmq_listen_result_addr,
            )
        except Refused as refused:
            return json_response(wire.BoolResponse(success=False, failure_reason=refused.detail))
        return json_response(wire.BoolResponse(success=True))

    async def claim_episode(self, body: wire.ClaimEpisodeRequest, request: Request) -> Response:
        """Give a client the episode that has waited longest."""
        body.wait_seconds = min(body.wait_seconds, MAX_WAIT)
        if body.wait_seconds > 0:
            episode = await self._claim_while_connected(body, request)
        else:
            episode = self._do(self.pool.claim_now, body)
        if episode is None:
            return json_response(
                wire.ClaimEpisodeResponse(
                    success=False, client_uuid="", episode_uuid="", fail_cause=self._fail_cause(), waits=True
                )
            )
        return json_response(
            wire.ClaimEpisodeResponse(
                success=True,
                client_uuid=body.client_uuid,
                episode_uuid=episode.episode_uuid,
                openai_base_url=f"{self.base_url}/v1",
                openai_api_key=episode.api_key,
                waits=True,
            )
        )

    async def _claim_while_connected(self, body: wire.ClaimEpisodeRequest, request: Request) -> Any:
        """Wait for an episode, but not for a client that has hung up: it could never end it."""
        claim = asyncio.ensure_future(self.pool.claim(body))
        gone = asyncio.ensure_future(request.disconnected())
        try:
            await asyncio.wait({claim, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not claim.done():
                claim.cancel()
                await asyncio.wait([claim])
                return None
            episode = self._do(claim.result)
            if episode is not None and gone.done():
                self.pool.abandon(episode, episode.claim)
                return None
            return episode
        finally:
            gone.cancel()

    def _fail_cause(self) -> str:
        status = self.pool.status.current
        if status == ROLLING:
            return NOTHING_TO_CLAIM
        return f"Engine not ready. Current status: [{status}]. {CLAIM_ADVICE.get(status, '')}".strip()

    async def end_episode(self, body: wire.EndEpisodeRequest, request: Request) -> Response:
        """Take the result of an episode; the answer comes when the journal has it, so it outlives this process."""
        return json_response(wire.EndEpisodeResponse(success=True, warning=self._do(self.pool.end, body)))

    async def abort_episode(self, body: wire.EndEpisodeRequest, request: Request) -> Response:
        """Take an episode back without a result."""
        self._do(self.pool.abort, body.episode_uuid, body.client_uuid)
        return json_response(wire.EndEpisodeResponse(success=True))

    async def can_continue_episode(self, body: wire.CanContinueEpisodeRequest, request: Request) -> Response:
        """Tell a client whether its claim is still good."""
        can = self.pool.can_continue(body.episode_uuid, body.client_uuid)
        return json_response(wire.CanContinueEpisodeResponse(can_continue=can))

    async def is_episode_claimed(self, body: wire.CheckWhetherEpisodeClaimedRequest, request: Request) -> Response:
        """Tell an engine outside this process whether an episode is claimed; on request drop it if not."""
        claimed = self.pool.is_claimed(
            body.episode_uuid, unregister_if_not_claimed=body.unregister_if_not_claimed and not self.engine.running
        )
        return json_response(wire.BoolResponse(success=claimed))

    async def get_episode_buffer(self, request: Request) -> Response:
        """Return all episode records, without their keys."""
        buffer = [
            wire.EpisodeStatus(
                episode_uuid=one.episode_uuid,
                episode_status=one.episode_status,
                episode_type=one.episode_type,
                openai_base_url=f"{self.base_url}/v1",
                client_uuid=one.client_uuid,
                zmq_listen_result_addr=one.zmq_listen_result_addr,
                latest_activity_timestamp=self.pool.wall_time(one),
                discard_episode_timeout=one.discard_episode_timeout,
                llm_call_count=one.llm_call_count,
                optional_task_id=one.task_id,
            )
            for one in self.pool.episodes.values()
        ]
        return json_response(wire.EpisodeBufferResponse(buffer=buffer))

    async def update_pool_information(self, body: CurrentBatchRolloutPoolInformation, request: Request) -> Response:
        """Take the progress of an engine outside this process and tell it the active clients."""
        self._posted_information = body
        return json_response(wire.SwarmClientInstruction(active_clients=list(self.pool.clients)))

    def information(self) -> CurrentBatchRolloutPoolInformation:
        """Return how far the step has come, without the running episodes."""
        own = self.engine.running
        information = self.engine.progress() if own else self._posted_information.model_copy()
        status = self.pool.status
        information.engine_status = status.current
        information.global_step = status.global_step
        information.booting_start_time = status.booting_start_time
        information.training_model_path = self.engine.model_path
        information.swarm_client_instruction = wire.SwarmClientInstruction(active_clients=list(self.pool.clients))
        return information

    async def get_pool_information(self, request: Request) -> Response:
        """Return how far the step has come, and the running episodes."""
        information = self.information()
        rest = information.__pydantic_serializer__.to_json(information, exclude={"running_episode_details"})
        running = await self.pool.running_episode_details()
        return Response(rest[:-1] + b',"running_episode_details":' + running + b"}")

    async def agree_sync_weight(self, body: wire.AgreeSyncWeightRequest, request: Request) -> Response:
        """Note that a client agrees to sync weights now."""
        if not body.client_uuid:
            return json_response(wire.BoolResponse(success=False, failure_reason="client_uuid required"))
        method = self.engine.settings.sample_collection_method if self.engine.running and self.engine.settings else None
        if method is not None and method not in AGREE_METHODS:
            raise HttpError(400, f"The sample collection method is {method}; agreement counts only in an agree method.")
        if not self.pool.clients.agree(body.client_uuid):
            reason = f"Client {body.client_uuid} is not in the active list; end a train episode first"
            return json_response(wire.BoolResponse(success=False, failure_reason=reason))
        return json_response(wire.BoolResponse(success=True))

    async def push_verbose_log(self, body: wire.PushVerboseLogRequest, request: Request) -> Response:
        """Keep a line for overwatch."""
        self.verbose_log.push(body.message, body.tag)
        return json_response(wire.BoolResponse(success=True))

    async def get_verbose_logs(self, request: Request) -> Response:
        """Return the lines of the last 30 s."""
        return json_response(wire.VerboseLogsResponse(entries=self.verbose_log.recent()))

    @staticmethod
    def _do(action: Any, *args: Any) -> Any:
        try:
            return action(*args)
        except Refused as refused:
            raise HttpError(refused.status, refused.detail) from None
