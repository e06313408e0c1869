"""Requests that must arrive once: the end and the abort of an episode."""

from __future__ import annotations

import logging
import time
from typing import Any

import httpx

from ajet.tuner_lib.experimental.status_watch import pause
from ajet.tuner_lib.experimental.swarm_http import GENERAL_TIMEOUT, SwarmHttp, SwarmServerError

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between attempts: doubled from the first to the longest."""

RECONNECT_SECONDS = 120.0
"""How long a server that does not answer is tried: a restart takes a while."""

FAILURES = 6
"""How often a server that answers 5xx is asked again."""


def deliver(
    http: SwarmHttp, path: str, request: dict[str, Any], *, seconds: float = RECONNECT_SECONDS
) -> dict[str, Any]:
    """Post until the server has taken the request, and return its answer.

    A reference server counts a request that comes twice once. A released server that took the first
    and lost its answer says "not found" to the second, which is taken for a yes: the answer is
    then empty. Raises SwarmServerError for a refusal, RuntimeError if nobody answers in time.
    """
    deadline = time.monotonic() + seconds
    wait, failures, may_have_arrived = FIRST_PAUSE, 0, False
    while True:
        try:
            return http.post(path, request, timeout=GENERAL_TIMEOUT)
        except SwarmServerError as error:
            if may_have_arrived and "not found" in error.detail:
                return {}
            failures += 1
            if error.status_code < 500 or failures >= FAILURES:
                raise
            log.debug("%s: attempt %d failed: %s", path, failures, error)
        except (httpx.HTTPError, ValueError) as error:
            may_have_arrived = may_have_arrived or not isinstance(error, httpx.ConnectError)
            if time.monotonic() + wait > deadline:
                raise RuntimeError(f"SwarmClient error: {http.server_url} does not answer: {error}") from error
        pause(wait)
        wait = min(2 * wait, LONGEST_PAUSE)
