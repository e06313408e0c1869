"""One rehearsal: engines in this process, the client in another, and when to stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillpack.rehearse.elsewhere import refuse_engines_of_others
from skillpack.rehearse.observe import Watcher

if TYPE_CHECKING:
    import socket

    from ajet.tuner_lib.experimental.engine import EngineOptions

RUNNER = Path(__file__).with_name("runner.py")
LOOPBACK_URL = re.compile(r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?::(\d{2,5}))?")
NO_PROXY = ("NO_PROXY", "no_proxy")
STOP_SECONDS = 5.0
STACKS_SECONDS = 10.0
START_PATIENCE = 3
"""How many times the patience a client may take until it first asks a server for anything: imports, data sets."""

SURPLUS = 3
"""A step that has so many times the episodes it needs, and those that ran beside, and is open still will not end."""


@dataclass(frozen=True)
class Plan:
    """What is to be rehearsed, and for how long: ``steps`` weight updates, ``timeout`` seconds at most.

    After ``patience`` seconds without a sign of life the client is taken to be stuck.
    """

    target: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    steps: int = 3
    timeout: float = 300.0
    patience: float = 30.0
    python: str = sys.executable
    policy: str = "learn"
    seed: int = 0
    slots: str = "documented"
    latency: tuple[float, float] = (0.0, 0.0)
    fail_rate: float = 0.0
    chaos: bool = False
    batch_size: int | None = None
    dummy_data: bool = False


@dataclass
class Outcome:
    """What a rehearsal came to; ``stopped_because`` is steps, exit, timeout, stuck or surplus."""

    plan: Plan
    watchers: list[Watcher]
    stopped_because: str
    seconds: float
    exit_code: int | None
    exceptions: list[dict[str, Any]] = field(default_factory=list)
    stacks: list[list[dict[str, Any]]] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)


def named_urls(script: Path) -> dict[int, str]:
    """Return the loopback URLs that a script names, by port."""
    try:
        text = script.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    return {int(match.group(1) or 80): match.group(0) for match in LOOPBACK_URL.finditer(text)}


async def rehearse(plan: Plan, log: Path) -> Outcome:
    """Run a rehearsal; the client's output goes to ``log``. The client is ended in any case.

    Raises BadInput, before the client is started, for one that would train somebody else's engine.
    """
    with tempfile.TemporaryDirectory(prefix="rehearse-") as scratch_name:
        scratch = Path(scratch_name)
        changed = asyncio.Event()
        async with contextlib.AsyncExitStack() as stack:
            main = await stack.enter_async_context(_engine(plan, scratch / "main", 0, changed))
            watchers, unanswered, answered = [main], [], list[int]()
            for port, url in ({} if plan.module else named_urls(Path(plan.target))).items():
                try:
                    engine = _engine(plan, scratch / str(port), port, changed)
                    watchers.append(await stack.enter_async_context(engine))
                    answered.append(port)
                except OSError:
                    unanswered.append(url)
            if not plan.module:
                await asyncio.to_thread(refuse_engines_of_others, Path(plan.target), answered, plan.arguments)
            began = time.monotonic()
            client = _start_client(plan, scratch, main.url, log)
            exited = asyncio.ensure_future(asyncio.to_thread(_wait_for_end, client))
            stacks: list[list[dict[str, Any]]] = []
            try:
                because = await _watch(plan, exited, watchers, changed)
                stopped_at = time.time()
                for watcher in watchers:
                    watcher.stop()
                if because in ("stuck", "timeout") and not exited.done():
                    stacks = await _stacks(client, scratch / "stacks", _roots(plan))
            finally:
                exit_code = await _end_client(client, exited)
            exceptions = [one for one in _events(scratch / "events") if one["time"] <= stopped_at]
            return Outcome(
                plan=plan,
                watchers=[one for one in watchers if one.used] or [main],
                stopped_because=because,
                seconds=time.monotonic() - began,
                exit_code=exit_code if because == "exit" else None,
                exceptions=exceptions,
                stacks=stacks,
                unanswered=unanswered,
            )


@contextlib.asynccontextmanager
async def _engine(plan: Plan, folder: Path, port: int, changed: asyncio.Event) -> AsyncIterator[Watcher]:
    """Serve a reference engine on a port (0: a free one) with its files in ``folder``. Raises OSError."""
    from ajet.tuner_lib.experimental.serve import Uvicorn, bind, url_of, web_config
    from ajet.tuner_lib.experimental.swarm_server import SwarmServer

    listener: socket.socket = bind("127.0.0.1", port)
    folder.mkdir()
    server = SwarmServer(_options(plan, folder))
    server.base_url = url_of(listener)
    watcher = Watcher(server, server.base_url, changed.set)
    web = Uvicorn(web_config(server.asgi))
    serving = asyncio.create_task(web.serve(sockets=[listener]))
    try:
        yield watcher
    finally:
        await server.engine.stop()
        web.should_exit = web.force_exit = True
        await serving
        listener.close()


def _options(plan: Plan, folder: Path) -> EngineOptions:
    from ajet.tuner_lib.experimental.chaos import ChaosOptions
    from ajet.tuner_lib.experimental.engine import EngineOptions

    return EngineOptions(
        policy=plan.policy,
        seed=plan.seed,
        slots=plan.slots,
        base_dir=folder,
        overrides={"loggers": (), **({"train_batch_size": plan.batch_size} if plan.batch_size else {})},
        chaos=ChaosOptions(latency=plan.latency, fail_rate=plan.fail_rate, chaos=plan.chaos),
    )


def _start_client(plan: Plan, scratch: Path, url: str, log: Path) -> subprocess.Popen[bytes]:
    import ajet

    shim = scratch / "shim"
    shim.mkdir()
    (shim / "ajet").symlink_to(Path(ajet.__file__).parent)
    environment = {
        **os.environ,
        "AJET_SWARM_URL": url,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(shim), os.environ.get("PYTHONPATH", "")])),
        "PYTHONUNBUFFERED": "1",
        # the client's own SDKs must not ask a proxy for this machine's loopback
        **{name: ",".join(filter(None, [os.environ.get(name), "127.0.0.1,localhost"])) for name in NO_PROXY},
    }
    if plan.dummy_data:
        environment["AJET_DUMMY_DATA"] = "1"
    arguments = [scratch / "events", scratch / "stacks", shim, "module" if plan.module else "path", plan.target]
    with log.open("wb") as output:
        return subprocess.Popen(
            [plan.python, str(RUNNER), *map(str, arguments), *plan.arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


async def _watch(plan: Plan, exited: asyncio.Future[Any], watchers: list[Watcher], changed: asyncio.Event) -> str:
    """Return why the rehearsal is over, as soon as it is."""
    deadline = time.monotonic() + plan.timeout
    while True:
        changed.clear()
        used = [one for one in watchers if one.used]
        if used and all(one.updates >= plan.steps for one in used):
            return "steps"
        if exited.done():
            return "exit"
        if any(_hopeless(one) for one in used):
            return "surplus"
        now = time.monotonic()
        patience = plan.patience if used else START_PATIENCE * plan.patience
        quiet_until = max(one.last_event for one in watchers) + patience
        if now >= deadline:
            return "timeout"
        if now >= quiet_until:
            return "stuck"
        waiter = asyncio.create_task(changed.wait())
        await asyncio.wait(
            {exited, waiter}, timeout=min(deadline, quiet_until) - now, return_when=asyncio.FIRST_COMPLETED
        )
        waiter.cancel()


def _hopeless(watcher: Watcher) -> bool:
    """Tell whether the open step has far more episodes than it needs and still does not end."""
    settings = watcher.server.engine.settings
    trainer = watcher.server.engine.trainer
    if settings is None or trainer is None:
        return False
    if not watcher.updates and watcher.late > settings.cap and 2 * watcher.late > watcher.counts["claimed"]:
        return True  # most episodes are lost to their timeout
    if "agree" in settings.sample_collection_method:
        return False
    if watcher.server.pool.status.current != "ENGINE.ROLLING":
        return False  # the step has enough and waits for the episodes that are open
    return len(trainer.collection) > SURPLUS * settings.train_batch_size * settings.num_repeat + settings.cap


def _wait_for_end(client: subprocess.Popen[bytes]) -> None:
    """Return when the client has ended, and leave it a zombie: while it is one, nobody else gets its number."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, client.pid, os.WEXITED | os.WNOWAIT)
    else:  # macOS before Python 3.13
        client.wait()


