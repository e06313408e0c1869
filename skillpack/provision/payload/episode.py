#!/usr/bin/env python3
"""Try one episode against a swarm server with the AgentJet client of this interpreter.

Usage: episode.py URL [--end]
Claims an episode, asks the model once, and gives the episode back: aborted, so that a training in
progress is not fed with it, or ended with reward 0 (--end). Prints one JSON line: {episode, reply,
gave_back} or {error}.
"""

from __future__ import annotations

import json
import sys
import urllib.request


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


def try_episode(url: str, end: bool) -> dict:
    """Claim, ask, give back."""
    from ajet.schema.task import Task, WorkflowOutput
    from ajet.tuner_lib.experimental.swarm_client import SwarmClient

    client = SwarmClient(url, verbose=False)
    episode, api = client.begin_episode(discard_episode_timeout=120)
    try:
        reply = ask(api.base_url, api.api_key)
    except Exception:
        client.abort_episode(episode)
        raise
    if end:
        client.end_episode(Task(task_id="install-check"), episode, WorkflowOutput(reward=0.0))
    else:
        client.abort_episode(episode)
    return {"episode": episode, "reply": reply[:80], "gave_back": "ended" if end else "aborted"}


def main() -> int:
    """Try one episode and print what happened."""
    try:
        found = try_episode(sys.argv[1].rstrip("/"), "--end" in sys.argv[2:])
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    return 1 if "error" in found else 0


if __name__ == "__main__":
    sys.exit(main())
