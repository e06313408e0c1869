"""Run clients against an engine with chaos for a long time, and count on both sides.

    python benchmarks/swarm_soak.py [--minutes 30] [--clients 8] [--kill-every 120]

Episodes are claimed, talked to and ended while the engine loses requests and answers, syncs early and
restarts; with ``--kill-every`` the whole process is also killed (SIGKILL) and started again. At the
end, every episode that a client was told is stored must have been trained on (or be in the journal),
once: each carries a random number in its ``tool_stats``, whose sum the engine logs with each step.
The engine's memory must not have grown by more than a third since its first minute; the prompts are
few, since the policy learns something about each and keeps it.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import httpx

from ajet.tuner_lib.experimental.delivery import deliver
from ajet.tuner_lib.experimental.swarm_client import SwarmClient

NAME = "soak"
PROMPTS = 200


class Soak:
    """An engine process with chaos and the clients that load it."""

    def __init__(self, folder: Path, clients: int, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.stored: list[int] = []
        self.uncertain: list[int] = []
        self.failures: Counter[str] = Counter()
        self.memory: list[tuple[float, int]] = []
        self.peak = 0
        self.kills = self.steps = 0
        (folder / "job.yaml").write_text(
            f"ajet: {{experiment_name: {NAME}, data: {{train_batch_size: 8}},"
            " rollout: {num_repeat: 4, max_env_worker: 24},"
            " trainer_common: {logger: console, total_training_steps: 1000000, save_freq: 1000}}\n"
        )
        self.port = 0
        self.process = self.start(["--conf", "job.yaml", "--start"])
        self.threads = [threading.Thread(target=self.client, args=[n], daemon=True) for n in range(clients)]

    def start(self, how: list[str]) -> subprocess.Popen:
        """Start the engine, on the port that it had before."""
        command = [sys.executable, "-m", "ajet.swarm_cli", "start", "--swarm-port", str(self.port), "--chaos"]
        seed = ["--seed", str(self.seed + self.kills)]
        with (self.folder / "engine.log").open("a") as log:
            process = subprocess.Popen(
                [*command, *seed, *how], cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert process.stdout
        self.url = json.loads(process.stdout.readline())["url"]
        self.port = int(self.url.rsplit(":", 1)[1])
        threading.Thread(target=process.stdout.read, daemon=True).start()
        return process

    def kill(self) -> None:
        """Kill the engine and start it again."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1
        self.process = self.start(["--resume", f"saved_experiments/{NAME}"])

    def client(self, number: int) -> None:
        """Claim, talk and end until told to stop; note what the server says it has stored."""
        with SwarmClient(self.url, verbose=False) as client, httpx.Client(base_url=self.url, timeout=30) as http:
            count = 0
            while not self.stop.is_set():
                try:
                    episode_uuid, model = client.begin_episode(discard_episode_timeout=5)
                except RuntimeError as error:
                    self.failures[type(error).__name__] += 1
                    continue
                body = {"messages": [{"role": "user", "content": f"Add {count % PROMPTS} and 4."}]}
                headers = {"authorization": f"Bearer {model.api_key}"}
                try:
                    http.post("/v1/chat/completions", json=body, headers=headers).raise_for_status()
                except httpx.HTTPError as error:
                    self.failures[f"chat {type(error).__name__}"] += 1
                    client.abort_episode(episode_uuid)
                    continue
                count += 1
                self.end(client, f"{number}-{count // 4}", episode_uuid, float(count % 3))

    def end(self, client: SwarmClient, task_id: str, episode_uuid: str, reward: float) -> None:
        """End an episode, and note whether the server says that it is stored."""
        number = random.getrandbits(40)
        stats = {"tool_stats": {"total_calls": 1, "total_errors": number}}
        request = {
            "client_uuid": client.client_uuid,
            "episode_uuid": episode_uuid,
            "workflow_output": {"reward": reward, "metadata": {"task_id": task_id}, "log_metrics": stats},
            "task_id": task_id,
        }
        try:
            answer = deliver(client._http, "/end_episode", request)
        except RuntimeError as error:
            self.failures[f"end {re.sub('[0-9a-f-]{36}', 'U', str(error))[:70]}"] += 1
            return
        with self.lock:
            if not answer:
                self.uncertain.append(number)
            elif not answer["warning"]:
                self.stored.append(number)

    def run(self, seconds: float, kill_every: float) -> None:
        """Load the engine for so long; watch its memory and its gauge."""
        for thread in self.threads:
            thread.start()
        began = time.monotonic()
        next_kill = began + kill_every if kill_every else float("inf")
        while (now := time.monotonic()) < began + seconds:
            time.sleep(0.25)  # a sample every quarter of a second
            if now >= next_kill:
                self.kill()
                next_kill += kill_every
            try:
                pool = httpx.get(f"{self.url}/get_current_batch_rollout_pool_information").json()
                self.peak = max(self.peak, len(pool["running_episode_details"] or {}))
                status = Path(f"/proc/{self.process.pid}/status").read_text()
                size = next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line)
                self.memory.append((now - began, size))
            except (httpx.HTTPError, OSError, ValueError, StopIteration):
                continue
        self.stop.set()
        for thread in self.threads:
            thread.join(30)

    def recorded(self) -> tuple[int, int]:
        """Return how many episodes the engine has trained on, or keeps for the open step, and their numbers' sum."""
        folder = self.folder / "saved_experiments" / NAME
        count = total = last = 0
        for line in (folder / "metrics.jsonl").read_text().splitlines():
            entry = json.loads(line)
            assert entry["step"] == last + 1, f"step {entry['step']} follows step {last}"
            last = entry["step"]
            count += int(entry["metrics"].get("train_tool_stats/tool_total_calls", 0))
            total += int(entry["metrics"].get("train_tool_stats/tool_error_calls", 0))
        for line in (folder / "journal.jsonl").read_text().splitlines():
            entry = json.loads(line)
            if entry["step"] == last + 1:
                count += 1
                total += entry["episode"]["log_metrics"]["tool_stats"]["total_errors"]
        self.steps = last
        return count, total


def main() -> None:
    """Run and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--kill-every", type=float, default=120.0, help="seconds; 0: never")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options.clients, options.seed)
        try:
            soak.run(options.minutes * 60, options.kill_every)
            report(soak)
        finally:
            soak.process.kill()
            soak.process.wait()


def report(soak: Soak) -> None:
    """Print what was counted. Raises AssertionError if it does not add up."""
    count, total = soak.recorded()
    stored, uncertain = len(soak.stored), len(soak.uncertain)
    print(f"{soak.steps} steps, {soak.kills} kills; clients: {stored} stored, {uncertain} uncertain; engine: {count}")
    print(f"running episodes: peak {soak.peak} of cap 24; failed requests: {dict(soak.failures.most_common(6))}")
    first = max((size for at, size in soak.memory if at <= 60), default=0)
    last = max((size for at, size in soak.memory if at >= soak.memory[-1][0] - 10), default=0)
    print(f"memory: {first // 1024} MiB in the first minute, {last // 1024} MiB in the end")
    assert stored > 0
    assert stored <= count <= stored + uncertain, "episodes were lost, or counted twice"
    if not uncertain:
        assert total == sum(soak.stored), "other episodes were trained on than were stored"
    assert soak.peak <= 24, "more episodes ran than the cap allows"
    assert last <= 4 * first / 3, "the engine grows"
    print("it adds up")


if __name__ == "__main__":
    main()
