"""The script as a user runs it, and a stand-in for a released swarm server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema

from skillpack.pack import SCHEMAS, skills_dir

SCRIPT = skills_dir() / "swarm-configuration" / "scripts" / "capacity.py"


def run_script(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run capacity.py as a user would."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), *args], capture_output=True, text=True, timeout=100, check=False, cwd=cwd
    )


def answer_of(*args: str, schema: str = "capacity-answer.schema.json", cwd: Path | None = None) -> dict[str, Any]:
    """Return the JSON document that capacity.py prints, valid against its schema."""
    done = run_script(*args, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads((SCHEMAS / schema).read_text()))
    assert isinstance(document, dict)
    return document


def limit(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the limit of that name."""
    return next(item for item in document["limits"] if item["name"] == name)


class ReleasedServer:
    """Answers as a released server does, with what the test puts into ``status``, ``pool`` and ``buffer``."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = {"engine_status": "ENGINE.ROLLING", "engine_status_detail": None}
        self.pool: dict[str, Any] = {}
        self.buffer: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.url = ""

    def run_episodes(self, running: int, offered: int, *, idle: float = 0.3, client: str = "c1") -> None:
        """Let ``running`` episodes be claimed by ``client`` and ``offered`` be unclaimed."""
        self.pool.setdefault("running_episode_details", {}).update(
            {
                f"{client}-{number}": {
                    "episode_status": "claimed",
                    "time_since_last_activity": f"{idle}s",
                    "discard_episode_timeout": "5.0s",
                    "llm_call_count": "2",
                    "client_uuid": client,
                    "optional_task_id": "",
                }
                for number in range(running)
            }
        )
        secret = {"openai_api_key": "sk-ajet-secret"}
        self.buffer += [{"episode_status": "claimed", **secret}] * running
        self.buffer += [{"episode_status": "registered", **secret}] * offered

    def answer(self, path: str) -> dict[str, Any]:
        """Return the document of ``path``."""
        self.requests.append(path)
        if path == "/health":
            return {"status": "ok"}
        if path == "/get_engine_status":
            return self.status
        if path == "/get_current_batch_rollout_pool_information":
            return {"engine_status": self.status["engine_status"], **self.pool}
        return {"buffer": self.buffer}