async def _end_client(client: subprocess.Popen[bytes], exited: asyncio.Future[Any]) -> int:
    """End the client and all that it started; return its exit code."""
    if not exited.done():
        _signal(client, signal.SIGTERM)
        await asyncio.wait([exited], timeout=STOP_SECONDS)
    _signal(client, signal.SIGKILL)
    await exited
    return client.wait()


def _signal(client: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(client.pid, number)


def _events(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]


def _roots(plan: Plan) -> list[str]:
    folder = Path.cwd() if plan.module else Path(plan.target).absolute().parent
    return [str(folder), str(Path.cwd())]


FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$')


async def _stacks(client: subprocess.Popen[bytes], path: Path, roots: list[str]) -> list[list[dict[str, Any]]]:
    """Return the stacks of the client's threads that are in its own code, innermost frame first."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(client.pid, signal.SIGUSR1)
    deadline = time.monotonic() + STACKS_SECONDS
    size = 0
    # another process writes the file, in one go: there is nothing to wait on, and no end but that it grows no more
    while time.monotonic() < deadline and (not size or path.stat().st_size > size):
        size = path.stat().st_size if path.exists() else 0
        await asyncio.sleep(0.05)
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    stacks: list[list[dict[str, Any]]] = []
    for block in re.split(r"^(?:Current thread|Thread) .*$", text, flags=re.MULTILINE):
        frames: list[dict[str, Any]] = []
        for line in block.splitlines():
            match = FRAME.match(line)
            if match:
                own = any(match["file"].startswith(root + os.sep) for root in roots)
                own = own and not any(part in match["file"] for part in ("site-packages", "/shim/", str(RUNNER)))
                frames.append({**match.groupdict(), "line": int(match["line"]), "own": own})
        if any(frame["own"] for frame in frames):
            stacks.append(frames)
    return stacks
