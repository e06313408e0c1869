"""The page at ``/`` of the engine: what overwatch shows, in a browser, for reading only."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ajet.tuner_lib.experimental.asgi import Request, Response
from ajet.tuner_lib.experimental.oai_model_server import EVENT_STREAM, sse
from ajet.utils.swarm_frame import ROWS, frame_of

if TYPE_CHECKING:
    from ajet.tuner_lib.experimental.swarm_server import SwarmServer

SECONDS = 0.5
"""How often the page is told."""

SHOWN_STEPS = 500

# inline script and style only, nothing from elsewhere, and no form or frame
POLICY = (
    b"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'"
)


class WatchPage:
    """Serves the page and its events."""

    def __init__(self, server: SwarmServer) -> None:
        self.server = server
        self._page = Path(__file__).with_name("page.html").read_bytes()

    async def page(self, request: Request) -> Response:
        """Return the page."""
        headers = ((b"content-security-policy", POLICY), (b"x-content-type-options", b"nosniff"))
        return Response(self._page, media_type=b"text/html; charset=utf-8", headers=headers)

    async def events(self, request: Request) -> Response:
        """Return frames as server-sent events, until the reader has gone."""
        return Response(media_type=EVENT_STREAM, chunks=self._frames(request))

    async def _frames(self, request: Request) -> AsyncGenerator[bytes, None]:
        gone = asyncio.ensure_future(request.disconnected())
        try:
            while not gone.done():
                yield sse(self.frame())
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(asyncio.shield(gone), SECONDS)
        finally:
            gone.cancel()

    def frame(self) -> dict[str, Any]:
        """Return a frame of this server, with the mean reward of each step so far."""
        server = self.server
        pool = server.pool
        now = asyncio.get_running_loop().time()
        idle = heapq.nsmallest(ROWS, pool.claimed(), key=lambda one: one.last_activity)
        information = server.information().model_dump(mode="json", exclude={"running_episode_details"})
        information["running_episode_details"] = {
            one.episode_uuid: {
                "time_since_last_activity": f"{now - one.last_activity:.1f}s",
                "discard_episode_timeout": f"{one.discard_episode_timeout:.1f}s",
                "llm_call_count": str(one.llm_call_count),
                "client_uuid": one.client_uuid,
                "optional_task_id": one.task_id,
            }
            for one in idle
        }
        trainer = server.engine.trainer
        history = trainer.history[-SHOWN_STEPS:] if trainer else []
        frame = frame_of(
            server.base_url,
            health={"engine": "reference", "policy": server.engine.policy.name},
            status={
                "engine_status": pool.status.current,
                "engine_status_detail": pool.status.detail,
                "global_step": pool.status.global_step,
            },
            pool=information,
            log=[entry.model_dump() for entry in server.verbose_log.recent()],
            running_episodes=pool.running,
        )
        return {**frame, "rewards": [step.get("critic/rewards/mean") for step in history]}
