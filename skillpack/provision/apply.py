"""Run a plan step by step, with a log, so that it can be stopped anywhere and started again."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from skillpack.engine import process_start
from skillpack.files import write_atomically
from skillpack.provision.ledger import is_noted
from skillpack.provision.ledger import note as note_made
from skillpack.provision.plan import Plan, Step
from skillpack.provision.signatures import recognise
from skillpack.script import Unavailable

STATE, PLAN, LOG, LOCK = "state.json", "plan.json", "install.log", "lock"
TAIL = 12
"""Lines of a failed step that its report shows."""
SHELL = ["bash", "-euo", "pipefail", "-c"]
QUIET = {"DEBIAN_FRONTEND": "noninteractive", "GIT_TERMINAL_PROMPT": "0", "PIP_NO_INPUT": "1"}

Progress = Callable[[str, Step], None]
Began = Callable[[dict[str, int]], None]


GRACE = 10.0
"""Seconds that a step has to end after SIGTERM."""


class Busy(Exception):
    """A plan is being applied in this folder, or a step of an earlier run is still at work."""


def apply(plan: Plan, progress: Progress = lambda event, step: None) -> dict[str, Any]:
    """Run the steps of a plan that are not done yet; stop at the first that fails.

    Whether a step is done is asked of the machine (its ``check``), never of the state file, so a plan
    that was stopped anywhere goes on where it is due. ``progress`` is told "already", "run", "ran",
    "done" and "failed". Returns the state, which is also kept in ``state.json``. Raises Busy if the
    plan is being applied already.
    """
    folder = Path(plan.workdir)
    enter(folder)
    with _lock(folder), (folder / LOG).open("ab") as log:
        _refuse_orphan(folder)
        write_atomically(folder / PLAN, json.dumps(plan.to_dict(), indent=1) + "\n")
        state: dict[str, Any] = {
            "recipe": plan.recipe,
            "plan": plan.digest,
            "state": "running",
            **whose(os.getpid()),
            "log": str(folder / LOG),
            "steps": {step.id: {"state": "waiting", "title": step.title} for step in plan.steps},
            "failed": None,
        }

        def note(step: Step, new: str, **more: Any) -> None:
            state["steps"][step.id].update(state=new, **more)
            _save(folder, state)

        _save(folder, state)
        try:
            for step in plan.steps:
                if not _run_step(
                    folder, step, log, note, progress, lambda shell: _save(folder, {**state, "shell": shell})
                ):
                    state["state"] = "failed"
                    state["failed"] = diagnose(step, folder / LOG, state["steps"][step.id]["from"])
                    break
            else:
                state["state"] = "done"
        except BaseException:
            state["state"] = "interrupted"
            raise
        finally:
            _save(folder, state)
    return state


def enter(folder: Path) -> None:
    """Make the folder of a plan and see that it can be written in. Raises Unavailable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOCK).touch()
    except OSError as error:
        raise Unavailable(f"{folder} cannot be written in: {error.strerror}", hint="another --workdir") from None


def whose(pid: int) -> dict[str, int]:
    """Return how a state names a process: by pid and start, as a pid alone is given to others later."""
    return {"pid": pid, "started": process_start(pid)}


def _lives(named: dict[str, Any]) -> bool:
    return named.get("started", 0) != 0 and process_start(named["pid"]) == named["started"]


def _refuse_orphan(folder: Path) -> None:
    """Raise Busy while the shell of a step whose plan.py was killed goes on; it is known by pid and start."""
    shell = (_read_state(folder) or {}).get("shell") or {}
    if shell and _lives(shell):
        raise Busy(f"{folder}: a step of an earlier run is still at work (pid {shell['pid']})")


def _run_step(
    folder: Path, step: Step, log: Any, note: Callable[..., None], progress: Progress, began_shell: Began
) -> bool:
    start = log.tell()
    if _shell(step, "check", log) == 0:
        note(step, "already")
        progress("already", step)
        return True
    note(step, "running", **{"from": start})
    progress("run", step)
    began = time.monotonic()
    code = _shell(step, "run", log, began_shell) if _may_begin(folder, step, log) else 1
    if code == 0:
        progress("ran", step)
        code = _shell(step, "verify", log)
    seconds = round(time.monotonic() - began, 1)
    note(step, "failed" if code else "done", seconds=seconds, exit_code=code)
    progress("failed" if code else "done", step)
    return code == 0


