"""Real engines on real sockets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml


@dataclass
class RunningEngine:
    """An engine process and ways to talk to it; ``http`` may be shared by threads."""

    process: subprocess.Popen[str]
    url: str
    folder: Path
    http: httpx.Client

    def get(self, path: str, **params: Any) -> Any:
        return self.http.get(path, params=params).json()

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.http.post(path, json=body if body is not None else {}, **options)

    def claim(self, client: str = "c1", timeout: float = 60.0, **more: Any) -> dict[str, Any]:
        body = {"client_uuid": client, "episode_type": "train", "discard_episode_timeout": timeout, "wait_seconds": 10}
        return self.post("/claim_episode", {**body, **more}).json()

    def chat(self, key: str, text: str = "Add 3 and 4.", **more: Any) -> httpx.Response:
        body = {"model": "x", "messages": [{"role": "user", "content": text}], **more}
        return self.post("/v1/chat/completions", body, headers={"authorization": f"Bearer {key}"})

    def end(self, uuid: str, reward: Any = 1.0, client: str = "c1", task: str = "t1", **more: Any) -> httpx.Response:
        output = {"reward": reward, "metadata": {"task_id": task}}
        content = json.dumps(
            {"client_uuid": client, "episode_uuid": uuid, "workflow_output": output, "task_id": task, **more}
        )
        return self.http.post("/end_episode", content=content)

    def pool(self) -> dict[str, Any]:
        return self.get("/get_current_batch_rollout_pool_information")

    def run_episode(self, reward: float = 1.0, task: str = "t1", client: str = "c1") -> str:
        claim = self.claim(client)
        assert self.chat(claim["openai_api_key"]).status_code == 200
        answer = self.end(claim["episode_uuid"], reward, client, task)
        assert answer.status_code == 200, answer.text
        return claim["episode_uuid"]

    def wait_for(self, satisfied: Callable[[dict[str, Any]], bool], seconds: float = 20.0) -> dict[str, Any]:
        """Follow the status by long polls until it satisfies."""
        status = self.get("/get_engine_status")
        for _ in range(200):
            if satisfied(status):
                return status
            status = self.get("/get_engine_status", revision=status["revision"], wait_seconds=seconds)
        raise AssertionError(f"the engine never got there; last {status}")

    def metrics(self) -> list[dict[str, Any]]:
        folder = Path(self.get("/get_server_experiment_dir")["server_experiment_dir"])
        return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def job(name: str = "t", batch: int = 2, repeat: int = 2, workers: int = 8, steps: int = 3, **swarm: Any) -> str:
    """Return a small configuration as YAML."""
    common = {"logger": "console", "total_training_steps": steps}
    return yaml.safe_dump(
        {
            "ajet": {
                "project_name": "tests",
                "experiment_name": name,
                "data": {"train_batch_size": batch},
                "rollout": {"num_repeat": repeat, "max_env_worker": workers},
                "trainer_common": common,
                **swarm,
            }
        }
    )


@pytest.fixture
def start_engine(tmp_path: Path) -> Iterator[Callable[..., RunningEngine]]:
    """Start engines in a scratch folder; all are ended with the test."""
    processes: list[subprocess.Popen[str]] = []
    clients: list[httpx.Client] = []

    def start(config: str | None = None, *options: str, folder: Path = tmp_path) -> RunningEngine:
        command = [sys.executable, "-m", "ajet.swarm_cli", "start", "--swarm-port", "0", *options]
        if config is not None:
            (folder / "job.yaml").write_text(config)
            command += ["--conf", "job.yaml", "--start"]
        with (folder / "engine.err").open("w") as errors:
            process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True)
        processes.append(process)
        assert process.stdout
        line = process.stdout.readline()
        assert line, (folder / "engine.err").read_text()
        url = json.loads(line)["url"]
        clients.append(httpx.Client(base_url=url, timeout=30, trust_env=False))
        return RunningEngine(process, url, folder, clients[-1])

    yield start
    for client in clients:
        client.close()
    for process in processes:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()
