#!/usr/bin/env python3
"""Try one episode against a swarm server with the AgentJet client of this interpreter.

Usage: episode.py URL SECONDS [--end]
Claims an episode within SECONDS, asks the model once, and gives the episode back: aborted, so that a
training in progress is not fed with it, or ended with reward 0 (--end). Neither declares the client
active: the server would then wait for its consent before it syncs weights. Prints one JSON line:
{episode, reply, gave_back}, {waited: SECONDS} if no episode came, or {error}.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import threading
import urllib.request
from typing import Any

PATIENCE = 60
"""Seconds after which the server takes the episode back from a client that has gone."""


def ask(base_url: str, api_key: str) -> str:
    """Send one chat message and return the reply's text."""
    body = {"model": "agentjet", "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 16}
    request = urllib.request.Request(
        base_url.rstrip("/") + "/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + api_key},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=120) as response:
        return str(json.loads(response.read())["choices"][0]["message"]["content"])


def call(function: Any, *given: Any, **newer: Any) -> Any:
    """Call a function with those keyword arguments that this release of the client knows."""
    known = inspect.signature(function).parameters
    return function(*given, **{name: value for name, value in newer.items() if name in known})


def claim(client: Any, seconds: float) -> Any:
    """Claim an episode; return what the client returns, or None if none came in time. Raises what it raises.

    The client itself waits for ever, so it waits in a thread that ends with this process.
    """
    found: list = []
    failed: list = []

    def wait() -> None:
        try:
            found.append(client.begin_episode(discard_episode_timeout=PATIENCE))
        except Exception as error:
            failed.append(error)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(seconds)
    if failed:
        raise failed[0]
    return found[0] if found else None


def try_episode(url: str, seconds: float, end: bool) -> dict:
    """Claim, ask, give back."""
    from ajet.schema.task import Task, WorkflowOutput
    from ajet.tuner_lib.experimental.swarm_client import SwarmClient

    client = call(SwarmClient, url, verbose=False)
    claimed = claim(client, seconds)
    if claimed is None:
        return {"waited": seconds}
    episode, api = claimed
    try:
        reply = ask(api.base_url, api.api_key)
    except Exception:
        call(client.abort_episode, episode, declare_client_active=False)
        raise
    if end:
        task, output = Task(task_id="install-check"), WorkflowOutput(reward=0.0)
        call(client.end_episode, task, episode, output, declare_client_active=False)
    else:
        call(client.abort_episode, episode, declare_client_active=False)
    return {"episode": episode, "reply": reply[:80], "gave_back": "ended" if end else "aborted"}


def main() -> int:
    """Try one episode and print what happened."""
    try:
        found = try_episode(sys.argv[1].rstrip("/"), float(sys.argv[2]), "--end" in sys.argv[3:])
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    if "waited" in found:
        os._exit(1)  # the client still waits, and must not keep this process
    return 1 if "error" in found else 0


if __name__ == "__main__":
    sys.exit(main())
