"""Metric lines of a console log, clean and as they really arrive."""

import math
from pathlib import Path

import pytest

from skillpack.metrics import iter_steps, read_console

RAY = "\x1b[36m(TaskRunner pid=4711)\x1b[0m "
KEYS = {f"critic/name_{i}@4-all-pass/mean": i + 0.125 for i in range(30)}
LINE = "step:7 - " + " - ".join(f"{key}:np.float64({value})" for key, value in KEYS.items())


def test_a_line_as_verl_prints_it() -> None:
    line = (
        "step:12 - actor/pg_loss:-0.03 - actor/lr:1e-06 - num_pass_n_tasks(pass@4):3 - task_pass_rate@4-all-pass:0.5"
        " - training/global_step:12 - timing_s/step:np.float64(98.5) - perf/x:np.int32(7) - flag:True"
    )
    assert list(iter_steps([line])) == [
        (
            12,
            {
                "actor/pg_loss": -0.03, "actor/lr": 1e-06, "num_pass_n_tasks(pass@4)": 3.0,
                "task_pass_rate@4-all-pass": 0.5, "training/global_step": 12.0, "timing_s/step": 98.5, "perf/x": 7.0,
                "flag": 1.0,
            },
        )
    ]  # fmt: skip


def test_nan_and_infinity_are_kept() -> None:
    ((_, values),) = iter_steps(
        ["step:1 - a:nan - b:inf - c:-inf - d:np.float64(nan) - e:tensor(0.5, device='cuda:0')"]
    )
    assert math.isnan(values["a"])
    assert math.isnan(values["d"])
    assert (values["b"], values["c"], values["e"]) == (math.inf, -math.inf, 0.5)


def test_prefixes_colours_progress_bars_and_tails() -> None:
    lines = [
        RAY + "step:1 - a:1.5\n",
        "(TaskRunner pid=4711, ip=10.0.0.7) step:2 - a:2.5 [repeated 3x across cluster]\n",
        "Training:  3%|#  | 3/100\rTraining:  4%|#  | 4/100step:3 - a:3.5 - b:2(WorkerDict pid=5) loading\n",
        "INFO 12:00:01 step:4 - a:4.5\r\n",
    ]
    assert list(iter_steps(lines)) == [(1, {"a": 1.5}), (2, {"a": 2.5}), (3, {"a": 3.5, "b": 2.0}), (4, {"a": 4.5})]


def test_two_lines_that_ran_into_each_other() -> None:
    assert list(iter_steps(["step:1 - a:1 - b:2step:2 - a:3"])) == [(1, {"a": 1.0, "b": 2.0}), (2, {"a": 3.0})]


def test_keys_that_end_like_the_head_of_a_line() -> None:
    assert list(iter_steps(["global_step:5 - x", "step:1 - training/global_step:5 - timing_s/step:3 - z:1"])) == [
        (1, {"training/global_step": 5.0, "timing_s/step": 3.0, "z": 1.0})
    ]


@pytest.mark.parametrize("width", range(40, 200, 7))
def test_a_line_broken_at_the_width_of_a_terminal(width: int) -> None:
    text = "(TaskRunner pid=4711) " + LINE
    pieces = [text[start : start + width] for start in range(0, len(text), width)]
    assert list(iter_steps(pieces)) == [(7, KEYS)]


@pytest.mark.parametrize("width", range(60, 200, 7))
def test_other_writers_between_the_pieces(width: int) -> None:
    text = "(TaskRunner pid=4711) " + LINE
    lines = []
    for start in range(0, len(text), width):
        lines += [text[start : start + width], "(WorkerDict pid=9) INFO loading weights", "saved: 5"]
    assert list(iter_steps(lines)) == [(7, KEYS)]


def test_lines_behind_a_whole_one_are_not_its_rest() -> None:
    lines = ["step:1 - a:0.12", "345", "saved:5", "loss: 0.5", "b - c:1", "step:2 - a:0.5"]
    assert list(iter_steps(lines)) == [(1, {"a": 0.12}), (2, {"a": 0.5})]


def test_a_cut_item_is_left_out() -> None:
    assert list(iter_steps(["step:1 - a:1 - b:np.float64(0.", "and nothing more"])) == [(1, {"a": 1.0})]
    assert list(iter_steps(["step:1 - a:1 - name:qwen - b:2"])) == [(1, {"a": 1.0, "b": 2.0})]


@pytest.mark.parametrize(
    "lines",
    [
        ["step:1 - " * 20_000],
        ["step:1 - " + " - " * 200_000],
        ["step:1 - a:1 - b", *["y" * 16] * 100_000],
        ["step:1 - a/" + "b" * 30, *["c" * 41] * 20_000],
        ["step:1 - a:" + "1" * 500_000],
    ],
)
def test_lines_that_would_take_for_ever(lines: list[str]) -> None:
    assert len(list(iter_steps(lines))) <= 1


def test_no_metric_lines() -> None:
    beyond_int64 = "step:99999999999999999999 - a:1.0"
    assert list(iter_steps(["hello", "step:", "step:1", "step: 1 - a: 2", beyond_int64, ""])) == []


def test_a_frame_merges_validation_and_resumed_steps(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_bytes(
        b"step:0 - val/reward:0.1\nstep:1 - a:1\nstep:2 - val/reward:0.2\nstep:2 - a:2 - val/reward:0.2\n"
        b"\xff\xfe broken bytes\nstep:1 - a:10\nstep:3 - a:3\n"
    )
    frame = read_console(log)
    assert list(frame.index) == [0, 1, 2, 3]
    assert frame.index.name == "step"
    assert frame["a"].tolist()[1:] == [10.0, 2.0, 3.0]
    assert frame["val/reward"][2] == 0.2
    assert math.isnan(frame["a"][0])
    assert frame.attrs["repeated"] == 1
    assert read_console(["nothing"]).empty