def _may_begin(folder: Path, step: Step, log: Any) -> bool:
    """Note what the step is going to make, unless it existed; return False if the step must not touch that."""
    if not step.undoes or is_noted(folder, step):
        return True
    if not step.existed or _shell(step, "existed", log) != 0:
        note_made(folder, step)
        return True
    if step.refusal:
        log.write(f"{step.refusal}\n".encode())
        log.flush()
    return not step.refusal


def _shell(step: Step, part: str, log: Any, began: Began = lambda shell: None) -> int:
    """Run one part of a step without a terminal and return its exit code; its output goes to the log."""
    log.write(f"\n=== {time.strftime('%F %T')} {step.id} {part}\n".encode())
    log.flush()
    try:
        child = subprocess.Popen(
            [*SHELL, getattr(step, part)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **QUIET},
            start_new_session=True,  # no controlling terminal: nothing can prompt
        )
    except FileNotFoundError:
        raise Unavailable("there is no bash", hint="install bash") from None
    try:
        began(whose(child.pid))
        return child.wait()
    except BaseException:
        _end(child)
        raise


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(GRACE)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def preview(plan: Plan) -> list[dict[str, str]]:
    """Return which steps are done already and which would run; only their checks are run."""
    found = []
    for step in plan.steps:
        done = subprocess.run(
            [*SHELL, step.check],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, **QUIET},
            check=False,
        )
        found.append({"id": step.id, "title": step.title, "state": "would run" if done.returncode else "already"})
    return found


def diagnose(step: Step, log: Path, start: int) -> dict[str, Any]:
    """Return what is known about a failed step: its last lines, and cause and mend if the failure is a known one."""
    with log.open("rb") as stream:
        stream.seek(start)
        text = stream.read().decode("utf-8", "replace")
    known = recognise(text, *step.signatures, "apt", "step") if step.signatures else recognise(text)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("=== ")]
    return {
        "step": step.id,
        "title": step.title,
        "signature": known.id if known else None,
        "cause": known.cause if known else "not a failure known here",
        "mend": known.mend
        if known
        else "read the end of the log, mend it, and run the same command again: it goes on at this step",
        "tail": lines[-TAIL:],
    }


def status(folder: Path) -> dict[str, Any] | None:
    """Return the state of the plan in a folder, or None.

    A running one is interrupted when its process has gone and the step that it may have left has ended.
    """
    state = _read_state(folder)
    if state and state["state"] == "running":
        lives = _locked(folder) or _lives(state) or _lives(state.get("shell") or {})
        state["state"] = "running" if lives else "interrupted"
    return state


def at_work(folder: Path) -> bool:
    """Tell whether another process, or a step that one left behind, is at work in a folder."""
    state = status(folder) or {}
    return state.get("state") == "running" and state.get("pid") != os.getpid()


def _read_state(folder: Path) -> dict[str, Any] | None:
    try:
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) and "state" in state else None


def saved_plan(folder: Path) -> Plan | None:
    """Return the plan that was begun in a folder and did not end well, or None."""
    state = status(folder)
    if state is None or state["state"] not in ("failed", "interrupted"):
        return None
    try:
        return Plan.from_dict(json.loads((folder / PLAN).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(folder: Path, state: dict[str, Any]) -> None:
    """Keep a state in a folder that a plan was begun in; a folder that is not there is not made for it."""
    if folder.is_dir():
        _save(folder, state)


def _save(folder: Path, state: dict[str, Any]) -> None:
    write_atomically(folder / STATE, json.dumps(state, indent=1) + "\n")


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    with (folder / LOCK).open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(str(folder)) from None
        yield


def _locked(folder: Path) -> bool:
    try:
        with _lock(folder):
            return False
    except Busy:
        return True
    except OSError:
        return False
