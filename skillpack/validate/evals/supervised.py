"""The caller's side of the process in which scripts run (``supervisor``)."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from skillpack.validate.evals import processes, supervisor
from skillpack.validate.evals.fixtures import pack_importable

ANSWER_LIMIT = 30.0
"""Seconds beyond a case's own time limit until its supervisor counts as lost."""


class Supervised:
    """The process in which commands run (see ``supervisor``); it is started again if a script has killed it."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.process: subprocess.Popen[str] | None = None

    def run(self, order: supervisor.Order) -> supervisor.Outcome:
        """Run one command and return what came of it."""
        if self.process is None:
            self.process = self._start()
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        line = ""
        with suppress(BrokenPipeError):
            process.stdin.write(supervisor.order_line(order))
            process.stdin.flush()
            if select.select([process.stdout], [], [], order["timeout"] + ANSWER_LIMIT)[0]:
                line = process.stdout.readline()
        if line:
            return supervisor.answer(line)
        self.stop()
        for stream in (order["stdout"], order["stderr"]):
            Path(stream).touch()
        return supervisor.nothing("the process that runs the scripts was stopped by the script")

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", "from skillpack.validate.evals.supervisor import serve; serve()"],
            cwd=self.cwd,
            env={**os.environ, **pack_importable(os.environ)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def kill(self) -> None:
        """End the process and all below it."""
        process = self.process
        if process is not None:
            processes.kill_below(process.pid)
            process.kill()

    def stop(self) -> None:
        """End the process and all below it, and let go of it."""
        self.kill()
        process, self.process = self.process, None
        if process is not None:
            with suppress(BrokenPipeError):
                process.communicate()
