"""The triage script: exit codes, JSON, following a log, remedies with the run's own numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from skillpack.pack import SCHEMAS

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(__file__).parent / "corpus"
STEP = "step:{} - critic/rewards/mean:0.5 - timing_s/step:100.0\n"


def triage(*arguments: str | Path) -> tuple[int, Any, str]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "skills/run-swarm/scripts/triage.py"), *map(str, arguments), "--json"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    document = json.loads(done.stdout) if done.stdout else None
    if document:
        jsonschema.validate(document, json.loads((SCHEMAS / "triage-report.schema.json").read_text()))
    return done.returncode, document, done.stderr


def test_a_failing_log_is_1_and_valid_json() -> None:
    code, document, _ = triage(CORPUS / "failing" / "oom_in_update.log")
    assert code == 1
    assert document["causes"][0]["id"] == "gpu-oom-train"
    assert [one["id"] for one in document["followed_by"]] == ["ray-task-error", "nccl-watchdog", "nccl-abort"]


def test_a_healthy_log_is_0(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_bytes((CORPUS / "healthy" / "caught_traceback.log").read_bytes())
    with log.open("ab"):  # somebody writes to it
        code, document, _ = triage(log)
    assert (code, document["verdict"], document["causes"]) == (0, "healthy", [])
    assert [one["id"] for one in document["survived"]] == ["uncaught-exception"]


def test_remedies_have_values_from_the_runs_configuration(tmp_path: Path) -> None:
    config = tmp_path / "job.yaml"
    config.write_text("ajet:\n  rollout: {gpu_memory_utilization: 0.85, max_num_seqs: 64}\n")
    _, document, _ = triage(CORPUS / "failing" / "oom_in_rollout.log", "--config", config)
    remedy = document["causes"][0]["remedy"]
    assert remedy[0] == {
        "key": "ajet.rollout.gpu_memory_utilization",
        "current": 0.85,
        "value": 0.75,
        "why": "the pool must fit beside what the trainer keeps",
    }
    assert (remedy[1]["current"], remedy[1]["value"]) == (64, 32)


def test_without_a_configuration_no_value_is_invented() -> None:
    _, document, _ = triage(CORPUS / "failing" / "oom_in_rollout.log")
    assert [one["value"] for one in document["causes"][0]["remedy"]] == [None, None, None]


def test_silence_of_a_log_that_is_written_is_judged_against_three_median_steps(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_text("".join(STEP.format(n) for n in range(1, 6)))
    with log.open("ab"):
        for age, verdict in ((250, "healthy"), (350, "hung")):
            os.utime(log, (time.time() - age, time.time() - age))
            assert triage(log)[1]["verdict"] == verdict


def test_a_log_that_just_stops_is_lost(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_text(STEP.format(1))
    with log.open("rb"):  # a reader, such as tail, does not keep it alive
        code, document, _ = triage(log)
    assert (code, document["verdict"]) == (1, "lost")
    assert "nobody writes to it" in document["why"]
    with log.open("ab"):
        assert triage(log)[1]["verdict"] == "healthy"
        assert triage(log, "--ended")[1]["verdict"] == "lost"


def test_following_returns_as_soon_as_something_is_wrong(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_text(STEP.format(1))
    writer = threading.Timer(1.5, lambda: log.write_text(STEP.format(1) + "Killed\n"))
    writer.start()
    code, document, _ = triage(log, "--follow", "--for", "3600")
    writer.join()
    assert (code, document["causes"][0]["id"]) == (1, "killed-137")


@pytest.mark.parametrize("content", ["", "\n\n", "hello\n"])
def test_a_log_with_nothing_in_it_is_no_failure_yet(tmp_path: Path, content: str) -> None:
    log = tmp_path / "console.log"
    log.write_text(content)
    with log.open("ab"):
        code, document, _ = triage(log)
    assert (code, document["verdict"]) == (0, "starting")


def test_what_is_no_log_is_bad_input(tmp_path: Path) -> None:
    code, _, error = triage(tmp_path / "nothing")
    assert code == 2
    assert "expected" in error


def test_a_folder_means_its_console_log(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("Killed\n")
    (tmp_path / "other.log").write_text("fine\n")
    assert triage(tmp_path)[1]["causes"][0]["id"] == "killed-137"


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 40])
def test_a_file_without_text_is_bad_input(tmp_path: Path, content: bytes) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(content)
    code, document, told = triage(log)
    assert (code, document) == (2, None)
    assert "no training log" in told


@pytest.mark.parametrize(
    "before", [b"\0" * 100_000 + b"half a line\n", "训练开始\n".encode(), b"\xff\xfe stray\n", b"\x1b[31m"]
)
def test_stray_bytes_make_no_log_unreadable(tmp_path: Path, before: bytes) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(before + STEP.format(1).encode())
    code, document, _ = triage(log)
    assert (code, document["steps"]["count"]) == (1, 1)


def test_the_log_that_is_judged_in_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "old.log").write_text("x\n")
    os.utime(tmp_path / "old.log", (1, 1))
    (tmp_path / "new.log").write_text(STEP.format(1))
    _, document, _ = triage(tmp_path)
    assert document["log"] == str(tmp_path / "new.log")
