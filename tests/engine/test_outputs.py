"""What a run leaves behind, and what overwatch shows of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ajet.utils.tracking import open_trackers
from tests.engine.conftest import job

METRICS = {"critic/rewards/mean", "critic/success_rate", "actor/entropy", "response_length/mean", "timing_s/step"}


def finish(engine, steps: int = 2) -> None:
    for index in range(2 * steps):
        engine.run_episode(task=f"t{index // 2}", reward=float(index % 2))
    engine.wait_for(lambda status: status["engine_status"] == "ENGINE.OFFLINE")


def test_each_step_has_a_console_line_and_the_same_in_metrics_jsonl(start_engine):
    engine = start_engine(job(batch=1, steps=2))
    finish(engine)
    lines = engine.metrics()
    assert [line["step"] for line in lines] == [1, 2]
    assert lines[0]["metrics"].keys() >= METRICS
    assert lines[0]["metrics"]["critic/rewards/mean"] == 0.5
    engine.process.terminate()
    printed = engine.process.stdout.read().splitlines()
    assert printed[0].startswith("step:1 - critic/llm_call_cnt:1.0 - ")
    assert " - critic/rewards/mean:0.5 - " in printed[1]


def test_a_run_has_its_config_and_its_checkpoint_where_a_real_run_has_them(start_engine, tmp_path):
    engine = start_engine(job(name="exp", batch=1, steps=2))
    finish(engine)
    assert "experiment_name: exp" in (tmp_path / "saved_experiments/exp/yaml_backup.yaml").read_text()
    checkpoints = tmp_path / "saved_checkpoints/tests/exp"
    assert (checkpoints / "latest_checkpointed_iteration.txt").read_text() == "2"
    assert json.loads((checkpoints / "global_step_2/actor/policy.json").read_text())["step"] == 2


def test_tensorboard_gets_the_metrics(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trackers = open_trackers(("console", "tensorboard"), tmp_path, "p", "e")
    for step in (1, 2):
        for tracker in trackers:
            tracker.log(step, {"critic/rewards/mean": step / 2})
    for tracker in trackers:
        tracker.close()
    events = EventAccumulator(str(tmp_path / "tensorboard_log")).Reload()
    assert [(one.step, one.value) for one in events.Scalars("critic/rewards/mean")] == [(1, 0.5), (2, 1.0)]


def test_swanlab_gets_the_metrics_on_disk_and_our_reader_finds_them(start_engine, tmp_path):
    from skillpack.metrics.local import read_local

    config = yaml.safe_load(job(name="exp", batch=1, steps=2))
    config["ajet"]["trainer_common"]["logger"] = ["console", "swanlab"]
    engine = start_engine(yaml.safe_dump(config))
    finish(engine)
    engine.process.terminate()
    engine.process.wait(20)
    (run,) = read_local(tmp_path / "saved_experiments/exp/swanlog", ["critic/rewards/mean"])
    assert run.frame["critic/rewards/mean"].tolist() == [0.5, 0.5]


def test_a_logger_that_is_not_there_is_left_out_with_a_warning(tmp_path, caplog):
    trackers = open_trackers(("console", "mlflow"), tmp_path, "p", "e")
    assert len(trackers) == 2
    assert "'mlflow' is not one of the reference engine's" in caplog.text


def overwatch(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ajet.swarm_cli", "overwatch", "--once", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={"COLUMNS": "100", "PATH": "/bin"})


def test_overwatch_shows_running_episodes_against_the_cap(start_engine):
    engine = start_engine(job(batch=2, repeat=2, workers=5))
    engine.claim()
    engine.run_episode(reward=0.5)
    frame = json.loads(overwatch("--json", "--swarm-url", engine.url).stdout)
    assert (frame["engine"], frame["engine_status"], frame["global_step"]) == ("reference", "ENGINE.ROLLING", 1)
    assert (frame["running_episodes"], frame["cap"]) == (1, 6)
    assert [(one["completed"], one["target"]) for one in frame["progress"]] == [(1, 4), (0, 2), (0, 2)]
    text = overwatch("--swarm-url", engine.url).stdout
    assert "running episodes  1          6" in text
    assert "0.500 ± 0.000" in text


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "not a url", "http://[", "ftp://x"])
def test_overwatch_of_no_server_says_what_to_try(url):
    answer = overwatch("--swarm-url", url)
    assert answer.returncode == 3
    assert "try: skills engine start" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_the_engine_without_a_config_says_what_is_missing(tmp_path: Path):
    command = [sys.executable, "-m", "ajet.swarm_cli", "start", "--start"]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 2
    assert "--start needs --conf" in answer.stderr
