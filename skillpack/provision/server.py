"""Ask a swarm server whether it works, and let it boot a job to prove it."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.error
import urllib.request
from typing import Any

from ajet.utils.loopback import is_loopback
from skillpack.runs.engine import ask_engine

POLL_SECONDS = 0.2
ANSWER_LIMIT = 20_000_000
"""Bytes of an answer that are read: the records of 10,000 episodes are about 5 MB."""


class Refused(OSError):
    """The server answered, and what it answered is an error."""


def request(url: str, path: str, body: Any = None, seconds: float = 30) -> dict[str, Any]:
    """Send a GET (no ``body``) or a POST of JSON to a swarm server and return its JSON answer.

    Loopback is asked directly, whatever proxy is set. Raises Refused (an HTTP error, whose detail is in the
    message), OSError (unreachable) and ValueError (no JSON).
    """
    handlers = [urllib.request.ProxyHandler({})] if is_loopback(url) else []
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url.rstrip("/") + path, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.build_opener(*handlers).open(asked, timeout=seconds) as response:
            answer = json.loads(response.read(ANSWER_LIMIT))
    except urllib.error.HTTPError as error:
        raise Refused(f"{path} answered {error.code}: {error.read(500).decode('utf-8', 'replace')}") from None
    return answer if isinstance(answer, dict) else {"answer": answer}


def engine_kind(url: str) -> str | None:
    """Return what ``/health`` calls the engine ("reference" for the pack's own), or None."""
    try:
        kind = request(url, "/health", seconds=5).get("engine")
    except (OSError, ValueError):
        return None
    return str(kind) if kind else None


def check_health(url: str) -> tuple[bool, str]:
    """Return whether ``GET /health`` answers, and what it says."""
    try:
        return True, f"{url}/health answers {json.dumps(request(url, '/health', seconds=5))}"
    except (OSError, ValueError) as error:
        return False, f"{url}/health: {error}"


def check_status(url: str) -> tuple[str | None, str]:
    """Return the engine's status, or None, and how to say it."""
    found = ask_engine(url)
    return (found.status, f"engine status {found.status}") if found else (None, f"{url} tells no engine status")


def slots_taken(url: str) -> int:
    """Return how many episodes run when no free one is offered; 0 when one is, or the server does not tell.

    Source of the route: ``POST /get_episode_buffer`` of AgentJet's swarm server, whose records are "registered"
    until a client claims them.
    """
    try:
        records = request(url, "/get_episode_buffer", {}, seconds=10)["buffer"]
        states = [record["episode_status"] for record in records]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return 0 if "registered" in states else len(states)


def check_boot(url: str, yaml_text: str, patience: float) -> tuple[bool, str]:
    """Sync a job, start its engine, wait for BOOTING (or what follows it), and stop the engine again.

    Only an OFFLINE server is touched, and only an engine that was started here is stopped. Returns whether it
    booted and what was seen.
    """
    before = ask_engine(url)
    if before is None or before.status != "ENGINE.OFFLINE":
        return False, f"not tried: the engine is {before.status if before else 'out of reach'}, not ENGINE.OFFLINE"
    try:
        request(url, "/sync_train_config", {"yaml_as_string": yaml_text})
        started = request(url, "/start_engine", {}, seconds=patience + 60)
    except Refused as error:
        return False, str(error)  # somebody else's engine may run by now: it is not ours to stop
    except (OSError, ValueError) as error:
        _stop(url)
        return False, str(error)
    if not started.get("success"):
        return False, f"start_engine was refused: {started.get('error') or started}"
    try:
        seen = _first_other_status(url, "ENGINE.OFFLINE", patience)
    finally:
        _stop(url)
    if seen is None:
        return False, f"still ENGINE.OFFLINE after {patience:g} s"
    return True, f"{seen} after the job was synced; the engine was stopped again"


def _first_other_status(url: str, status: str, patience: float) -> str | None:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        found = ask_engine(url)
        if found and found.status != status:
            return found.status
        time.sleep(POLL_SECONDS)
    return None


def _stop(url: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        request(url, "/stop_engine", {}, seconds=60)
