"""Real runs for the tests: small programs that print what a training prints, in a tmux of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from skillpack.runs import process

ROOT = Path(__file__).resolve().parents[2]
CLASSIC = ROOT / "skills" / "run-classic" / "scripts"
STEP = "step:{n} - critic/rewards/mean:np.float64(0.5) - actor/entropy:0.6 - timing_s/step:30.0"


@dataclass
class Answer:
    """What a script said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Lab:
    """A folder with blueprints and runs, a private tmux server, and the scripts of a skill."""

    path: Path
    socket: str | None
    environment: dict[str, str] = field(default_factory=dict)
    made: list[Path] = field(default_factory=list)

    def script(self, name: str, *arguments: str | Path, timeout: float = 60, **environment: str) -> Answer:
        """Run a script of the skill, as an assistant would."""
        done = subprocess.run(
            [sys.executable, str(CLASSIC / f"{name}.py"), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.path,
            env={**os.environ, **self.environment, **environment},
            stdin=subprocess.DEVNULL,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Answer(done.returncode, done.stdout, done.stderr)

    def run(self, verb: str, *arguments: str | Path, **kwargs: Any) -> Answer:
        return self.script("run", verb, *arguments, **kwargs)

    def blueprint(self, program: str, name: str = "one", max_time: str = "1h", command: str | None = None) -> Path:
        """Write a Python program and a blueprint that launches it; return the blueprint."""
        folder = self.path / f"code {name}"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(STEPS + textwrap.dedent(program), encoding="utf-8")
        blueprint = self.path / f"{name}.md"
        blueprint.write_text(
            textwrap.dedent(f"""\
            # exp_purpose
            Drill {name}
            # exp_codebase_dir
            {folder}
            # exp_venv_exe
            {sys.executable}
            # exp_yaml_path
            x.yaml
            # exp_launch_command
            ```bash
            {command or "python train.py"}
            ```
            # exp_result_dir
            {self.path / "results" / name}
            # exp_max_time
            {max_time}
            """),
            encoding="utf-8",
        )
        return blueprint

    def result(self, name: str = "one") -> Path:
        directory = self.path / "results" / name
        if directory not in self.made:
            self.made.append(directory)
        return directory

    def start(self, program: str, name: str = "one", *options: str, max_time: str = "1h", **kwargs: Any) -> Path:
        """Start a run of a program; return its directory."""
        blueprint = self.blueprint(program, name, max_time, kwargs.pop("command", None))
        self.result(name)
        answer = self.run("start", blueprint, "--observe", "0", "--kill-after", "2s", *options, **kwargs)
        assert answer.code == 0 or "--observe" not in options, answer.err
        assert (self.result(name) / "run.json").exists(), answer.err
        return self.result(name)

    def record(self, directory: Path) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((directory / "run.json").read_text())
        return data

    def ended(self, directory: Path) -> dict[str, Any]:
        """Wait until the record tells the run's end; return the record."""
        until(lambda: self.record(directory)["phase"] == "ended", f"{directory} to end")
        return self.record(directory)

    def tmux(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        assert self.socket
        return subprocess.run(["tmux", "-L", self.socket, *arguments], capture_output=True, text=True, timeout=20)

    def clean_up(self) -> None:
        """End what the runs have left; only processes that carry a run's own id."""
        for directory in self.made:
            with suppress(OSError, ValueError):
                record = self.record(directory)
                supervisor = process.Identity.from_json(record.get("supervisor"))
                if supervisor:
                    supervisor.signal(signal.SIGKILL)
                for one in process.carrying("AJET_RUN_ID", record["id"]):
                    one.signal(signal.SIGKILL)
        if self.socket:
            self.tmux("kill-server")


STEPS = f"""\
import os, signal, subprocess, sys, time

def step(n):
    print("(TaskRunner pid=77) {STEP}".replace("{{n}}", str(n)), flush=True)

"""


def until(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Wait for a condition, with a deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab with a tmux server of its own."""
    socket = f"ajet-test-{os.getpid()}-{tmp_path.name[-20:]}"
    one = Lab(tmp_path, socket, {"AJET_TMUX_SOCKET": socket})
    yield one
    one.clean_up()


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Lab]:
    """A lab on a machine without tmux."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in ("/bin", "/usr/bin"):
        for program in ("bash", "sh", "sleep", "tail", "env", "cat"):
            if Path(folder, program).exists() and not (tools / program).exists():
                (tools / program).symlink_to(Path(folder, program))
    one = Lab(tmp_path, None, {"PATH": f"{tools}"})
    yield one
    one.clean_up()
