"""What runs beside a case: a reference engine, or a program that the skill brings."""

from __future__ import annotations

import json
import os
import queue
import re
import shlex
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import skillpack
from skillpack.validate.evals import processes

START_LIMIT = 60.0
ENGINE_CONFIG = Path(__file__).with_name("engine.yaml")
ENGINE_READY = r'"url": *"(http://[^"]+)"'
ROLLING = "ENGINE.ROLLING"


class FixtureError(RuntimeError):
    """A fixture that did not start; the message says why."""


def engine_command(python: str, config: Path) -> list[str]:
    """Return the command that starts a reference engine on a free loopback port.

    The first line that it prints is one JSON document with the engine's ``url``.
    """
    return [python, "-I", "-m", "ajet.swarm_cli", "start", "--swarm-port", "0", "--config", str(config), "--start"]


@contextmanager
def engine(scratch: Path, env: Mapping[str, str]) -> Iterator[str]:
    """Run a reference engine while the context lasts; give its base URL once it is ROLLING. Raises FixtureError."""
    command = engine_command(sys.executable, ENGINE_CONFIG)
    with program(command, ENGINE_READY, scratch, {**env, **pack_importable(env)}) as url:
        if not processes.wait_until(lambda: _status(url) == ROLLING, START_LIMIT, step=0.05):
            raise FixtureError(
                f"the reference engine at {url} is {_status(url)}, not {ROLLING}, after {START_LIMIT:g} s"
            )
        yield url


def _status(url: str) -> str:
    no_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with no_proxy.open(f"{url}/get_engine_status", timeout=5) as response:
            return str(json.load(response)["engine_status"])
    except (OSError, ValueError, KeyError) as error:
        return f"not answering ({error})"


@contextmanager
def program(command: Sequence[str], ready: str, scratch: Path, env: Mapping[str, str]) -> Iterator[str]:
    """Run ``command`` in ``scratch`` while the context lasts; give what ``ready`` finds on its stdout.

    ``ready`` is a regular expression with a group. The program is ended with all that it started,
    and also if this process dies. Raises FixtureError if ``ready`` does not come.
    """
    log = scratch / "fixture.stderr"
    with log.open("wb") as stderr:
        child = subprocess.Popen(
            guarded(command),
            cwd=scratch,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    found: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_drain, args=(child, re.compile(ready), found), daemon=True)
    reader.start()
    try:
        yield _wait_until_ready(child, found, shlex.join(command), ready, log)
    finally:
        child.terminate()
        child.wait()
        reader.join()


def _wait_until_ready(
    child: subprocess.Popen[str], found: queue.SimpleQueue[str | None], command: str, ready: str, log: Path
) -> str:
    try:
        value = found.get(timeout=START_LIMIT)
        came = f"ended with exit code {child.wait()}" if value is None else ""
    except queue.Empty:
        value, came = None, f"has not said so within {START_LIMIT:g} s"
    if value is not None:
        return value
    tail = log.read_text(errors="replace").strip()[-500:]
    raise FixtureError(f"fixture `{command}` {came}; expected a line that matches {ready!r}; stderr: {tail}")


def _drain(child: subprocess.Popen[str], ready: re.Pattern[str], found: queue.SimpleQueue[str | None]) -> None:
    """Read all that the program prints, so that it never blocks on a full pipe; hand over the first match."""
    assert child.stdout is not None
    waiting = True
    with child.stdout:
        for line in child.stdout:
            match = ready.search(line) if waiting else None
            if match:
                found.put(match[1])
                waiting = False
    found.put(None)


def guarded(command: Sequence[str]) -> list[str]:
    """Return ``command`` wrapped so that it ends, with all that it started, when it is told to or its starter dies."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from skillpack.validate.evals.processes import guard; guard(sys.argv[2:])"
    )
    return [sys.executable, "-c", code, str(_root()), *command]


def pack_importable(env: Mapping[str, str]) -> dict[str, str]:
    """Return the PYTHONPATH under which this very pack is imported."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(_root()), env.get("PYTHONPATH")]))}


def _root() -> Path:
    return Path(skillpack.__file__).parent.parent
