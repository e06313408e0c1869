"""What a start or another attempt must refuse, and that a refusal leaves nothing behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.runs.conftest import Lab, until


def finished(lab: Lab) -> Path:
    """Return the directory of a run that was finished, with its report."""
    directory = lab.start("step(1); step(2)")
    lab.ended(directory)
    assert lab.run("collect", directory).code == 0
    assert lab.run("finish", directory).code == 0
    return directory


def files(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def test_a_finished_run_is_not_tried_again(lab: Lab) -> None:
    directory = finished(lab)
    before = files(directory)
    again = lab.run("start", lab.path / "one.md")
    assert again.code == 1
    assert "attempt" not in again.err
    assert "report.md" in again.err
    refused = lab.run("attempt", directory, "--tried", "x", "--why", "y")
    assert (refused.code, "--force" in refused.err) == (1, True)
    assert files(directory) == before


def test_a_run_that_finished_but_was_not_collected_is_to_be_collected(lab: Lab) -> None:
    directory = lab.start("step(1)")
    lab.ended(directory)
    refused = lab.run("start", lab.path / "one.md")
    assert (refused.code, f"run.py collect {directory}" in refused.err) == (1, True)


def test_a_run_that_was_closed_as_failed_is_not_tried_again(lab: Lab) -> None:
    directory = lab.start("sys.exit(1)")
    lab.ended(directory)
    assert lab.run("finish", directory, "--failed").code == 0
    assert lab.run("attempt", directory, "--tried", "x").code == 1
    assert lab.run("resume", directory, "--json").json["todo"] == [f"nothing: {directory}/finish.flag closes it"]
    swept = lab.script("sweep", "run", lab.path / "one.md", "--no-tmux", "--json")
    assert swept.code == 1
    assert lab.record(directory)["attempt"] == 1


def test_a_forced_attempt_puts_report_and_flag_aside(lab: Lab) -> None:
    directory = finished(lab)
    before = files(directory)
    answer = lab.run("attempt", directory, "--tried", "x", "--force", "--observe", "0")
    assert answer.code == 0, answer.err
    lab.ended(directory)
    aside = files(directory / "attempts" / "1")
    for name in ("finish.flag", "report.md", "report.json", "metrics.csv", "curves.png", "run.json"):
        assert aside[name] == before[name]
        assert name == "run.json" or not (directory / name).exists()


def test_what_refuses_an_attempt_is_not_written_into_the_diary(lab: Lab) -> None:
    directory = lab.start("sys.exit(1)")
    lab.ended(directory)
    refused = lab.run("attempt", directory, "--tried", "x", "--tmux", PATH=str(lab.path))
    assert refused.code == 3
    assert not (directory / "attempts.md").exists()
    assert (directory / "run.json").exists()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--gpus", "abc"), 2, "'abc' is no GPU"),
        (("--gpus", "0,0"), 2, "named twice"),
        (("--gpus", "7"), 2, "there is no GPU 7"),
        (("--on", "foo"), 3, ""),
        (("--on", "http://127.0.0.1:1"), 3, ""),
        (("--host", "user@gpu1"), 3, "ssh"),
    ],
)
def test_a_place_that_is_not_there_leaves_no_run(lab: Lab, options: tuple[str, ...], code: int, words: str) -> None:
    tools = lab.path / "tools"
    tools.mkdir()
    for name, text in (("nvidia-smi", "echo 0, 81559, 4"), ("ssh", "echo ssh: no route >&2; exit 255")):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    blueprint = lab.blueprint("step(1)")
    answer = lab.run("start", blueprint, *options, PATH=f"{tools}:{os.environ['PATH']}", timeout=120)
    assert (answer.code, words in answer.err) == (code, True), answer.err
    assert not lab.result().exists()


def test_a_gpu_that_another_run_leases_leaves_no_run(lab: Lab) -> None:
    gpu = f"GPU-{os.getpid():x}"
    first = lab.start("step(1)\nwhile True: time.sleep(0.1)", "one", "--gpus", gpu)
    answer = lab.run("start", lab.blueprint("step(1)", "two"), "--gpus", gpu)
    assert (answer.code, "leased" in answer.err) == (1, True)
    assert not lab.result("two").exists()
    lab.run("stop", first)


def test_a_record_of_another_program_is_no_run(lab: Lab) -> None:
    directory = lab.start("step(1)")
    lab.ended(directory)
    foreign = lab.path / "results" / "wandb"
    foreign.mkdir()
    (foreign / "run.json").write_text('{"name": "wandb"}')
    listed = lab.run("status", lab.path / "results", "--json")
    assert [run["dir"] for run in listed.json["runs"]] == [str(directory)]
    for verb in ("status", "watch", "stop", "collect", "resume", "finish"):
        answer = lab.run(verb, foreign)
        assert (answer.code, "is not the record of a run" in answer.err) == (2, True), verb
    (foreign / "train.log").write_text("step:1 - critic/rewards/mean:0.5\n")
    assert lab.script("triage", foreign, "--json").json["log"] == str(foreign / "train.log")


def test_one_damaged_record_does_not_hide_the_others(lab: Lab) -> None:
    directory = lab.start("step(1)")
    lab.ended(directory)
    damaged = lab.path / "results" / "damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text('{"half": ')
    (damaged / "blueprint.md").write_text("exp_purpose: x")
    listed = lab.run("status", lab.path / "results", "--json")
    assert [run["dir"] for run in listed.json["runs"]] == [str(directory)]
    assert f"{damaged}/run.json is damaged" in listed.err


def test_the_next_command_can_be_copied_whatever_the_path(lab: Lab) -> None:
    directory = lab.start("step(1)", "a b's")
    lab.ended(directory)
    done = lab.run("watch", directory, "--json").json["next"]["command"]
    assert json.loads(lab.script("run", *shell_words(done)[1:], "--json").out)["dir"] == str(directory)


def shell_words(command: str) -> list[str]:
    import shlex

    return shlex.split(command)


def test_output_behind_the_last_heartbeat_is_no_silence(lab: Lab) -> None:
    """The heart beats every 2 s; what a log has gained since then must count at once."""
    directory = lab.start("step(1)\nwhile True: time.sleep(0.1)")
    until(lambda: "step:1" in (directory / "console.log").read_text(), "a step")
    beat = directory / "heartbeat.json"
    until(lambda: beat.exists() and json.loads(beat.read_text())["log_bytes"], "a heartbeat")
    stale = json.loads(beat.read_text()) | {"last_output_monotonic": 0.0, "log_bytes": 0}
    from skillpack.runs.status import Status

    status = Status("running", "", {}, heartbeat=stale)
    assert (status.silent(0) or 0) > 1
    assert (status.silent(10) or 0) < 30
    status.supervised = False
    assert status.silent(10) is None
    lab.run("stop", directory)
