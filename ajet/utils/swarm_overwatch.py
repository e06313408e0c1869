"""What an engine is doing now, in a terminal: read over HTTP from a reference or from a released server."""

from __future__ import annotations

import contextlib
import json
import select
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ajet.utils.swarm_frame import frame_of

HINTS = {
    "ENGINE.OFFLINE": "The engine is offline. A client starts it with auto_sync_train_config_and_start_engine(job).",
    "ENGINE.BOOTING": "The engine boots: it loads the model and starts its workers. Episodes begin when it is ROLLING.",
}
KEYS = "q quit   t latest model call"
CALL_CHARACTERS = 3000


class ServerUnreachable(Exception):
    """No swarm server answered; the message says where and what to try."""


def read_frame(url: str, client: httpx.Client | None = None) -> dict[str, Any]:
    """Return one observation of a server, as plain JSON data (see ``frame_of``). Raises ServerUnreachable."""
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
    entries = log.json().get("entries", []) if log.status_code == 200 else []
    return frame_of(url, health=health, status=status, pool=pool, log=entries)


def render(frame: dict[str, Any]) -> Group:
    """Return a frame as a rich renderable."""
    parts: list[Any] = [Panel(_head(frame), title="AgentJet swarm", title_align="left"), _progress(frame)]
    if frame["binding"]:
        parts.append(Text.assemble("more episodes are held back by ", (frame["binding"]["name"], "bold")))
        parts.append(Text(f"  {frame['binding']['why']}", "dim"))
    if frame["engine_status"] in HINTS:
        parts.append(Text(f"\n{HINTS[frame['engine_status']]}"))
    if frame["clients"]:
        names = "  ".join(
            one["client_uuid"][:8] + (" agreed" if one.get("allowed_sync_weight") else "")
            for one in frame["clients"][:8]
        )
        parts.append(Text(f"\nactive clients ({len(frame['clients'])}): {names}"))
    if frame["episodes"]:
        parts += [Text(""), _episodes(frame)]
    if frame["tasks"]:
        parts += [Text(""), _tasks(frame)]
    if frame["log"]:
        parts.append(Text(f"\n{frame['log'][-1].get('message', '')}", "dim"))
    return Group(*parts)


def _head(frame: dict[str, Any]) -> Text:
    step = "-" if frame["global_step"] is None else frame["global_step"]
    head = Text.assemble(
        (f"{frame['engine_status']}", "bold"),
        f"  step {step}  {frame['url']}  ({frame['engine']} engine)  {time.strftime('%H:%M:%S')}\n",
        f"model {frame['model_path'] or '-'}",
    )
    if frame["booting_seconds"] is not None:
        head.append(f"  booting for {frame['booting_seconds']:.0f} s")
    if frame["engine_status_detail"]:
        head.append(f"\n{frame['engine_status_detail']}", "dim")
    return head


def _progress(frame: dict[str, Any]) -> Table:
    progress = Table("progress", "completed", "target", "", box=None, pad_edge=False)
    for row in frame["progress"]:
        mark = "decides" if row["decides"] else ""
        progress.add_row(row["name"], str(row["completed"]), str(row["target"]), mark)
    if frame["mean_episodes_per_task"] is not None:
        progress.add_row("episodes / task", str(frame["mean_episodes_per_task"]), "", "")
    cap = "unknown" if frame["cap"] is None else frame["cap"]
    progress.add_row("running episodes", str(frame["running_episodes"]), str(cap), "cap")
    return progress


def _episodes(frame: dict[str, Any]) -> Table:
    table = Table("running episode", "client", "task", "LLM calls", "idle / patience", box=None, pad_edge=False)
    for one in frame["episodes"]:
        patience = f"{one['idle_seconds']:.1f}s / {one['discard_episode_timeout']:.0f}s"
        calls = str(one["llm_call_count"])
        table.add_row(one["episode_uuid"][:8], one["client_uuid"][:8], one["task_id"][:40], calls, patience)
    return table


def _tasks(frame: dict[str, Any]) -> Table:
    table = Table("task", "episodes", "reward mean ± std", "first episodes", box=None, pad_edge=False)
    for one in frame["tasks"]:
        reward = f"{one['mean_reward']:.3f} ± {one['std_reward']:.3f}"
        uuids = " ".join(uuid[:8] for uuid in one["episode_uuids"])
        table.add_row(one["task_id"][:60], str(one["episodes"]), reward, uuids)
    return table


def print_frame(frame: dict[str, Any]) -> None:
    """Print a frame once to stdout."""
    Console().print(render(frame))


def watch(url: str, interval: float) -> None:
    """Show a server until ``q`` or Ctrl-C; while it is unreachable, say so and go on.

    Raises ServerUnreachable if it does not answer in the beginning.
    """
    console = Console()
    show_call = False
    with httpx.Client(timeout=5.0, trust_env=False) as client, contextlib.suppress(KeyboardInterrupt):
        first: Any = render(read_frame(url, client))
        with _keys() as wait, Live(first, console=console, screen=console.is_terminal, auto_refresh=False) as live:
            while True:
                key = wait(interval)
                if key == "q":
                    return
                show_call = show_call != (key == "t")
                live.update(_screen(url, client, show_call), refresh=True)


def _screen(url: str, client: httpx.Client, show_call: bool) -> Any:
    try:
        if show_call:
            return Group(_latest_call(url, client), Text("t back   q quit", "dim"))
        return Group(render(read_frame(url, client)), Text(f"\n{KEYS}", "dim"))
    except ServerUnreachable as error:
        return Panel(str(error), title="unreachable")


def _latest_call(url: str, client: httpx.Client) -> Panel:
    try:
        answer = client.post(f"{url.rstrip('/')}/replay_latest_llm_call")
    except httpx.HTTPError as error:
        return Panel(f"{url} does not answer: {error}", title="latest model call")
    text = json.dumps(answer.json(), ensure_ascii=False, indent=2) if answer.is_success else "no call yet"
    return Panel(Text(text[:CALL_CHARACTERS]), title="latest model call")


@contextlib.contextmanager
def _keys() -> Iterator[Any]:
    """Yield a function that waits for a key or until time is up; without a terminal it only waits."""
    if not sys.stdin.isatty():

        def sleep(seconds: float) -> str:
            time.sleep(seconds)
            return ""

        yield sleep
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)

    def wait(seconds: float) -> str:
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        return sys.stdin.read(1) if ready else ""

    tty.setcbreak(sys.stdin)
    try:
        yield wait
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
