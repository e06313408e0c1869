"""Measure our SwarmClient: cycles per second, and how soon it notices what it waits for.

    python benchmarks/swarm_client.py

Each figure is printed beside that of a released client with a released server, measured on two
cores of an AMD EPYC (2026-05 checkout), and as a ratio to it.
"""

from __future__ import annotations

import json
import logging
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import SwarmClient

RELEASED_CYCLES = {1: 518, 16: 748, 64: 677}
RELEASED_SECONDS = {"appears": 1.9, "rolling": 4.9}


def engine(folder: str, batch: int, repeat: int, workers: int, name: str) -> tuple[subprocess.Popen, str]:
    """Start an engine that is ROLLING; return it and its URL."""
    path = Path(folder) / f"{name}.yaml"
    path.write_text(
        f"ajet: {{experiment_name: {name}, data: {{train_batch_size: {batch}}},"
        f" rollout: {{num_repeat: {repeat}, max_env_worker: {workers}}},"
        " trainer_common: {logger: console, total_training_steps: 1000}}\n"
    )
    command = [sys.executable, "-m", "ajet.swarm_cli", "start", "--swarm-port", "0", "--conf", str(path), "--start"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout
    url = json.loads(server.stdout.readline())["url"]
    threading.Thread(target=server.stdout.read, daemon=True).start()  # metric lines
    return server, url


def cycles(url: str, threads: int, total: int) -> float:
    """Return begin_episode + end_episode cycles per second of one client with so many threads."""
    with SwarmClient(url, verbose=False) as client, ThreadPoolExecutor(threads) as pool:

        def cycle(number: int) -> None:
            episode_uuid, _ = client.begin_episode()
            client.end_episode(Task(task_id=f"t{number % 7}"), episode_uuid, WorkflowOutput(reward=1.0))

        list(pool.map(cycle, range(threads * 2)))  # connections
        began = time.perf_counter()
        list(pool.map(cycle, range(total)))
        return total / (time.perf_counter() - began)


def chat(url: str, key: str) -> None:
    """Make the chat call without which an episode does not count."""
    body = {"messages": [{"role": "user", "content": "Add 3 and 4."}]}
    httpx.post(f"{url}/v1/chat/completions", json=body, headers={"authorization": f"Bearer {key}"}).raise_for_status()


def appears(url: str) -> float:
    """Return the seconds from an abort that frees the only episode to the claim of one who waits."""
    with SwarmClient(url, verbose=False) as holder, SwarmClient(url, verbose=False) as waiter:
        episode_uuid, _ = holder.begin_episode()
        claimed: list[float] = []

        def wait() -> None:
            uuid, _ = waiter.begin_episode()
            claimed.append(time.perf_counter())
            waiter.abort_episode(uuid)

        thread = threading.Thread(target=wait)
        thread.start()
        capacity = {"waiting_claims": 0}
        while not capacity["waiting_claims"]:
            capacity = httpx.get(f"{url}/get_current_batch_rollout_pool_information").json()["capacity"]
        began = time.perf_counter()
        holder.abort_episode(episode_uuid)
        thread.join()
        return claimed[0] - began


def rolling(url: str) -> float:
    """Return the seconds between the server's return to ROLLING and the client's knowing it."""
    with SwarmClient(url, verbose=False) as client:
        client.get_engine_status()
        step = client.get_global_step() or 0
        seen: list[float] = []

        def watch() -> None:
            client._watch.wait_until(
                lambda status, answer: status == "ENGINE.ROLLING" and (answer.get("global_step") or 0) > step
            )
            seen.append(time.perf_counter())

        thread = threading.Thread(target=watch)
        thread.start()
        # a second observer with a long poll of its own learns the moment from the server
        status = httpx.get(f"{url}/get_engine_status").json()
        episode_uuid, model = client.begin_episode()
        chat(url, model.api_key)
        client.end_episode(Task(task_id="t"), episode_uuid, WorkflowOutput(reward=1.0))
        while not ((status["global_step"] or 0) > step and status["engine_status"] == "ENGINE.ROLLING"):
            query = {"revision": status["revision"], "wait_seconds": 20}
            status = httpx.get(f"{url}/get_engine_status", params=query, timeout=30).json()
        there = time.perf_counter()
        thread.join()
        return abs(seen[0] - there)


def main() -> None:
    """Print the figures."""
    logging.disable(logging.WARNING)  # episodes without a chat call are warned of, each
    with tempfile.TemporaryDirectory() as folder:
        big, url = engine(folder, 1_000_000, 4, 10_000, "big")
        small, small_url = engine(folder, 1, 1, 1, "small")
        try:
            for threads, released in RELEASED_CYCLES.items():
                rate = cycles(url, threads, 500 * min(threads, 4))
                ratio = f"{rate / released:.1f}x released ({released}/s)"
                print(f"SwarmClient, {threads:3d} threads: {rate:6.0f} cycles/s, {ratio}")
            for name, measure, words in (
                ("appears", appears, "an episode appears and is claimed"),
                ("rolling", rolling, "the return to ROLLING is noticed"),
            ):
                seconds = sorted(measure(small_url) for _ in range(15))
                median, released = statistics.median(seconds), RELEASED_SECONDS[name]
                print(
                    f"{words}: p50 {1000 * median:.1f} ms, max {1000 * seconds[-1]:.1f} ms "
                    f"(released {1000 * released:.0f} ms: {released / median:.0f}x sooner)"
                )
        finally:
            for server in (big, small):
                server.terminate()
                server.wait()


if __name__ == "__main__":
    main()
