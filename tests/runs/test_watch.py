"""Watching: news is told once, to whichever session asks; quiet looks get longer; stop and status tell the truth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema

from skillpack.pack import SCHEMAS
from skillpack.runs.process import Identity, boot_id
from skillpack.runs.tmux import session_name
from tests.runs.conftest import Lab, until

TOLD_WHEN_ASKED = """
for n in range(1, 100):
    while not os.path.exists(f"go{n}"):
        time.sleep(0.02)
    if os.path.exists(f"say{n}"):
        print(open(f"say{n}").read(), flush=True)
    else:
        step(n)
"""


def look(lab: Lab, directory: Path, *options: str) -> Any:
    answer = lab.run("watch", directory, "--for", "1s", *options, "--json")
    jsonschema.validate(answer.json, json.loads((SCHEMAS / "run-watch.schema.json").read_text()))
    return answer.json


def go(lab: Lab, directory: Path, number: int, say: str = "") -> None:
    folder = lab.path / "code one"
    if say:
        (folder / f"say{number}").write_text(say)
    size = (directory / "console.log").stat().st_size
    (folder / f"go{number}").touch()
    until(lambda: (directory / "console.log").stat().st_size > size, "output")


def test_news_is_told_once_and_quiet_looks_get_longer(lab: Lab) -> None:
    directory = lab.start(TOLD_WHEN_ASKED)
    waits = [look(lab, directory)["next"]["wait_seconds"] for _ in range(3)]
    assert waits == [30, 60, 120]
    go(lab, directory, 1)
    first = look(lab, directory)
    assert [event["event"] for event in first["events"]] == ["first-step"]
    assert first["next"]["wait_seconds"] == 30
    assert look(lab, directory)["events"] == []
    go(lab, directory, 2)
    assert [event["event"] for event in look(lab, directory)["events"]] == ["step"]
    go(lab, directory, 3, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB")
    assert [event["event"] for event in look(lab, directory)["events"]] == ["signature"]
    assert look(lab, directory)["events"] == []
    go(lab, directory, 4, "step:4 - task_pass_rate@1:0.5 - mean_reward:0.5")
    assert "validation" in [event["event"] for event in look(lab, directory, "--steps", "0")["events"]]
    go(lab, directory, 5)
    assert look(lab, directory, "--steps", "0")["events"] == []
    lab.run("stop", directory, "--reason", "enough")
    ended = look(lab, directory)
    assert (ended["state"], ended["reason"], ended["next"]["do"]) == ("stopped", "enough", "triage")


def test_a_damaged_record_is_bad_input_and_no_traceback(lab: Lab) -> None:
    directory = lab.start("step(1)")
    lab.ended(directory)
    (directory / "run.json").write_text('{"half": ')
    answer = lab.run("status", directory)
    assert answer.code == 2
    assert "damaged" in answer.err
    (directory / "progress.json").write_text("[1, 2")
    assert lab.run("status", lab.path / "nothing").code == 2


def test_a_log_that_was_cut_is_read_anew(lab: Lab) -> None:
    directory = lab.start(TOLD_WHEN_ASKED)
    go(lab, directory, 1)
    look(lab, directory)
    (directory / "console.log").write_text("")
    go(lab, directory, 2, "anew")
    assert look(lab, directory)["steps"] == 0


def test_the_log_is_complete_where_the_scrollback_is_not(lab: Lab) -> None:
    directory = lab.start("for n in range(60_000): print(n)\nstep(1)")
    lab.ended(directory)
    lines = (directory / "console.log").read_text().splitlines()
    assert lines[:60_000] == [str(number) for number in range(60_000)]


def test_a_purpose_of_any_kind_makes_an_exact_session_name(lab: Lab) -> None:
    for number, purpose in enumerate(("a.b:c d", "看看学习率。", "", "=x@1 $(touch evil)", "x" * 300)):
        name = session_name(purpose, f"20260101-000000-abcde{number}")
        assert name.startswith("ajet_")
        assert name.endswith(f"_abcde{number}")
        assert lab.tmux("new-session", "-d", "-s", name).returncode == 0
        assert lab.tmux("has-session", "-t", f"={name}").returncode == 0


def test_an_identity_tells_a_process_from_a_later_one_with_its_pid() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = Identity.of(child.pid)
    assert identity
    assert identity.alive()
    assert Identity.from_json(identity.as_json()) == identity
    assert not Identity(identity.pid, identity.start_tick + 1, identity.boot).alive()
    assert not Identity(identity.pid, identity.start_tick, "another boot").signal(9)
    child.kill()
    assert identity.wait(10)
    child.wait()
    assert not identity.alive()
    assert Identity.of(os.getpid()).boot == boot_id()  # type: ignore[union-attr]
