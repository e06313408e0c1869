"""Start a run from a blueprint: lay out its directory, bring up the supervisor, open the window."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillpack.blueprint.lint_files import git_state
from skillpack.blueprint.model import Blueprint
from skillpack.blueprint.paths import FILE, kind
from skillpack.files import write_atomically
from skillpack.runs import handover
from skillpack.runs.backends import Backend
from skillpack.runs.preconditions import Refused, check_place, result_dir_of, server_url
from skillpack.runs.rundir import RECORD_VERSION, START_LOCK, SUPERVISOR_LOCK, RunDir, locked
from skillpack.runs.status import ENDED_WELL, Status, observe
from skillpack.runs.tmux import Tmux, session_name
from skillpack.script import Unavailable

LAUNCH = Path(__file__).with_name("launch.py")
PATIENCE = 20.0
LEFT_BY_AN_ATTEMPT = (
    "finish.flag",
    "report.md",
    "report.json",
    "metrics.csv",
    "curves.png",
    "heartbeat.json",
    "progress.json",
    "console.log",
    "logs",
    "exit_code",
    "supervisor.log",
    "config.yaml",
    "config.py",
    "run.json",
)
WINDOW_VARIABLES = ("PATH", "CUDA_VISIBLE_DEVICES", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "HF_HOME")
"""What a person who opens another window in the session will miss; nothing secret."""


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
    run = RunDir(result_dir_of(blueprint))
    _refuse_old(run)
    check_place(blueprint, options)
    run.path.mkdir(parents=True, exist_ok=True)
    with locked(run.path / START_LOCK) as lock:
        if lock is None:
            raise Refused(f"another start of {run.path} is under way", hint=f"scripts/run.py status {run.quoted}")
        _refuse_old(run)
        return _launch(run, blueprint, options, attempt=1)


def restart_run(
    run: RunDir, blueprint: Blueprint, options: Options, *, note: Callable[[], None], again: bool = False
) -> Status:
    """Start the run again, with what the last attempt left put aside (``attempts/<n>/``).

    ``note`` is called when nothing stands in the way any more, before anything is moved. A run
    that finished is started only with ``again``. Raises as ``start_run``.
    """
    result_dir_of(blueprint)
    with locked(run.path / START_LOCK) as lock:
        status = observe(run, holds_start=lock is not None)
        if lock is None or status.alive:
            raise Refused(f"{run.path} is {status.state}", hint=f"scripts/run.py stop {run.quoted} first")
        if (status.state == ENDED_WELL or run.finish_flag.exists()) and not again:
            raise Refused(
                f"{run.path} is finished; another attempt would put its report aside",
                expected="a run that ended otherwise",
                hint="a new exp_result_dir for a new experiment; --force tries this one again all the same",
            )
        check_place(blueprint, options)
        note()
        attempt = run.read()["attempt"]
        _put_aside(run, run.path / "attempts" / str(attempt))
        return _launch(run, blueprint, options, attempt=attempt + 1)


def _put_aside(run: RunDir, aside: Path) -> None:
    """Move what an attempt left; ``run.json`` goes last, so that the run can be found whatever happens."""
    aside.mkdir(parents=True, exist_ok=True)
    for name in LEFT_BY_AN_ATTEMPT:
        if (run.path / name).exists():
            shutil.move(run.path / name, aside / name)
    (run.path / "stop.request").unlink(missing_ok=True)


def _refuse_old(run: RunDir) -> None:
    if not run.record.is_file():
        return
    status = observe(run)
    if status.alive:
        raise Refused(
            f"this run is {status.state} already, in {run.path}",
            hint=f"scripts/run.py watch {run.quoted}, or stop it",
        )
    hint = f'scripts/run.py attempt {run.quoted} --tried "WHAT CHANGED" to try this one again'
    if run.finish_flag.exists():
        hint = f"read {run.path / 'report.md'}" if (run.path / "report.md").exists() else f"see {run.finish_flag}"
    elif status.state == ENDED_WELL:
        hint = f"scripts/run.py collect {run.quoted}"
    raise Refused(
        f"{run.path} holds a run that is {'finished' if run.finish_flag.exists() else status.state}",
        expected="a new exp_result_dir for a new experiment",
        hint=hint,
    )


def _launch(run: RunDir, blueprint: Blueprint, options: Options, attempt: int) -> Status:
    use_tmux = Tmux.installed() if options.tmux is None else options.tmux
    record = _new_record(run, blueprint, options, attempt, use_tmux)
    write_atomically(run.blueprint, blueprint.text)
    if blueprint.yaml_path and kind(blueprint.yaml_path) == FILE and options.backend.kind == "local":
        run.keep_configuration(blueprint.yaml_path)
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
        # without the lock no supervisor can take over between this look and the record
        with locked(run.path / SUPERVISOR_LOCK) as lock:
            if lock is not None:
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


def _variables(blueprint: Blueprint, options: Options) -> dict[str, str]:
    """Return what the run adds to the environment: the blueprint's fields, the server, the GPUs."""
    variables = blueprint.variables
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
