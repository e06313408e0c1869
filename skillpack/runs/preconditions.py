"""What must hold before a run is written down: a start that would be refused leaves no trace."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from skillpack.blueprint.model import Blueprint
from skillpack.blueprint.paths import FOLDER, kind
from skillpack.runs.backends import RAY_JOB, SSH_OPTIONS, Backend
from skillpack.runs.engine import ask_engine
from skillpack.runs.gpus import leased, missing_gpus
from skillpack.runs.ports import holder, is_here, listeners
from skillpack.runs.process import PROC
from skillpack.runs.tmux import Tmux
from skillpack.script import BadInput, ScriptError, Unavailable

if TYPE_CHECKING:
    from skillpack.runs.start import Options

REACH_SECONDS = 60


class Refused(ScriptError):
    """The run may not be started: it lives, has ended and was not asked to try again, or would hit another's (1)."""

    exit_code = 1


def result_dir_of(blueprint: Blueprint) -> Path:
    """Return the result directory of a blueprint that holds what a start needs. Raises BadInput."""
    missing = [
        name
        for name, value in (("exp_launch_command", blueprint.commands), ("exp_result_dir", blueprint.result_dir))
        if not value
    ]
    bad_time = [problem for problem in blueprint.problems if problem.startswith("exp_max_time: ")]
    if missing or bad_time or blueprint.result_dir is None:
        what = bad_time[0] if bad_time else f"{blueprint.source} has no {' and no '.join(missing)}"
        raise BadInput(what, hint="scripts/blueprint.py lint BLUEPRINT names everything that is missing")
    return blueprint.result_dir


def check_place(blueprint: Blueprint, options: Options) -> None:
    """Look at the place where the run shall live: this system, folder, tmux, GPUs, port, the other machine.

    Raises BadInput, Refused (somebody else holds a GPU or the server's port) or Unavailable.
    """
    if not PROC.is_dir():
        raise Unavailable("runs need Linux: processes are known by /proc here", hint="start it on the training machine")
    if options.tmux and not Tmux.installed():
        raise Unavailable("tmux is not installed", hint="install tmux, or start with --no-tmux")
    backend = options.backend
    if backend.kind == "local" and blueprint.codebase_dir and kind(blueprint.codebase_dir) != FOLDER:
        raise BadInput(
            f"exp_codebase_dir {blueprint.codebase_dir} {kind(blueprint.codebase_dir)}",
            expected="the directory of the checkout",
            hint="scripts/blueprint.py lint BLUEPRINT",
        )
    if options.gpus and backend.kind == "local" and (absent := missing_gpus(options.gpus)):
        raise BadInput(f"--gpus {options.gpus}: there is no GPU {absent[0]}", hint="nvidia-smi -L lists them")
    if options.gpus and (taken := leased(options.gpus)):
        raise Refused(
            taken,
            hint="scripts/run.py status FOLDER names the runs; take other GPUs, or wait for that one",
        )
    if blueprint.server_command and not (options.server_url or blueprint.server_url or backend.is_here()):
        raise BadInput(
            f"the swarm server shall run at {backend.address}, and nothing says where it is reached from here",
            expected=f"--server-url http://HOST:{server_port(blueprint) or 10086}",
        )
    if backend.kind == "ssh":
        _reach_by_ssh(backend.address)
    elif backend.kind == "ray":
        _reach_ray(backend.address)
    if blueprint.server_command:
        _refuse_foreign_server(options.server_url or server_url(blueprint), backend)


def server_url(blueprint: Blueprint) -> str:
    """Return where the blueprint's swarm server answers: its address, or its port here (AgentJet's is 10086)."""
    return blueprint.server_url or f"http://127.0.0.1:{server_port(blueprint) or 10086}"


def server_port(blueprint: Blueprint) -> int | None:
    """Return the port that the blueprint's server command names, or None."""
    port = re.search(r"--(?:swarm-)?port[= ](\d+)", blueprint.server_command or "")
    return int(port[1]) if port else None


def address_of(url: str) -> tuple[str | None, int]:
    """Return host and port of a server's URL. Raises BadInput."""
    try:
        where = urlsplit(url)
        return where.hostname, where.port or (443 if where.scheme == "https" else 80)
    except ValueError as error:
        raise BadInput(f"{url} is no address: {error}", expected="such as http://gpu1:10086") from None


def _refuse_foreign_server(url: str, backend: Backend) -> None:
    """Refuse a run that brings its own server where one is already: its clients would train that one's engine."""
    host, port = address_of(url)
    hint = "take another --swarm-port; stop your own old server by its pid; or use that server: exp_server_url alone"
    if backend.kind == "local" and is_here(host):
        if listeners(port):
            by = holder(port)
            raise Refused(f"port {port} is taken{', by ' + by if by else ''}", expected="a free port", hint=hint)
    elif ask_engine(url):
        raise Refused(f"a swarm server answers at {url} already", expected="none: this run starts its own", hint=hint)


def _reach_by_ssh(host: str) -> None:
    try:
        done = subprocess.run(
            ["ssh", *SSH_OPTIONS, host, "true"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=REACH_SECONDS,
            stdin=subprocess.DEVNULL,
        )
        trouble = done.stderr.strip()[-300:] or f"exit code {done.returncode}" if done.returncode else ""
    except FileNotFoundError:
        trouble = "there is no ssh here"
    except subprocess.TimeoutExpired:
        trouble = f"no answer within {REACH_SECONDS} s"
    if trouble:
        raise Unavailable(
            f"{host} is not reached by ssh: {trouble}", hint=f"ssh {host} true must work without a password"
        )


@cache
def _reach_ray(address: str) -> None:
    """Ask once whether jobs can be submitted there, by the program that will submit them."""
    try:
        done = subprocess.run(
            [sys.executable, str(RAY_JOB), address],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=REACH_SECONDS,
            stdin=subprocess.DEVNULL,
        )
        trouble = done.stdout.strip().removeprefix("error: ") if done.returncode else ""
    except subprocess.TimeoutExpired:
        trouble = f"Ray at {address} does not answer within {REACH_SECONDS} s"
    if trouble:
        raise Unavailable(trouble.splitlines()[-1], hint="--on takes http://HEAD:8265, ray://HEAD:10001 or auto")
