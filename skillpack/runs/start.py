"""Start a run from a blueprint: lay out its directory, bring up the supervisor, open the window."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillpack.blueprint.lint_files import git_state
from skillpack.blueprint.model import Blueprint
from skillpack.files import write_atomically
from skillpack.runs import handover
from skillpack.runs.backends import Backend
from skillpack.runs.process import PROC
from skillpack.runs.rundir import RECORD_VERSION, RunDir, locked
from skillpack.runs.status import Status, observe
from skillpack.runs.tmux import Tmux, session_name
from skillpack.script import BadInput, ScriptError, Unavailable

LAUNCH = Path(__file__).with_name("launch.py")
PATIENCE = 20.0
LEFT_BY_AN_ATTEMPT = (
    "run.json",
    "heartbeat.json",
    "progress.json",
    "console.log",
    "logs",
    "exit_code",
    "supervisor.log",
    "config.yaml",
)
WINDOW_VARIABLES = ("PATH", "CUDA_VISIBLE_DEVICES", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "HF_HOME")
"""What a person who opens another window in the session will miss; nothing secret."""


class Refused(ScriptError):
    """The run may not be started: it lives, or it has ended and was not asked to try again (exit code 1)."""

    exit_code = 1


@dataclass(frozen=True)
class Options:
    """How to start, apart from what the blueprint says. Times are in seconds."""

    tmux: bool | None = None
    """None: if there is one."""
    socket: str | None = None
    backend: Backend = field(default_factory=Backend)
    gpus: str | None = None
    kill_after: float = 30.0
    server_timeout: float = 600.0
    first_step_timeout: float = 1200.0
    observe_for: float = 2.0
    server_url: str | None = None


def options_of(record: dict[str, Any]) -> Options:
    """Return how a run was started, for the next attempt to be started in the same way and place."""
    spec = record["spec"]
    return Options(
        tmux=record["session"] is not None,
        socket=record["socket"],
        backend=Backend.from_json(record["backend"]),
        gpus=spec["gpus"],
        kill_after=spec["kill_after"],
        server_timeout=spec["server_timeout"],
        first_step_timeout=spec["first_step_timeout"],
        server_url=spec.get("server_url_given"),
    )


def start_run(blueprint: Blueprint, options: Options) -> Status:
    """Start the run of ``blueprint`` in its result directory; return what is seen of it at first.

    Waits until the supervisor has taken over, and ``observe_for`` seconds more for a failure at
    once. Raises BadInput, Refused (the run is alive or has ended already) or Unavailable.
    """
    run = RunDir(_checked(blueprint, options))
    run.path.mkdir(parents=True, exist_ok=True)
    with locked(run.path / ".start.lock") as lock:
        if lock is None:
            raise Refused(f"another start of {run.path} is under way", hint="scripts/run.py status DIR")
        _refuse_old(run)
        return _launch(run, blueprint, options, attempt=1)


def restart_run(run: RunDir, blueprint: Blueprint, options: Options) -> Status:
    """Put what the last attempt left aside (``attempts/<n>/``) and start the run again. Raises as ``start_run``."""
    _checked(blueprint, options)
    with locked(run.path / ".start.lock") as lock:
        status = observe(run)
        if lock is None or status.alive:
            raise Refused(f"{run.path} is {status.state}", hint="scripts/run.py stop DIR first")
        attempt = run.read()["attempt"]
        aside = run.path / "attempts" / str(attempt)
        aside.mkdir(parents=True, exist_ok=True)
        for name in LEFT_BY_AN_ATTEMPT:
            if (run.path / name).exists():
                shutil.move(run.path / name, aside / name)
        for name in ("stop.request", "finish.flag", "report.md", "report.json"):
            (run.path / name).unlink(missing_ok=True)
        return _launch(run, blueprint, options, attempt=attempt + 1)


def _checked(blueprint: Blueprint, options: Options) -> Path:
    """Return the result directory of a blueprint that holds what a start needs. Raises BadInput."""
    if not PROC.is_dir():
        raise Unavailable("runs need Linux: processes are known by /proc here", hint="start it on the training machine")
    missing = [
        name
        for name, value in (("exp_launch_command", blueprint.commands), ("exp_result_dir", blueprint.result_dir))
        if not value
    ]
    bad_time = [problem for problem in blueprint.problems if problem.startswith("exp_max_time: ")]
    if missing or bad_time or blueprint.result_dir is None:
        what = bad_time[0] if bad_time else f"{blueprint.source} has no {' and no '.join(missing)}"
        raise BadInput(what, hint="scripts/blueprint.py lint BLUEPRINT names everything that is missing")
    if options.backend.kind == "local" and blueprint.codebase_dir and not blueprint.codebase_dir.is_dir():
        raise BadInput(
            f"exp_codebase_dir {blueprint.codebase_dir} is no directory", hint="scripts/blueprint.py lint BLUEPRINT"
        )
    return blueprint.result_dir


def _refuse_old(run: RunDir) -> None:
    if not run.record.is_file():
        return
    status = observe(run)
    if status.alive:
        raise Refused(
            f"this run is {status.state} already, in {run.path}", hint="scripts/run.py watch DIR, or stop DIR"
        )
    raise Refused(
        f"{run.path} holds a run that is {status.state}",
        expected="a new exp_result_dir for a new experiment",
        hint='scripts/run.py attempt DIR --tried "WHAT CHANGED" to try this one again',
    )


def _launch(run: RunDir, blueprint: Blueprint, options: Options, attempt: int) -> Status:
    use_tmux = Tmux.installed() if options.tmux is None else options.tmux
    if use_tmux and not Tmux.installed():
        raise Unavailable("tmux is not installed", hint="install tmux, or start with --no-tmux")
    record = _new_record(run, blueprint, options, attempt, use_tmux)
    write_atomically(run.blueprint, blueprint.text)
    if blueprint.yaml_path and blueprint.yaml_path.is_file() and options.backend.kind == "local":
        shutil.copyfile(blueprint.yaml_path, run.path / "config.yaml")
    logs = [run.console, *(run.log_of(part["name"], len(record["parts"])) for part in record["parts"])]
    for log in logs:
        log.parent.mkdir(exist_ok=True)
        log.touch()
    run.write(record)
    pipe = handover.make_pipe(run.path / ".environment")
    try:
        _bring_up(run, record, options)
        handover.send(pipe, dict(os.environ), PATIENCE)
        _await_takeover(run)
    except handover.HandoverFailed as error:
        run.update(phase="ended", outcome="launch-error", reason=str(error))
        raise Unavailable(str(error), hint=f"see {run.path / 'supervisor.log'}") from None
    finally:
        os.close(pipe)
        (run.path / ".environment").unlink(missing_ok=True)
    return _first_look(run, options.observe_for)


def _new_record(run: RunDir, blueprint: Blueprint, options: Options, attempt: int, use_tmux: bool) -> dict[str, Any]:
    run_id = time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(3)
    client_names = ["train"] if blueprint.mode == "classic" else _client_names(len(blueprint.commands))
    parts = [
        {"name": name, "role": "client" if blueprint.mode == "swarm" else "train", "command": command}
        for name, command in zip(client_names, blueprint.commands, strict=True)
    ]
    if blueprint.server_command:
        parts.insert(0, {"name": "server", "role": "server", "command": blueprint.server_command})
    spec = {
        "codebase_dir": str(blueprint.codebase_dir) if blueprint.codebase_dir else None,
        "venv_exe": str(blueprint.venv_exe) if blueprint.venv_exe else None,
        "yaml_path": str(blueprint.yaml_path) if blueprint.yaml_path else None,
        "max_time": blueprint.max_time,
        "kill_after": options.kill_after,
        "first_step_timeout": options.first_step_timeout,
        "server_timeout": options.server_timeout,
        "server_url": (options.server_url or server_url(blueprint)) if blueprint.mode == "swarm" else None,
        "server_url_given": options.server_url,
        "gpus": options.gpus,
        "variables": _variables(blueprint, options),
    }
    return {
        "version": RECORD_VERSION,
        "id": run_id,
        "attempt": attempt,
        "mode": blueprint.mode,
        "purpose": blueprint.purpose,
        "source": str(blueprint.source),
        "host": socket.gethostname(),
        "git": git_state(blueprint.codebase_dir) if blueprint.codebase_dir else None,
        "backend": options.backend.as_json(),
        "session": session_name(blueprint.purpose, run_id) if use_tmux else None,
        "socket": options.socket,
        "phase": "starting",
        "outcome": None,
        "spec": spec,
        "parts": parts,
    }


def _client_names(count: int) -> list[str]:
    return ["client"] if count == 1 else [f"client-{number}" for number in range(1, count + 1)]


def server_url(blueprint: Blueprint) -> str:
    """Return where the blueprint's swarm server answers: its address, or its port here (AgentJet's is 10086)."""
    if blueprint.server_url:
        return blueprint.server_url
    port = re.search(r"--(?:swarm-)?port[= ](\d+)", blueprint.server_command or "")
    return f"http://127.0.0.1:{port[1] if port else 10086}"


def _variables(blueprint: Blueprint, options: Options) -> dict[str, str]:
    """Return what the run adds to the environment: the blueprint's fields, the server, the GPUs."""
    paths = {
        "exp_codebase_dir": blueprint.codebase_dir,
        "exp_venv_exe": blueprint.venv_exe,
        "exp_yaml_path": blueprint.yaml_path,
        "exp_result_dir": blueprint.result_dir,
    }
    variables = {name: str(path) for name, path in paths.items() if path}
    if blueprint.mode == "swarm":
        variables["AJET_SWARM_URL"] = options.server_url or server_url(blueprint)
    if options.gpus is not None:
        variables["CUDA_VISIBLE_DEVICES"] = options.gpus
    return variables


