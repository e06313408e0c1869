"""``skills engine``: reference engines in the background, each known by the port that it listens on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from skillpack.files import write_atomically
from skillpack.interrupts import held_back
from skillpack.pack import python_module
from skillpack.script import (
    BAD_INPUT,
    EXIT_CODES,
    EXTRAS,
    UNAVAILABLE,
    YES,
    BadInput,
    Command,
    Group,
    Unavailable,
    emit,
    json_option,
)

CODES = {code: EXIT_CODES[code] for code in (YES, BAD_INPUT, UNAVAILABLE)}


@dataclass(frozen=True)
class EngineProcess:
    """A reference engine that runs in the background; ``started`` tells it from a later process with its pid."""

    url: str
    pid: int
    started: int
    log: str

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return self.started != 0 and process_start(self.pid) == self.started

    @property
    def record(self) -> Path:
        """The file that remembers this engine."""
        return state_dir() / f"{self.url.rsplit(':', 1)[1]}.json"


def state_dir() -> Path:
    """Return the folder with a record of each engine."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "agentjet-skills" / "engines"


def process_start(pid: int) -> int:
    """Return when a process began, in clock ticks since boot; 0 if it is gone or a zombie.

    Where there is no /proc (macOS), ``ps`` tells it in seconds since 1970.
    """
    if not Path("/proc/self/stat").exists():
        told = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return int(time.mktime(time.strptime(told.stdout.strip()))) if told.stdout.strip() else 0
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def start_engine(arguments: list[str], *, cwd: Path | None = None, log: Path | None = None) -> EngineProcess:
    """Start ``python -m ajet.swarm_cli start`` with these arguments and wait until it listens.

    The engine runs in a session of its own; its output goes to ``log`` (default: beside its
    record). If it ends instead, or this process is interrupted, nothing is left of it. Raises
    BadInput or Unavailable, by the engine's exit code, with its own message.
    """
    _forget_old_logs()
    log = log or state_dir() / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    process: subprocess.Popen[bytes] | None = None
    try:
        with log.open("w", encoding="utf-8") as output, held_back():
            process = subprocess.Popen(
                python_module("ajet.swarm_cli", "start", *arguments),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        url = _wait_until_it_listens(process, log)
    except BaseException:
        if process:
            process.kill()
            process.wait()
        raise
    return EngineProcess(url, process.pid, process_start(process.pid), str(log.resolve()))


def _wait_until_it_listens(process: subprocess.Popen[bytes], log: Path, seconds: float = 30.0) -> str:
    """Return the engine's URL. Raises BadInput or Unavailable with what it said if it ends or takes too long."""
    deadline = time.monotonic() + seconds
    while True:
        code = process.poll()
        announced = _announcement(log)
        if announced is not None and code is None:
            return str(announced["url"])
        if code is not None or time.monotonic() > deadline:
            said = log.read_text(encoding="utf-8", errors="replace").strip()
            reason = said.rpartition("Error: ")[2] if "Error: " in said else said[-1500:]
            kind = BadInput if code == BAD_INPUT else Unavailable
            hint = EXTRAS if "No module named" in reason else f"mend that; its log is {log}"
            raise kind(f"the engine did not start: {reason or 'it said nothing'}", hint=hint)
        time.sleep(0.02)


def _forget_old_logs(days: float = 7.0) -> None:
    """Remove the logs of engines that have long been gone."""
    for path in state_dir().glob("*.log"):
        if time.time() - path.stat().st_mtime > days * 86400:
            path.unlink(missing_ok=True)


def _announcement(log: Path) -> dict[str, Any] | None:
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith('{"engine"'):
            return dict(json.loads(line))
    return None


def stop_engine(engine: EngineProcess, seconds: float = 15.0) -> bool:
    """Ask an engine to stop and wait until it has; return False if it had to be killed."""
    graceful = True
    for number, wait in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
        if not engine.alive:
            break
        graceful = number == signal.SIGTERM
        try:
            os.kill(engine.pid, number)
        except ProcessLookupError:
            break
        deadline = time.monotonic() + wait
        while engine.alive and time.monotonic() < deadline:
            _reap(engine.pid)
            time.sleep(0.02)
    _reap(engine.pid)
    return graceful


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # somebody else's child: it is reaped there


def recorded_engines() -> list[EngineProcess]:
    """Return the engines that still run, and forget those that do not."""
    engines = []
    for path in sorted(state_dir().glob("*.json")):
        try:
            engine = EngineProcess(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue
        if engine.alive:
            engines.append(engine)
        else:
            path.unlink(missing_ok=True)
    return engines


@click.group("engine", cls=Group, epilog="skills engine start --config job.yaml --start --json")
def engine_command() -> None:
    """Start, ask or stop a reference engine: the swarm protocol on a laptop, without GPUs."""


@engine_command.command(
    "start",
    cls=Command,
    example="skills engine start --port 10086 --config job.yaml --start",
    exit_codes=CODES,
    context_settings={"ignore_unknown_options": True},
)
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="Port to listen on; 0 (the default) takes a free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--config", "config", type=click.Path(path_type=Path), help="Training configuration (YAML).")
@click.option("--start", "start_now", is_flag=True, help="Start to train with --config at once.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[ENGINE_OPTIONS]...")
@json_option
def start(port: int, host: str, config: Path | None, start_now: bool, options: tuple[str, ...], as_json: bool) -> None:
    """Start an engine in the background and print its URL.

    ENGINE_OPTIONS are those of `python -m ajet.swarm_cli start`, such as --policy and --slots.
    """
    if start_now and config is None:
        raise BadInput(
            "--start was given without --config", expected="a configuration to train with", hint="--config job.yaml"
        )
    arguments = ["--swarm-port", str(port), "--host", host]
    if config is not None:
        if not config.is_file():
            raise BadInput(f"{config} is not a file", expected="a training configuration (YAML)")
        arguments += ["--config", str(config.resolve())]
    engine = start_engine([*arguments, *(["--start"] if start_now else []), *options])
    write_atomically(engine.record, json.dumps(asdict(engine)))
    emit(
        {"engine": "reference", **asdict(engine)},
        as_json=as_json,
        text=f"{engine.url} (pid {engine.pid}, log {engine.log})",
    )


@engine_command.command("status", cls=Command, example="skills engine status --json", exit_codes=CODES)
@click.option("--url", help="Server to ask; without it all engines that `skills engine start` started.")
@json_option
def status(url: str | None, as_json: bool) -> None:
    """Tell what an engine is doing: status, step, progress, running episodes against the cap."""
    from ajet.utils.swarm_overwatch import ServerUnreachable, read_frame

    urls = [url] if url else [engine.url for engine in recorded_engines()]
    if not urls:
        raise Unavailable("no engine is running", hint="skills engine start, or --url of another server")
    try:
        frames = [read_frame(one) for one in urls]
    except ServerUnreachable as error:
        raise Unavailable(str(error)) from None
    lines = [
        f"{one['url']} {one['engine_status']} step {one['global_step']} "
        f"running {one['running_episodes']}/{'unknown' if one['cap'] is None else one['cap']} ({one['engine']} engine)"
        for one in frames
    ]
    emit({"engines": frames}, as_json=as_json, text="\n".join(lines))


@engine_command.command(
    "stop", cls=Command, example="skills engine stop --url http://127.0.0.1:10086", exit_codes=CODES
)
@click.option("--url", help="Engine to stop; without it all that `skills engine start` started.")
@json_option
def stop(url: str | None, as_json: bool) -> None:
    """Stop engines that `skills engine start` started; no other process is touched."""
    engines = [engine for engine in recorded_engines() if url in (None, engine.url)]
    if url and not engines:
        raise Unavailable(
            f"no engine of this machine's records listens at {url}",
            expected="an engine that `skills engine start` started",
            hint="skills engine status",
        )
    stopped = []
    for engine in engines:
        stopped.append({**asdict(engine), "graceful": stop_engine(engine)})
        engine.record.unlink(missing_ok=True)
    text = "\n".join(f"stopped {one['url']}" for one in stopped) or "no engine was running"
    emit({"stopped": stopped}, as_json=as_json, text=text)
