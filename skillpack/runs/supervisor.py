"""The supervisor: owns the processes of one run from the first byte of their output to the last exit code.

It lives in its own session and needs nobody: not the assistant, not the shell, not tmux. It
alone writes ``run.json`` while the run lives. Time is measured by the monotonic clock.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from skillpack.files import write_atomically
from skillpack.runs import process
from skillpack.runs.backends import SSH_LOST, Backend, Task
from skillpack.runs.engine import ask_engine
from skillpack.runs.gpus import GpusBusy, take_gpus
from skillpack.runs.heart import Heart
from skillpack.runs.parts import Part, child_environment
from skillpack.runs.ports import is_here, listens_below
from skillpack.runs.rundir import RUN_VARIABLE, SUPERVISOR_LOCK, RunDir, take_lock

TICK = 0.5
ENGINE_EVERY = 2.0
SERVER_GRACE = 10.0
"""Seconds that clients get to end by themselves after their server has died."""


class Supervisor:
    """Starts the parts of a run in order, waits for their ends, keeps the record."""

    def __init__(self, run: RunDir, environment: dict[str, str]) -> None:
        self.run_dir = run
        self.environment = environment
        self.record = run.read()
        self.spec: dict[str, Any] = self.record["spec"]
        self.backend = Backend.from_json(self.record["backend"])
        entries = self.record["parts"]
        self.parts = [Part(entry, run.log_of(entry["name"], len(entries))) for entry in entries]
        self.heart = Heart(run, self.parts)
        self.started = time.monotonic()
        self.stop_signal = 0
        self.server_died_at: float | None = None
        self.ending = threading.Event()
        self._wake, self._woken = os.pipe()

    def live(self) -> None:
        """Run everything to its end and record it. Never raises for what the run does."""
        self._listen()
        self.record.update(
            phase="running",
            supervisor=_identity(os.getpid()),
            started=_wall(),
            started_monotonic=self.started,
            boot=process.boot_id(),
        )
        self._save()
        try:
            outcome, reason = self._hold()
        except GpusBusy as error:
            outcome, reason = "launch-error", str(error)
        except OSError as error:
            outcome, reason = "launch-error", f"the run could not be started: {error}"
        self._end(outcome, reason)

    def _listen(self) -> None:
        for pipe_end in (self._wake, self._woken):
            os.set_blocking(pipe_end, False)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked_to_stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)

    def _asked_to_stop(self, number: int, _: object) -> None:
        self.stop_signal = number

    def _hold(self) -> tuple[str, str]:
        """Start the parts and wait; return the outcome and its reason."""
        self.leases = take_gpus(self.spec.get("gpus"))
        server = next((part for part in self.parts if part.role == "server"), None)
        url = self.spec.get("server_url")
        if server:
            self._start(server)
        if url and (ended := self._await_server(url, server)):
            return ended
        for part in self.parts:
            if part is not server:
                self._start(part)
        if url:
            threading.Thread(target=self._watch_engine, args=(url,), daemon=True).start()
        while True:
            if ended := self._over():
                return ended
            self._tick()

    def _over(self) -> tuple[str, str] | None:
        """Return outcome and reason if the run is over."""
        if ended := self._cut_short():
            return ended
        clients = [part for part in self.parts if part.role != "server"]
        over = all(part.ended for part in clients)
        server = next((part for part in self.parts if part.role == "server"), None)
        if over and not (server and server.ended and any(part.code for part in clients)):
            return "exited", ""
        if server and server.ended:
            self.server_died_at = self.server_died_at or time.monotonic()
            if over or time.monotonic() - self.server_died_at >= min(SERVER_GRACE, self.spec["kill_after"]):
                return "part-died", f"the server ended ({server.how}) while clients needed it"
        return None

    def _cut_short(self) -> tuple[str, str] | None:
        """Return outcome and reason if the run was told to end, or its time is up."""
        if self.stop_signal:
            return "stopped", self._stop_reason()
        limit = self.spec.get("max_time")
        if limit is not None and time.monotonic() - self.started >= limit:
            return "timed-out", f"exp_max_time of {limit:g} s is reached"
        return None

    def _await_server(self, url: str, server: Part | None) -> tuple[str, str] | None:
        """Wait until the swarm server answers; return outcome and reason if it will not.

        A server that this run starts must be the one that listens: what answers in the stead of one
        that found its port taken belongs to somebody else.
        """
        patience = self.spec["server_timeout"]
        deadline = time.monotonic() + patience
        where = urlsplit(url)
        port = where.port or (443 if where.scheme == "https" else 80)
        here = server is not None and self.backend.kind == "local" and is_here(where.hostname)
        while True:
            if server and server.ended:
                return "part-died", f"the server ended ({server.how}) before it was ready"
            status = ask_engine(url, 2.0)
            if status and (not here or listens_below(os.getpid(), port)):
                self.heart.engine(status)
                return None
            if ended := self._cut_short():
                return ended
            if time.monotonic() >= deadline:
                whose = f"the server that answers at {url} is not this run's" if status else f"no answer from {url}"
                return "not-ready", f"no swarm server of this run within {patience:g} s: {whose}"
            self._tick()

    def _watch_engine(self, url: str) -> None:
        while not self.ending.wait(ENGINE_EVERY):
            status = ask_engine(url)
            if not self.ending.is_set():
                self.heart.engine(status)

    def _stop_reason(self) -> str:
        with suppress(OSError):
            return (self.run_dir.path / "stop.request").read_text(encoding="utf-8").strip()
        return f"the supervisor was told to end ({signal.Signals(self.stop_signal).name}), not by run.py stop"

    def _start(self, part: Part) -> None:
        task = Task(
            command=part.command,
            part=part.name,
            run_id=self.record["id"],
            cwd=self.spec.get("codebase_dir"),
            venv_exe=self.spec.get("venv_exe"),
            variables={**self.spec["variables"], RUN_VARIABLE: self.record["id"]},
        )
        argv = self.backend.argv(task)
        cwd = self.spec.get("codebase_dir") if self.backend.kind == "local" else str(self.run_dir.path)
        part.log.parent.mkdir(parents=True, exist_ok=True)
        with part.log.open("ab", buffering=0) as log:
            child = _spawn(argv, cwd, child_environment(self.environment, self.record), log)
        part.begin(child, _identity(child))
        self._save()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for part in self.parts:
                if part.pid == pid and not part.ended:
                    part.end(status)
                    self._save()

    def _tick(self) -> None:
        """Sleep until something happens or the next look is due; reap, copy logs, beat."""
        wait = TICK
        limit = self.spec.get("max_time")
        if limit is not None:
            wait = min(wait, max(0.0, self.started + limit - time.monotonic()))
        if select.select([self._wake], [], [], wait)[0]:
            with suppress(BlockingIOError):
                os.read(self._wake, 4096)
        self._reap()
        self.heart.beat()

    def _end(self, outcome: str, reason: str) -> None:
        self.ending.set()
        if self.spec.get("server_url") and all(part.role != "server" for part in self.parts):
            self.heart.engine(ask_engine(self.spec["server_url"]))  # the last word of a server that goes on
        patience = self.spec["kill_after"]
        running = [part.name for part in self.parts if part.pid and not part.ended]
        for part in self.parts:
            stop = self.backend.stop_argv(part.name, self.record["id"])
            if stop and part.pid and (not part.ended or part.code == SSH_LOST):
                with suppress(OSError, subprocess.TimeoutExpired):
                    subprocess.run(stop, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience + 20)
        found = process.descendants(os.getpid())
        survivors = process.end_all(lambda: process.descendants(os.getpid()), patience=patience, reap=self._reap)
        self._reap()
        self.heart.beat(last=True)
        code = next((part.code for part in self.parts if part.role != "server" and part.code), 0)
        if outcome == "part-died":
            code = next((part.code for part in self.parts if part.role == "server" and part.code), code)
        self.record.update(
            phase="ended",
            outcome=outcome,
            reason=reason,
            exit_code=code if outcome in ("exited", "part-died") else None,
            ended=_wall(),
            seconds=round(time.monotonic() - self.started, 3),
            ended_by_us=running,
            left_behind=len(found) if outcome == "exited" and len(self.parts) == 1 else 0,
            survivors=[survivor.as_json() for survivor in survivors],
            disk_was_full=self.heart.disk_was_full,
        )
        self.heart.free_reserve()
        if outcome in ("exited", "part-died"):
            with suppress(OSError):
                write_atomically(self.run_dir.path / "exit_code", f"{code}\n")
        self._save()

    def _save(self) -> None:
        self.record["parts"] = [part.as_json() for part in self.parts]
        try:
            self.run_dir.write(self.record)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                self.record["disk_was_full"] = self.heart.disk_was_full = True
            self.heart.free_reserve()
            with suppress(OSError):
                self.run_dir.write(self.record)


def _identity(pid: int) -> dict[str, Any] | None:
    who = process.Identity.of(pid)
    return who.as_json() if who else None


def _wall() -> str:
    """Return the wall-clock time, which people want to read; nothing is computed from it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def _spawn(argv: list[str], cwd: str | None, environment: dict[str, str], log: BinaryIO) -> int:
    """Start a program in its own session with its output in ``log``; return its pid.

    The exit status is collected by the supervisor's own ``waitpid``, orphans' included, so the
    Popen object is told at once that nobody shall wait through it. Raises OSError.
    """
    child = subprocess.Popen(
        argv,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    child.returncode = 0
    return child.pid


def supervise(folder: Path, environment: dict[str, str]) -> None:
    """Be the supervisor of the run in ``folder`` until it ends.

    A second one for the same run leaves, and so does one that comes when the run was given up.
    """
    lock = take_lock(folder / SUPERVISOR_LOCK)
    if lock is None:
        sys.stderr.write(f"error: {folder} has a supervisor already\n")
        return
    supervisor = Supervisor(RunDir(folder), environment)
    if supervisor.record["phase"] != "starting":
        sys.stderr.write(f"error: {folder} waits for no supervisor: the run is {supervisor.record['phase']}\n")
        return
    process.retitle(f"ajet-run-supervisor {folder.name if _harmless(folder.name) else ''}")
    process.become_subreaper()
    supervisor.live()


def _harmless(name: str) -> bool:
    return not any(word in name.casefold() for word in ("python", "ray", "vllm"))
