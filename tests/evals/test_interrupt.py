"""Whoever is stopped in the middle leaves nothing running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from skillpack.validate.evals.processes import wait_until

RUN = "import pathlib, sys; from skillpack.validate.evals import run_scripts; run_scripts([pathlib.Path(sys.argv[1])])"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_run_ends_scripts_and_fixtures(skill: Path, tmp_path: Path, number: signal.Signals) -> None:
    if sys.platform != "linux" and number != signal.SIGINT:
        pytest.skip("only Linux tells children that their parent has died")
    marker = f"89{os.getpid()}"
    (skill / "evals" / "beside.py").write_text(
        f"import subprocess; print('ready 1', flush=True); subprocess.run(['sleep', '{marker}1'])"
    )
    case = {
        "name": "long",
        "script": "number.py",
        "args": ["--do", f"subprocess.run(['sleep', '{marker}0'], start_new_session=True)"],
        "fixture": {"run": ["evals/beside.py"], "ready": "ready (1)"},
    }
    (skill / "evals" / "scripts.yaml").write_text(yaml.safe_dump({"cases": [case]}))

    def running() -> list[str]:
        listing = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True).stdout
        return [line for line in listing.splitlines() if line.startswith(f"sleep {marker}")]

    (tmp_path / "temporary").mkdir()
    run = subprocess.Popen(
        [sys.executable, "-c", RUN, str(skill)], env={**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    )
    assert wait_until(lambda: len(running()) == 2, 30)
    run.send_signal(number)
    run.wait(30)
    assert wait_until(lambda: not running(), 30), running()
    if number == signal.SIGINT:
        assert not list((tmp_path / "temporary").iterdir())
