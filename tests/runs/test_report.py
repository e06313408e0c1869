"""After a run: collect, finish, attempt, plateau, curves."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import jsonschema
import pytest

from skillpack.pack import SCHEMAS
from skillpack.runs.metrics import validation_table
from skillpack.runs.plateau import trend
from tests.runs.conftest import Lab

LEARNS = """
for n in range(1, 31):
    print(f"(TaskRunner pid=1) step:{n} - critic/rewards/mean:np.float64({0.1 + 0.02 * n}) - actor/entropy:0.5")
os.makedirs("val", exist_ok=True)
with open("val/val.md", "a") as file:
    for step in (10, 20):
        told = {"global_steps": step, "task_pass_rate@1": 0.4 + step / 100, "target_dataset_name": "x"}
        file.write(repr(told) + chr(10))
"""
JOB = """
ajet:
  experiment_name: collected
  model: {path: Qwen/Qwen2.5-0.5B-Instruct}
  data: {train_batch_size: 24}
  trainer_common: {val_print_to_markdown_file_path: ./val/val.md}
hydra:
  searchpath: [file://ajet/default_config]
defaults: [verl_default, ajet_default, _self_]
"""


def conforms(document: object, schema: str) -> None:
    jsonschema.validate(document, json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))


def test_the_report_has_what_the_files_say(lab: Lab) -> None:
    blueprint = lab.blueprint(LEARNS)
    (lab.path / "code one" / "x.yaml").write_text(JOB)
    assert lab.run("start", blueprint, "--observe", "30s").code == 0
    directory = lab.result()
    refused = lab.run("finish", directory, "--json")
    assert (refused.code, refused.json["finished"]) == (1, False)
    answer = lab.run("collect", directory, "--json")
    assert answer.code == 0, answer.err
    conforms(answer.json, "run-collect")
    report = json.loads((directory / "report.json").read_text())
    conforms(report, "run-report")
    assert report["steps"] == {"count": 30, "first": 1, "last": 30, "total": None, "median_seconds": None}
    reward = next(row for row in report["metrics"] if row["key"] == "critic/rewards/mean")
    assert (reward["first"], reward["last"]) == (pytest.approx(0.12), pytest.approx(0.7))
    assert [row["task_pass_rate@1"] for row in report["validation"]] == [0.5, pytest.approx(0.6)]
    assert {row["key"]: (row["value"], row["default"]) for row in report["config_diff"]}[
        "ajet.data.train_batch_size"
    ] == (24, 32)
    assert report["versions"]["python"]
    header, *rows = (directory / "metrics.csv").read_text().splitlines()
    assert header == "step,critic/rewards/mean,actor/entropy"
    assert len(rows) == 30
    text = (directory / "report.md").read_text()
    assert "| ajet.data.train_batch_size | 24 | 32 |" in text
    assert "![curves](curves.png)" in text
    done = lab.run("finish", directory, "--json")
    assert (done.code, done.json["finished"]) == (0, True)
    assert json.loads((directory / "finish.flag").read_text())["state"] == "finished"
    assert "no server" in lab.tmux("list-sessions").stderr


def test_a_failed_run_is_tried_again_with_a_diary_and_closed_only_when_told(lab: Lab) -> None:
    directory = lab.start("step(1)\nif not os.path.exists('mended'): sys.exit('Killed')")
    lab.ended(directory)
    lab.run("collect", directory)
    assert lab.run("finish", directory).code == 1
    (lab.path / "code one" / "mended").touch()
    answer = lab.run(
        "attempt", directory, "--tried", "mended it", "--why", "it was broken", "--observe", "30s", "--json"
    )
    assert (answer.code, answer.json["state"], answer.json["attempt"]) == (0, "finished", 2)
    diary = lab.run("collect", directory) and (directory / "attempts.md").read_text()
    assert "tried next: mended it" in diary
    assert "cause 1: killed-137" in diary
    assert (directory / "attempts" / "1" / "console.log").exists()
    assert "mended it" in (directory / "report.md").read_text()
    assert lab.run("finish", directory).code == 0


def test_attempt_uses_a_changed_blueprint_in_the_same_directory(lab: Lab) -> None:
    directory = lab.start("sys.exit(1)")
    lab.ended(directory)
    other = lab.blueprint("step(1)", "other")
    answer = lab.run("attempt", directory, "--tried", "other code", "--blueprint", other, "--observe", "30s", "--json")
    assert (answer.json["state"], answer.json["dir"]) == ("finished", str(directory))


def test_attempt_of_a_living_run_is_refused(lab: Lab) -> None:
    directory = lab.start("step(1); time.sleep(600)")
    answer = lab.run("attempt", directory, "--tried", "impatience")
    assert answer.code == 1
    assert "stop" in answer.err
    assert not (directory / "attempts.md").exists()


def series(function: object, size: int = 60) -> list[tuple[int, float]]:
    return [(step, function(step)) for step in range(1, size + 1)]  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_flat_and_a_trend_in_noise_is_not(seed: int) -> None:
    rng = random.Random(seed)
    noise = series(lambda _: 0.5 + rng.gauss(0, 0.02))
    assert trend("r", noise, window=40, alpha=0.001, least_change=0.02).verdict == "flat"
    rises = series(lambda step: 0.3 + 0.004 * step + rng.gauss(0, 0.02))
    assert trend("r", rises, window=40, alpha=0.05, least_change=0.02).verdict == "rising"
    falls = [(step, -value) for step, value in rises]
    assert trend("r", falls, window=40, alpha=0.05, least_change=0.02).verdict == "falling"


def test_a_curve_that_has_flattened_is_flat_over_its_window() -> None:
    curve = series(lambda step: 1 - math.exp(-step / 5), 80)
    assert trend("r", curve, window=40, alpha=0.05, least_change=0.02).verdict == "flat"
    assert trend("r", curve[:10], window=40, alpha=0.05, least_change=0.02).verdict == "rising"


def test_mann_kendall_agrees_with_a_worked_example() -> None:
    values = [23, 24, 29, 6, 29, 24, 34, 21, 34, 32]  # S by hand: 5+3+0+6+1+2-2+2-1 = 16; ties 24, 29, 34
    found = trend("r", list(enumerate(values)), window=10, alpha=0.05, least_change=0.0)
    assert found.tau == pytest.approx(16 / 45)
    deviation = math.sqrt((10 * 9 * 25 - 3 * 2 * 1 * 9) / 18)
    assert found.p_value == pytest.approx(math.erfc(15 / deviation / math.sqrt(2)))


def test_too_few_points_are_unknown_and_nan_is_passed_over() -> None:
    points = [(step, math.nan if step % 2 else 0.5) for step in range(1, 14)]
    assert trend("r", points, window=40, alpha=0.05, least_change=0.02).verdict == "unknown"


def test_the_validation_file_is_python_and_not_markdown(tmp_path: Path) -> None:
    path = tmp_path / "val.md"
    path.write_text(
        "{'global_steps': 5, 'mean_reward': np.float64(0.25), 'bad': nan}\nnot a dict\n{'broken': \n__import__('os')\n"
    )
    assert validation_table(path) == [{"global_steps": 5, "mean_reward": 0.25}]


def test_curves_of_several_runs_in_one_picture(lab: Lab) -> None:
    for name, values in (("a", (0.1, 0.5)), ("b", (0.3, 0.2))):
        text = "".join(f"step:{n} - critic/rewards/mean:{value}\n" for n, value in enumerate(values, 1))
        (lab.path / f"{name}.log").write_text(text)
    answer = lab.script("curves", "a.log", "b.log", "--out", "both.png", "--json")
    assert answer.code == 0, answer.err
    conforms(answer.json, "run-curves")
    assert (lab.path / "both.png").read_bytes().startswith(b"\x89PNG")
    text = lab.script("curves", "a.log", "b.log").out
    assert "0.1 -> 0.5  a" in text
    assert "▁█" in text
