"""One observation of a swarm server as plain data: what overwatch and the page of the engine show."""

from __future__ import annotations

import statistics
import time
from typing import Any

ROWS = 30
"""Episodes and tasks that are listed at most; the counts are always of all."""

PROGRESS = [
    ("episodes", "completed_episodes", "completed_episode_target", "rollout_until_finish_enough_episodes"),
    ("tasks", "completed_tasks", "completed_task_target", "rollout_until_finish_enough_tasks"),
    (
        "non-dummy tasks",
        "completed_non_dummy_tasks",
        "completed_non_dummy_task_target",
        "rollout_until_finish_enough_non_dummy_tasks",
    ),
]
"""Row, its counter, its target, and the collection method that it decides."""


def frame_of(
    url: str,
    *,
    health: dict[str, Any],
    status: dict[str, Any],
    pool: dict[str, Any],
    log: list[dict[str, Any]],
    running_episodes: int | None = None,
) -> dict[str, Any]:
    """Return a frame from the answers of a server's endpoints.

    ``cap`` and ``binding`` are null where the server does not tell them (released servers do not).
    ``running_episodes`` is given where ``pool`` does not list all of them.
    """
    running = pool.get("running_episode_details") or {}
    capacity = pool.get("capacity") or {}
    booting = pool.get("booting_start_time")
    method = pool.get("sample_collection_method") or None
    clients = (pool.get("swarm_client_instruction") or {}).get("active_clients", [])
    count = len(running) if running_episodes is None else running_episodes
    progress = [
        {
            "name": name,
            "completed": pool.get(counter, 0),
            "target": pool.get(target, 0),
            "decides": deciding == method,
        }
        for name, counter, target, deciding in PROGRESS
    ]
    if method and "agree_sync_weight" in method:
        agreed = sum(bool(one.get("allowed_sync_weight")) for one in clients)
        target = 1 if "any_client" in method else len(clients)
        progress.append({"name": "clients that agree", "completed": agreed, "target": target, "decides": True})
    tasks = pool.get("completed_tasks_details") or {}
    return {
        "url": url,
        "engine": health.get("engine", "released"),
        "policy": health.get("policy"),
        "engine_status": status.get("engine_status"),
        "engine_status_detail": status.get("engine_status_detail"),
        "global_step": status.get("global_step"),
        "booting_seconds": round(time.time() - booting, 1) if booting else None,
        "model_path": pool.get("training_model_path"),
        "sample_collection_method": method,
        "progress": progress,
        "mean_episodes_per_task": round(statistics.fmean(map(len, tasks.values())), 2) if tasks else None,
        "running_episodes": count,
        "cap": capacity.get("cap"),
        "capacity": capacity or None,
        "binding": _binding(str(status.get("engine_status")), count, capacity),
        "clients": clients,
        "episodes": _episodes(running),
        "tasks": _tasks(pool),
        "log": log,
    }


def _binding(status: str, running: int, capacity: dict[str, Any]) -> dict[str, str] | None:
    """Name what keeps more episodes from running now, and why."""
    if not capacity:
        return None
    cap, idle = capacity["cap"], capacity.get("idle_slots") or 0
    if status != "ENGINE.ROLLING":
        return {"name": "engine", "why": f"no episode can begin in {status}"}
    if running >= cap:
        numbers = f"max_env_worker {capacity['max_env_worker']}, num_repeat {capacity['num_repeat']}"
        return {"name": "cap", "why": f"all {cap} slots are taken ({numbers})"}
    if idle:
        return {"name": "clients", "why": f"{idle} slots stand idle, no client asks for them"}
    return {"name": "step", "why": f"the other {cap - running} slots are between two episodes"}


def _seconds(text: str) -> float:
    return float(text.rstrip("s") or 0)


def _episodes(running: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
    """Return the running episodes, longest idle first."""
    episodes: list[dict[str, Any]] = [
        {
            "episode_uuid": episode_uuid,
            "client_uuid": one.get("client_uuid", ""),
            "task_id": one.get("optional_task_id", ""),
            "llm_call_count": int(one.get("llm_call_count", 0)),
            "idle_seconds": _seconds(one.get("time_since_last_activity", "0s")),
            "discard_episode_timeout": _seconds(one.get("discard_episode_timeout", "0s")),
        }
        for episode_uuid, one in running.items()
    ]
    return sorted(episodes, key=lambda one: -one["idle_seconds"])[:ROWS]


def _tasks(pool: dict[str, Any]) -> list[dict[str, Any]]:
    rewards = pool.get("completed_tasks_rewards") or {}
    details = pool.get("completed_tasks_details") or {}
    return [
        {
            "task_id": task_id,
            "episodes": len(values),
            "mean_reward": statistics.fmean(values),
            "std_reward": statistics.pstdev(values),
            "episode_uuids": (details.get(task_id) or [])[:3],
        }
        for task_id, values in list(rewards.items())[:ROWS]
        if values
    ]
