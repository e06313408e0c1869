"""Trouble on purpose: slow replies, failures, lost connections, early weight syncs, restarts.

A real server has all of them sooner or later; here a client's handling of them can be rehearsed.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from ajet.tuner_lib.experimental.asgi import App, Receive, Send, json_response, send_response

SPARED = ("GET",)
"""Methods whose requests are answered as ever: watching must stay possible."""

SLOW_SECONDS = (0.5, 3.0)
DOWN_SECONDS = 1.0


@dataclass(frozen=True)
class ChaosOptions:
    """How much trouble: ``fail_rate`` is the share of POST requests that fail with a 500.

    ``latency`` is the least and the most seconds that a chat reply takes. ``chaos`` adds, at the
    given shares, lost requests, lost answers, slow answers, early weight syncs and restarts.
    """

    latency: tuple[float, float] = (0.0, 0.0)
    fail_rate: float = 0.0
    chaos: bool = False
    lost_request: float = 0.01
    lost_answer: float = 0.01
    failure: float = 0.02
    slow: float = 0.02
    early_sync: float = 0.002
    restart: float = 0.0005

    @property
    def any(self) -> bool:
        """Whether requests are troubled at all."""
        return self.chaos or self.fail_rate > 0


def reply_latency(options: ChaosOptions, seed: int) -> Callable[[], float]:
    """Return a function that says how many seconds the next chat reply takes."""
    low, high = options.latency
    generator = random.Random(seed)
    return (lambda: generator.uniform(low, high)) if high > 0 else (lambda: 0.0)


class Chaos:
    """An ASGI application around another that troubles its requests, and counts how.

    ``early_sync()`` and ``restart()`` are called when their turn has come.
    """

    def __init__(
        self,
        app: App,
        options: ChaosOptions,
        seed: int,
        early_sync: Callable[[], None],
        restart: Callable[[], None],
    ) -> None:
        self.app = app
        self.options = options
        self.counts: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._early_sync = early_sync
        self._restart = restart
        self._down_until = 0.0
        if options.any:
            logging.getLogger("uvicorn.error").addFilter(_not_a_hang_up)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one HTTP request, or do not."""
        if scope["type"] != "http" or scope["method"] in SPARED or not self.options.any:
            await self.app(scope, receive, send)
            return
        if asyncio.get_running_loop().time() < self._down_until:
            await self._hang_up(send)
            return
        trouble = self._draw()
        if trouble:
            self.counts[trouble] += 1
        if trouble == "early_sync":
            self._early_sync()
        elif trouble == "restart":
            self._down_until = asyncio.get_running_loop().time() + DOWN_SECONDS
            self._restart()
        if trouble in ("lost_request", "restart"):
            await self._hang_up(send)
        elif trouble == "lost_answer":
            await self.app(scope, receive, _swallow)
            await self._hang_up(send)
        elif trouble == "failure":
            body = {
                "detail": "chaos: this request fails on purpose",
                "error": {"message": "chaos", "type": "server_error"},
            }
            await send_response(json_response(body, 500), send)
        else:
            if trouble == "slow":
                await asyncio.sleep(self._random.uniform(*SLOW_SECONDS))
            await self.app(scope, receive, send)

    def _draw(self) -> str:
        draw = self._random.random()
        options = self.options
        shares = {"failure": options.fail_rate}
        if options.chaos:
            names = ("lost_request", "lost_answer", "slow", "early_sync", "restart")
            shares = {name: getattr(options, name) for name in names}
            shares["failure"] = options.fail_rate or options.failure
        for name, share in shares.items():
            if draw < share:
                return name
            draw -= share
        return ""

    @staticmethod
    async def _hang_up(send: Send) -> None:
        """Begin an answer and break it off: the server then closes the connection."""
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1000")]})
        await send({"type": "http.response.body", "body": b"", "more_body": True})


def _not_a_hang_up(record: logging.LogRecord) -> bool:
    """Tell a real complaint of uvicorn's from those about connections that were broken off on purpose."""
    return "without completing response" not in record.getMessage()


async def _swallow(message: MutableMapping[str, Any]) -> None:
    """Send nothing."""
