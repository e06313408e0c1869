"""Runs on another machine by ssh. The ssh here is a stub that runs the line on this machine, as sshd's shell would."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpack.runs import process
from skillpack.runs.process import Identity
from tests.runs.conftest import Lab, until

STUB = """#!/bin/sh
# options come first, then the host, then one line for its shell; the far side does not have our environment
while [ "$1" = "-o" ]; do shift 2; done
echo "$1" >> "$SSH_STUB_LOG"
if [ "$1" = "user@breaks" ]; then case "$2" in true) ;; *) echo "Connection to breaks closed." >&2; exit 255 ;; esac; fi
[ "$1" = "user@down" ] && { echo "ssh: connect to host down port 22: Connection refused" >&2; exit 255; }
shift
exec env -i HOME="$HOME" PATH=/usr/bin:/bin sh -c "$*"
"""


@pytest.fixture
def far(lab: Lab) -> Lab:
    folder = lab.path / "stubs"
    folder.mkdir()
    (folder / "ssh").write_text(STUB)
    (folder / "ssh").chmod(0o755)
    import os

    lab.environment |= {"PATH": f"{folder}:{os.environ['PATH']}", "SSH_STUB_LOG": str(lab.path / "hosts")}
    return lab


def remote(directory: Path, lab: Lab) -> list[Identity]:
    return [
        one
        for one in process.carrying("AJET_RUN_ID", lab.record(directory)["id"])
        if "train.py" in Path(f"/proc/{one.pid}/cmdline").read_text().replace("\0", " ")
        and not Path(f"/proc/{one.pid}/cmdline").read_text().startswith(("ssh", "/bin/sh", "setsid", "sh", "bash"))
    ]


def test_a_run_over_there_is_recorded_here(far: Lab) -> None:
    far.environment["SECRET_KEY"] = "not for the far side"
    directory = far.start("step(1); print('secret', os.environ.get('SECRET_KEY'))", "one", "--host", "user@gpu1")
    record = far.ended(directory)
    assert (record["outcome"], record["exit_code"]) == ("exited", 0)
    assert far.run("watch", directory).code == 0
    assert "secret None" in (directory / "console.log").read_text()
    assert set((far.path / "hosts").read_text().split()) == {"user@gpu1"}
    assert (record["backend"]["kind"], record["backend"]["address"]) == ("ssh", "user@gpu1")


def test_the_exit_code_comes_over(far: Lab) -> None:
    directory = far.start("step(1); sys.exit(7)", "one", "--host", "user@gpu1")
    assert far.ended(directory)["exit_code"] == 7


def test_stop_ends_the_process_over_there(far: Lab) -> None:
    directory = far.start("while True: step(1); time.sleep(0.1)", "one", "--host", "user@gpu1")
    until(lambda: "step:1" in (directory / "console.log").read_text(), "a step")
    running = remote(directory, far)
    assert running
    assert far.run("stop", directory).code == 0
    assert not any(one.alive() for one in running)


def test_a_broken_connection_is_lost_and_not_failed(far: Lab) -> None:
    directory = far.start("step(1)", "one", "--host", "user@breaks")
    far.ended(directory)
    answer = far.run("watch", directory, "--json")
    assert (answer.code, answer.json["state"]) == (1, "lost")
    assert "connection" in answer.json["reason"]


def test_a_host_that_is_not_reached_leaves_no_run(far: Lab) -> None:
    blueprint = far.blueprint("step(1)")
    answer = far.run("start", blueprint, "--host", "user@down")
    assert answer.code == 3
    assert "Connection refused" in answer.err
    assert not far.result().exists()


def test_a_server_over_there_needs_an_address(far: Lab) -> None:
    blueprint = far.blueprint("step(1)")
    blueprint.write_text(blueprint.read_text() + "# exp_server_command\najet-swarm start --swarm-port 10099\n")
    answer = far.run("start", blueprint, "--host", "user@gpu1.invalid")
    assert (answer.code, "--server-url http://HOST:10099" in answer.err) == (2, True)
    assert not far.result().exists()


def test_the_time_limit_holds_over_there(far: Lab) -> None:
    directory = far.start("step(1); time.sleep(600)", "one", "--host", "user@gpu1", max_time="8s")
    until(lambda: remote(directory, far), "the remote process")
    running = remote(directory, far)
    assert far.ended(directory)["outcome"] == "timed-out"
    for one in running:
        one.wait(5)
    assert not any(one.alive() for one in running)


def test_lint_looks_over_there(far: Lab) -> None:
    blueprint = far.blueprint("step(1)")
    (far.path / "code one" / "x.yaml").write_text("ajet: {}")
    there = far.script("blueprint", "lint", blueprint, "--host", "user@gpu1", "--json")
    assert there.code == 0, there.out
    down = far.script("blueprint", "lint", blueprint, "--host", "user@down", "--json")
    assert down.code == 1
    assert "Connection refused" in down.out


def test_the_next_attempt_runs_where_the_last_one_did(far: Lab) -> None:
    directory = far.start(
        "step(1); sys.exit(1)", "one", "--host", "user@gpu1", "--no-tmux", "--first-step-timeout", "77s"
    )
    far.ended(directory)
    assert far.run("attempt", directory, "--tried", "the same", "--kill-after", "3s", "--observe", "0").code == 0
    record = far.ended(directory)
    assert (record["attempt"], record["backend"]["address"], record["session"]) == (2, "user@gpu1", None)
    assert (record["spec"]["first_step_timeout"], record["spec"]["kill_after"]) == (77, 3)