def _bring_up(run: RunDir, record: dict[str, Any], options: Options) -> None:
    argv = [sys.executable, "-I", "-B", str(LAUNCH)]
    if record["session"] is None:
        subprocess.run(
            argv, cwd=run.path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return
    tmux = Tmux(options.socket)
    logs = [run.log_of(part["name"], len(record["parts"])).relative_to(run.path) for part in record["parts"]]
    variables = {name: os.environ[name] for name in WINDOW_VARIABLES if name in os.environ}
    tmux.open_session(
        record["session"], record["parts"][0]["name"], [*argv, str(logs[0])], variables, folder=str(run.path)
    )
    for part, log in zip(record["parts"][1:], logs[1:], strict=True):
        follow = ["tail", "-n", "+1", "-F", str(log)]
        tmux.open_window(record["session"], part["name"], follow, folder=str(run.path))


def _await_takeover(run: RunDir) -> None:
    deadline = time.monotonic() + PATIENCE
    while run.read()["phase"] == "starting":
        if time.monotonic() > deadline:
            raise handover.HandoverFailed("the supervisor did not start")
        time.sleep(0.02)


def _first_look(run: RunDir, seconds: float) -> Status:
    deadline = time.monotonic() + seconds
    while (status := observe(run)).alive and time.monotonic() < deadline:
        time.sleep(0.05)
    return status
