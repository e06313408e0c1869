"""The main job: one command, from validating the pack to a report, and nothing left behind."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

SKILLS = [sys.executable, "-m", "skillpack"]


def test_the_demo_learns_reports_and_stops_everything(tmp_path: Path):
    done = subprocess.run(
        [*SKILLS, "demo", "--out", "result", "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["ok"]
    assert result["steps"] == 24
    assert result["mean_reward"]["last_steps"] > result["mean_reward"]["first_steps"] + 0.3
    assert result["capacity"]["cap"] == 16
    with Path(result["files"]["metrics"]).open() as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["step"]) for row in rows] == list(range(1, 25))
    report = Path(result["files"]["report"]).read_text()
    assert "capped at 16" in report
    assert "not a language model" in report
    assert Path(result["files"]["curves"]).read_bytes().startswith(b"\x89PNG")
    engine = (tmp_path / "result" / "engine.log").read_text().splitlines()[0]
    assert not psutil.pid_exists(json.loads(engine)["pid"])


@pytest.mark.parametrize(
    ("moment", "number"),
    [("validating", signal.SIGINT), ("reference engine", signal.SIGINT), ("step  2/", signal.SIGTERM)],
)
def test_a_demo_that_is_interrupted_leaves_no_process_behind(tmp_path: Path, moment: str, number: int):
    demo = subprocess.Popen(
        [*SKILLS, "demo", "--out", "result"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert demo.stderr
    for line in demo.stderr:
        if line.startswith(moment):
            break
    started = psutil.Process(demo.pid).children(recursive=True)
    demo.send_signal(number)
    output = demo.communicate(timeout=60)
    assert demo.returncode == 130
    assert "Traceback" not in output[1]
    gone, alive = psutil.wait_procs(started, timeout=20)
    assert not alive
    assert len(gone) == len(started)
