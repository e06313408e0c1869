"""`skills engine`: engines in the background, found again and stopped by their record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillpack.engine import process_start
from skillpack.pack import python_module
from tests.engine.conftest import job


@pytest.fixture
def skills(tmp_path: Path):
    """Run `skills engine …` with a state folder of its own; engines that are left are stopped."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            python_module("skillpack", "engine", *arguments),
            cwd=tmp_path,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    yield run
    run("stop")


def test_an_engine_is_started_asked_and_stopped(skills, tmp_path):
    (tmp_path / "job.yaml").write_text(job(workers=7, repeat=2))
    started = json.loads(skills("start", "--config", "job.yaml", "--start", "--json").stdout)
    assert started["engine"] == "reference"
    status = skills("status")
    assert status.stdout.split() == [
        started["url"], "ENGINE.ROLLING", "step", "1", "running", "0/8", "(reference", "engine)",
    ]  # fmt: skip
    assert skills("status", "--url", started["url"], "--json").returncode == 0
    assert f"stopped {started['url']}" in skills("stop", "--url", started["url"]).stdout
    assert process_start(started["pid"]) == 0
    gone = skills("status")
    assert gone.returncode == 3
    assert "no engine is running" in gone.stderr


def test_options_of_the_engine_are_passed_on(skills):
    started = json.loads(skills("start", "--json", "--policy", "echo").stdout)
    frame = json.loads(skills("status", "--json").stdout)["engines"][0]
    assert frame["url"] == started["url"]
    refused = skills("start", "--policy", "guess")
    assert refused.returncode == 2
    assert "'guess' is not one of" in refused.stderr


@pytest.mark.parametrize("text", ["ajet: [1", "ajet: {rollout: {max_env_worker: lots}}"])
def test_a_config_that_cannot_be_used_is_refused_though_nothing_is_started_yet(skills, tmp_path, text):
    (tmp_path / "bad.yaml").write_text(text)
    refused = skills("start", "--config", "bad.yaml", "--json")
    assert refused.returncode == 2
    assert "The training config cannot be used" in refused.stderr
    assert skills("status").returncode == 3


def test_the_real_ajet_in_the_working_directory_is_not_taken_for_ours(skills, tmp_path):
    (tmp_path / "ajet").mkdir()
    (tmp_path / "ajet" / "__init__.py").write_text("raise RuntimeError('the real ajet was imported')")
    script = Path(sys.executable).with_name("skills")
    started = subprocess.run(
        [script, "engine", "start", "--json"],
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert json.loads(started.stdout)["engine"] == "reference", started.stderr


def test_only_recorded_engines_are_stopped(skills):
    answer = skills("stop", "--url", "http://127.0.0.1:1")
    assert answer.returncode == 3
    assert "no engine of this machine's records" in answer.stderr


def test_bad_input_is_told_before_anything_starts(skills):
    assert "--start was given without --config" in skills("start", "--start").stderr
    missing = skills("start", "--config", "nowhere.yaml")
    assert missing.returncode == 2
    assert "nowhere.yaml is not a file" in missing.stderr
