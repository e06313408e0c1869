"""What an engine is doing now, read over HTTP: from a reference or from a released server."""

from __future__ import annotations

import contextlib
import statistics
import time
from typing import Any

import httpx
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

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


class ServerUnreachable(Exception):
    """No swarm server answered; the message says where and what to try."""


def read_frame(url: str, client: httpx.Client | None = None) -> dict[str, Any]:
    """Return one observation of a server, as plain JSON data.

    ``cap`` is null where the server does not tell it (released servers do not). Raises
    ServerUnreachable.
    """
    url = url.rstrip("/")
    try:
        with contextlib.ExitStack() as stack:
            http = client or stack.enter_context(httpx.Client(timeout=5.0, trust_env=False))
            health = http.get(f"{url}/health").json()
            status = http.get(f"{url}/get_engine_status").raise_for_status().json()
            pool = http.get(f"{url}/get_current_batch_rollout_pool_information").raise_for_status().json()
            log = http.get(f"{url}/get_verbose_logs")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ServerUnreachable(
            f"no swarm server answers at {url}: {error}\n"
            "expected: the base URL of a running server, as http://host:10086\n"
            "try: skills engine start, or python -m ajet.swarm_cli start"
        ) from None
    running = pool.get("running_episode_details") or {}
    capacity = pool.get("capacity") or {}
    booting = pool.get("booting_start_time")
    return {
        "url": url,
        "engine": health.get("engine", "released"),
        "engine_status": status.get("engine_status"),
        "engine_status_detail": status.get("engine_status_detail"),
        "global_step": status.get("global_step"),
        "booting_seconds": round(time.time() - booting, 1) if booting else None,
        "model_path": pool.get("training_model_path"),
        "sample_collection_method": pool.get("sample_collection_method") or None,
        "progress": [
            {
                "name": name,
                "completed": pool.get(counter, 0),
                "target": pool.get(target, 0),
                "decides": method == pool.get("sample_collection_method"),
            }
            for name, counter, target, method in PROGRESS
        ],
        "running_episodes": len(running),
        "cap": capacity.get("cap"),
        "capacity": capacity or None,
        "clients": (pool.get("swarm_client_instruction") or {}).get("active_clients", []),
        "episodes": _episodes(running),
        "tasks": _tasks(pool),
        "log": log.json().get("entries", []) if log.status_code == 200 else [],
    }


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
    return [
        {
            "task_id": task_id,
            "episodes": len(values),
            "mean_reward": statistics.fmean(values),
            "std_reward": statistics.pstdev(values),
        }
        for task_id, values in list(rewards.items())[:ROWS]
        if values
    ]


def render(frame: dict[str, Any]) -> Group:
    """Return a frame as a rich renderable."""
    step = "-" if frame["global_step"] is None else frame["global_step"]
    head = Text.assemble(
        (f"{frame['engine_status']}", "bold"),
        f"  step {step}  {frame['url']}  ({frame['engine']} engine)\n",
        f"model {frame['model_path'] or '-'}",
    )
    if frame["booting_seconds"] is not None:
        head.append(f"  booting for {frame['booting_seconds']:.0f} s")
    if frame["engine_status_detail"]:
        head.append(f"\n{frame['engine_status_detail']}", "dim")
    progress = Table("progress", "completed", "target", "", box=None, pad_edge=False)
    for row in frame["progress"]:
        mark = "decides" if row["decides"] else ""
        progress.add_row(row["name"], str(row["completed"]), str(row["target"]), mark)
    cap = "unknown" if frame["cap"] is None else frame["cap"]
    progress.add_row("running episodes", str(frame["running_episodes"]), str(cap), "cap")
    parts: list[Any] = [Panel(head, title="AgentJet swarm", title_align="left"), progress]
    if frame["clients"]:
        names = "  ".join(
            one["client_uuid"][:8] + (" agreed" if one.get("allowed_sync_weight") else "")
            for one in frame["clients"][:8]
        )
        parts.append(Text(f"\nactive clients ({len(frame['clients'])}): {names}"))
    if frame["episodes"]:
        table = Table("running episode", "client", "task", "LLM calls", "idle / patience", box=None, pad_edge=False)
        for one in frame["episodes"]:
            patience = f"{one['idle_seconds']:.1f}s / {one['discard_episode_timeout']:.0f}s"
            calls = str(one["llm_call_count"])
            table.add_row(one["episode_uuid"][:8], one["client_uuid"][:8], one["task_id"][:40], calls, patience)
        parts += [Text(""), table]
    if frame["tasks"]:
        table = Table("task", "episodes", "reward mean ± std", box=None, pad_edge=False)
        for one in frame["tasks"]:
            reward = f"{one['mean_reward']:.3f} ± {one['std_reward']:.3f}"
            table.add_row(one["task_id"][:60], str(one["episodes"]), reward)
        parts += [Text(""), table]
    if frame["log"]:
        parts.append(Text(f"\n{frame['log'][-1].get('message', '')}", "dim"))
    return Group(*parts)


def print_frame(frame: dict[str, Any]) -> None:
    """Print a frame once to stdout."""
    Console().print(render(frame))


def watch(url: str, interval: float) -> None:
    """Show a server until Ctrl-C; while it is unreachable, say so and go on."""
    console = Console()
    with httpx.Client(timeout=5.0, trust_env=False) as client, contextlib.suppress(KeyboardInterrupt):
        first: Any = render(read_frame(url, client))
        with Live(first, console=console, screen=console.is_terminal, auto_refresh=False) as live:
            while True:
                time.sleep(interval)
                try:
                    live.update(render(read_frame(url, client)), refresh=True)
                except ServerUnreachable as error:
                    live.update(Panel(str(error), title="unreachable"), refresh=True)
