"""Run a swarm server in this process until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
import uvloop

from ajet.tuner_lib.experimental.asgi import App
from ajet.tuner_lib.experimental.chaos import Chaos
from ajet.tuner_lib.experimental.engine import EngineOptions
from ajet.tuner_lib.experimental.engine_status import OFFLINE
from ajet.tuner_lib.experimental.swarm_server import SwarmServer

log = logging.getLogger(__name__)

GARBAGE_THRESHOLD = 50_000
"""Objects between two collections. With Python's own value the collector walks over thousands of waiting slots
again and again, and every claim behind it waits for some 40 ms; little here is left in cycles anyway."""


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one. Raises OSError (port in use, unknown host)."""
    family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # with the protocol named, asyncio sets TCP_NODELAY on its connections; with 0 it does not
    listener = socket.socket(family, kind, proto or socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(4096)
    except OSError:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the base URL of a listening socket; for an any-address that of loopback."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{host}:{port}"


class Uvicorn(uvicorn.Server):
    """A uvicorn server whose process keeps its own signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def web_config(app: App | Chaos) -> uvicorn.Config:
    """Return how an engine's application is served: no log line per request, no lifespan protocol."""
    return uvicorn.Config(
        app,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=5,
        timeout_keep_alive=75,
    )


def serve(
    listener: socket.socket,
    options: EngineOptions,
    *,
    config_text: str | None = None,
    start_now: bool = False,
    on_ready: Callable[[SwarmServer], None] = lambda _: None,
) -> None:
    """Serve on ``listener`` until SIGINT or SIGTERM; with ``start_now`` the run of ``config_text`` starts at once.

    On a signal the run is stopped first (its completed episodes stay in its journal), then waiting
    clients are answered, then the server ends. Raises Refused if the configuration cannot be used,
    OSError if the experiment's folder cannot be written.
    """
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 50)
    uvloop.run(_serve(listener, options, config_text, start_now, on_ready))


async def _serve(
    listener: socket.socket,
    options: EngineOptions,
    config_text: str | None,
    start_now: bool,
    on_ready: Callable[[SwarmServer], None],
) -> None:
    server = SwarmServer(options)
    server.base_url = url_of(listener)
    web = Uvicorn(web_config(server.asgi))
    server.app.loopback_only = ipaddress.ip_address(listener.getsockname()[0]).is_loopback
    if config_text is not None:
        server.engine.sync_config(config_text)
        if start_now:
            server.engine.start()
    stopping: list[asyncio.Task[None]] = []

    async def stop() -> None:
        await server.engine.stop()
        server.pool.status.set(OFFLINE, detail="the server was stopped")  # answers those who wait for a change
        web.should_exit = True

    def on_signal() -> None:
        if stopping:
            web.force_exit = True
        stopping.append(asyncio.get_running_loop().create_task(stop()))

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    on_ready(server)
    await web.serve(sockets=[listener])
