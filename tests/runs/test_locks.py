"""Who holds a run or a GPU: looks that turn nobody away, and supervisors that come late."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from skillpack.blueprint.model import read_blueprint
from skillpack.runs import start
from skillpack.runs.gpus import leased, take_gpus
from skillpack.runs.handover import HandoverFailed
from skillpack.runs.rundir import RunDir, is_held, locked, take_lock
from tests.runs.conftest import ROOT, Lab


def test_who_looks_at_a_lock_turns_nobody_away_who_takes_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        threading.Timer(0.2, fcntl.flock, [look.fileno(), fcntl.LOCK_UN]).start()
        handle = take_lock(path)
    assert handle is not None
    assert is_held(path)
    assert take_lock(path) is None
    os.close(handle)
    assert not is_held(path)


def test_looks_do_not_take_each_other_for_a_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert leased("0,1") == ""
    for lease in take_gpus("0,1"):
        os.close(lease)
    (path,) = tmp_path.rglob("gpu-0.lock")
    with path.open() as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        assert leased("0,1") == ""
    leases = take_gpus("1")
    assert leased("0,1") == "GPU 1 is leased by another run"
    for lease in leases:
        os.close(lease)


def test_a_supervisor_that_comes_when_the_run_was_given_up_leaves(bare: Lab) -> None:
    directory = bare.start("step(1)")
    record = bare.ended(directory)
    supervise = "import os; from pathlib import Path; from skillpack.runs.supervisor import supervise; "
    late = [sys.executable, "-c", f"{supervise}supervise(Path.cwd(), dict(os.environ))"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(late, cwd=directory, env=environment, capture_output=True, text=True, timeout=60)
    assert "waits for no supervisor" in done.stderr
    assert bare.record(directory) == record


def test_a_start_whose_patience_ends_as_the_supervisor_comes_has_started(
    bare: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await_takeover = start._await_takeover

    def too_late(run: RunDir) -> None:
        await_takeover(run)
        raise HandoverFailed("the supervisor did not start")

    monkeypatch.setattr(start, "_await_takeover", too_late)
    blueprint = read_blueprint(bare.blueprint("step(1); time.sleep(600)"))
    directory = bare.result()
    status = start.start_run(blueprint, start.Options(tmux=False, observe_for=0.0))
    assert status.state == "running"
    assert bare.run("stop", directory).code == 0
    assert bare.record(directory)["outcome"] == "stopped"


def test_a_start_that_was_killed_half_way_can_be_tried_again(bare: Lab) -> None:
    directory = bare.start("step(1)")
    bare.ended(directory)
    run = RunDir(directory)
    run.update(phase="starting", supervisor=None)
    assert bare.run("attempt", directory, "--tried", "the same", "--observe", "0").code == 0
    bare.ended(directory)
    assert bare.record(directory)["attempt"] == 2
    with locked(run.path / ".supervisor.lock") as lock:
        assert lock is not None
