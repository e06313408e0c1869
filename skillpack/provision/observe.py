"""Look at a machine by running commands; the answers can be written down and replayed elsewhere."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from skillpack.provision.data import load
from skillpack.provision.expressions import render

SCHEMA = 1
HEAD_LIMIT = 6
"""Seconds that a network probe may take in all."""

VARIABLES = (
    "CONDA_PREFIX", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "DOCKER_HOST", "HF_ENDPOINT", "PIP_INDEX_URL",
    "UV_DEFAULT_INDEX", "VIRTUAL_ENV", "WSL_DISTRO_NAME",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
)  # fmt: skip


class Answer(NamedTuple):
    """What a command said: its exit code and both streams (tools disagree about which one carries a failure)."""

    rc: int
    out: str = ""
    err: str = ""

    @property
    def text(self) -> str:
        """Both streams, as a person would see them in a terminal."""
        return f"{self.out}\n{self.err}"


class Observation(NamedTuple):
    """Raw look at a machine: command line → answer, address → answer of a HEAD, and the environment that matters."""

    commands: dict[str, Answer]
    environment: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data without passwords, to be written to a file and replayed with ``from_dict``."""
        commands = {
            key: {
                "rc": answer.rc,
                **{k: without_password(v) for k, v in (("out", answer.out), ("err", answer.err)) if v},
            }
            for key, answer in self.commands.items()
        }
        return {"schema": SCHEMA, "environment": self.environment, "commands": commands}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Observation:
        """Return a recorded look. Raises ValueError when ``data`` is not one."""
        if not isinstance(data, Mapping) or not isinstance(data.get("commands"), Mapping):
            raise ValueError("a recording is a mapping with `commands: {command line: {rc, out, err}}`")
        commands = {}
        for key, answer in data["commands"].items():
            if not isinstance(answer, Mapping) or not isinstance(answer.get("rc"), int):
                raise ValueError(f"the answer to {key!r} needs an integer `rc`")
            commands[str(key)] = Answer(answer["rc"], str(answer.get("out") or ""), str(answer.get("err") or ""))
        return cls(commands, {str(k): str(v) for k, v in (data.get("environment") or {}).items()})


def ask(argv: list[str], timeout: float = 5) -> Answer:
    """Run one command without a terminal and return its answer; 127 if there is no such program, 124 if it hangs."""
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C", "LANGUAGE": "C"},
            start_new_session=True,
        )
    except FileNotFoundError:
        return Answer(127, err=f"{argv[0]}: command not found")
    except OSError as error:
        return Answer(126, err=str(error))
    with child:
        try:
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            # its children too: one that holds the pipe would keep us waiting
            os.killpg(child.pid, signal.SIGKILL)
            return Answer(124, err=f"{argv[0]} gave no answer within {timeout:g} s")
    return Answer(child.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def probe_commands(recipe: str, context: Mapping[str, Any]) -> dict[str, tuple[list[str], float]]:
    """Return probe id → (argv, time limit) for a recipe; templates in the data are filled from ``context``."""
    commands = {}
    for name, probe in load("probes").items():
        if recipe in probe.get("for", [recipe]):
            argv = [render(str(item), context) if "{" in str(item) else str(item) for item in probe["run"]]
            commands[name] = (argv, float(probe.get("timeout", 5)))
    return commands


def head(url: str) -> Answer:
    """Ask an address with a HEAD; ``out`` is "status seconds" as curl writes them (status 000: no answer).

    curl is used where it is, since it honours the proxies a shell honours; urllib otherwise.
    """
    answer = ask(
        ["curl", "--silent", "--show-error", "--location", "--head", "--output", "/dev/null",
         "--max-time", str(HEAD_LIMIT), "--write-out", "%{http_code} %{time_total}", url],
        timeout=HEAD_LIMIT + 4,
    )  # fmt: skip
    return answer if answer.rc != 127 else _head_without_curl(url)


def _head_without_curl(url: str) -> Answer:
    import time
    import urllib.error
    import urllib.request

    start = time.monotonic()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=HEAD_LIMIT) as response:
            status = response.status
    except urllib.error.HTTPError as error:
        status = error.code
    except (OSError, ValueError) as error:
        return Answer(7, "000 0", str(error))
    return Answer(0, f"{status} {time.monotonic() - start:.3f}")


def look(recipe: str, context: Mapping[str, Any], urls: Iterable[str]) -> Observation:
    """Run all probes of a recipe, side by side; ``urls`` are asked with a HEAD."""
    jobs = {" ".join(argv): (argv, limit) for argv, limit in probe_commands(recipe, context).values()}
    with ThreadPoolExecutor(max_workers=8) as pool:
        asked = {key: pool.submit(ask, argv, limit) for key, (argv, limit) in jobs.items()}
        asked.update({head_key(url): pool.submit(head, url) for url in urls})
        commands = {key: future.result() for key, future in asked.items()}
    environment = {name: without_password(os.environ[name]) for name in VARIABLES if os.environ.get(name)}
    return Observation(commands, environment)


def look_at_disks(seen: Observation, places: Mapping[str, str]) -> Observation:
    """Return an observation with the free space of each place added (asked of the nearest folder that exists)."""
    disks = {disk_key(name): ask(["df", "-Pk", nearest_that_exists(path)], 10) for name, path in places.items()}
    return seen._replace(commands={**seen.commands, **disks})


def disk_key(place: str) -> str:
    """Return the name under which an observation keeps the ``df`` of a place."""
    return f"df {place}"


def head_key(url: str) -> str:
    """Return the name under which an observation keeps the HEAD of an address."""
    return f"HEAD {url}"


def without_password(url: str) -> str:
    """Return an address with what stands before its ``@`` taken out."""
    return re.sub(r"(?<=://)[^/@\s]*@", "***@", url)


def nearest_that_exists(path: str) -> str:
    """Return a path, or the first above it that is there."""
    folder = Path(path).expanduser().absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return str(folder)
