"""Fault drills: each way in which a run can go wrong, in a real tmux, with the verdict expected."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillpack.runs.process import Identity
from tests.runs.conftest import Lab, until

GOES_ON = """
for n in range(1, 10_000):
    step(n)
    time.sleep(0.1)
"""


def has_step(directory: Path) -> bool:
    return "step:2" in (directory / "console.log").read_text()


def causes(lab: Lab, directory: Path) -> list[str]:
    return [cause["id"] for cause in lab.run("watch", directory, "--json").json["causes"]]


def test_a_run_that_ends_well_is_finished_and_everything_is_in_the_log(lab: Lab) -> None:
    directory = lab.start("print('first byte'); step(1); step(2); print('last byte', end='')")
    lab.ended(directory)
    answer = lab.run("watch", directory, "--json")
    assert answer.code == 0
    assert answer.json["state"] == "finished"
    log = (directory / "console.log").read_text()
    assert log.startswith("first byte")
    assert log.endswith("last byte")
    assert (directory / "exit_code").read_text() == "0\n"


def test_out_of_memory_text_is_told_as_the_cause(lab: Lab) -> None:
    directory = lab.start("""
    step(1)
    print("  File trainer.py, line 5, in update_actor")
    print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.")
    for _ in range(64):
        print("[rank3]:[E] ProcessGroupNCCL.cpp:616 Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)")
    sys.exit(1)
    """)
    lab.ended(directory)
    answer = lab.run("watch", directory, "--json")
    assert answer.code == 1
    assert answer.json["state"] == "failed"
    assert answer.json["causes"][0]["id"] == "gpu-oom-train"


def test_exit_137_without_a_word_is_told_as_a_kill(lab: Lab) -> None:
    directory = lab.start("step(1); os.kill(os.getpid(), signal.SIGKILL)")
    record = lab.ended(directory)
    assert record["exit_code"] == 137
    assert record["parts"][0]["signal"] == "SIGKILL"
    assert causes(lab, directory) == ["killed-137"]


def test_exit_137_out_of_a_script_counts_the_same(lab: Lab) -> None:
    directory = lab.start("step(1); sys.exit(137)", command="true\npython train.py\nexit $?")
    assert lab.ended(directory)["parts"][0]["signal"] == "SIGKILL"
    assert causes(lab, directory) == ["killed-137"]


def test_a_hang_is_told_while_it_lasts(lab: Lab) -> None:
    directory = lab.start("step(1); time.sleep(600)")
    until(lambda: "step:1" in (directory / "console.log").read_text(), "the step")
    lab.run("watch", directory, "--for", "1s")  # the first step is no news any more
    answer = lab.run("watch", directory, "--for", "20s", "--silence-after", "3s", "--json")
    assert answer.code == 4
    assert answer.json["verdict"] == "hung"
    assert [event["event"] for event in answer.json["events"]] == ["silent"]
    assert answer.json["next"]["do"] == "triage"


def test_a_first_step_that_never_comes_is_told(lab: Lab) -> None:
    directory = lab.start(
        "print('Started a local Ray instance.'); time.sleep(600)", "one", "--first-step-timeout", "2s"
    )
    answer = lab.run("watch", directory, "--for", "20s", "--json")
    assert answer.json["verdict"] == "hung"
    assert answer.json["causes"][0]["id"] == "ray-boot-stuck"


def test_max_time_ends_the_whole_tree(lab: Lab) -> None:
    directory = lab.start(
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # deaf to TERM, as a wedged trainer is
        orphan = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
        orphan += "; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", orphan], start_new_session=True)
        while True:
            step(1)
            time.sleep(0.1)
        """,
        max_time="3s",
    )
    pid_file = lab.path / "code one" / "pid"
    until(pid_file.exists, "the orphan")
    orphan = Identity.of(int(pid_file.read_text()))
    assert orphan
    record = lab.ended(directory)
    assert record["outcome"] == "timed-out"
    assert not orphan.alive()
    answer = lab.run("watch", directory, "--json")
    assert (answer.code, answer.json["state"]) == (1, "timed-out")
    assert 3 <= answer.json["seconds"] < 20


def test_a_launch_command_that_is_not_found_is_told_by_start_itself(lab: Lab) -> None:
    blueprint = lab.blueprint("", command="ajet-that-is-not-there --conf x.yaml")
    answer = lab.run("start", blueprint, "--observe", "20s", "--json")
    lab.result()
    assert answer.code == 1
    assert answer.json["exit_code"] == 127
    assert answer.json["causes"][0]["id"] == "command-not-found"


def test_a_dead_tmux_server_does_not_touch_the_run(lab: Lab) -> None:
    directory = lab.start(GOES_ON)
    until(lambda: has_step(directory), "steps")
    assert lab.tmux("kill-server").returncode == 0
    size = (directory / "console.log").stat().st_size
    until(lambda: (directory / "console.log").stat().st_size > size, "more output after tmux is gone")
    answer = lab.run("status", directory, "--json")
    assert (answer.code, answer.json["state"]) == (4, "running")
    resumed = lab.run("resume", directory, "--json").json
    assert resumed["window"] == "reopened"
    assert lab.tmux("has-session", "-t", f"={resumed['session']}").returncode == 0
    assert lab.run("stop", directory).code == 0
    assert lab.ended(directory)["outcome"] == "stopped"


def test_an_assistant_killed_between_start_and_watch_loses_nothing(lab: Lab) -> None:
    blueprint = lab.blueprint("step(1); time.sleep(1); step(2)")
    starter = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess; subprocess.run({_start_argv(blueprint)!r}); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, **lab.environment},
    )
    directory = lab.result()
    until(lambda: (directory / "run.json").exists() and lab.record(directory)["phase"] == "running", "the start")
    os.killpg(starter.pid, signal.SIGKILL)
    starter.wait()
    lab.ended(directory)
    answer = lab.run("watch", directory, "--json")
    assert (answer.code, answer.json["state"], answer.json["steps"]) == (0, "finished", 2)


def _start_argv(blueprint: Path) -> list[str]:
    from tests.runs.conftest import CLASSIC

    return [sys.executable, str(CLASSIC / "run.py"), "start", str(blueprint)]


def test_the_same_run_twice_is_refused(lab: Lab) -> None:
    directory = lab.start(GOES_ON)
    again = lab.run("start", lab.path / "one.md")
    assert again.code == 1
    assert "running already" in again.err
    lab.run("stop", directory)
    over = lab.run("start", lab.path / "one.md")
    assert over.code == 1
    assert "attempt" in over.err


def test_two_starts_at_once_make_one_run(lab: Lab) -> None:
    blueprint = lab.blueprint(GOES_ON)
    environment = {**os.environ, **lab.environment}
    starts = [
        subprocess.Popen(_start_argv(blueprint), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(3)
    ]
    codes = sorted(start.wait(timeout=30) for start in starts)
    directory = lab.result()
    assert codes == [0, 1, 1]
    assert len(lab.tmux("list-sessions").stdout.splitlines()) == 1
    lab.run("stop", directory)


def test_two_runs_at_once_do_not_touch_each_other(lab: Lab) -> None:
    first = lab.start(GOES_ON, "one")
    second = lab.start(GOES_ON, "two")
    until(lambda: has_step(first) and has_step(second), "both to step")
    both = lab.run("status", lab.path, "--json")
    assert both.code == 4
    assert sorted(run["state"] for run in both.json["runs"]) == ["running", "running"]
    lab.run("stop", first)
    assert lab.run("status", second, "--json").json["state"] == "running"
    assert len(lab.tmux("list-sessions").stdout.splitlines()) == 1
    lab.run("stop", second)


def test_a_supervisor_that_is_killed_leaves_a_run_that_is_known(lab: Lab) -> None:
    directory = lab.start(GOES_ON)
    until(lambda: has_step(directory), "steps")
    supervisor = Identity.from_json(lab.record(directory)["supervisor"])
    assert supervisor
    assert supervisor.signal(signal.SIGKILL)
    supervisor.wait(10)
    status = lab.run("status", directory, "--json").json
    assert (status["state"], status["supervised"]) == ("running", False)
    assert lab.run("stop", directory).code == 0
    assert lab.run("status", directory, "--json").json["state"] == "stopped"


def test_a_run_that_vanished_without_a_record_is_lost(lab: Lab) -> None:
    directory = lab.start(GOES_ON)
    until(lambda: has_step(directory), "steps")
    record = lab.record(directory)
    for who in (record["supervisor"], record["parts"][0]["process"]):
        identity = Identity.from_json(who)
        assert identity
        assert identity.signal(signal.SIGKILL)
        identity.wait(10)
    answer = lab.run("watch", directory, "--json")
    assert (answer.code, answer.json["state"]) == (1, "lost")


def test_a_pid_that_somebody_else_got_is_not_the_run(lab: Lab) -> None:
    directory = lab.start(GOES_ON)
    until(lambda: has_step(directory), "steps")
    lab.run("stop", directory)
    record = lab.record(directory)
    mine = Identity.of(os.getpid())
    assert mine
    reused = {**mine.as_json(), "start_tick": mine.start_tick - 1}
    record |= {"phase": "running", "supervisor": reused}
    record["parts"][0]["process"] = reused
    (directory / "run.json").write_text(json.dumps(record))
    assert lab.run("status", directory, "--json").json["state"] == "lost"


def test_a_launch_that_goes_into_the_background_is_named(lab: Lab) -> None:
    directory = lab.start("time.sleep(600)", command="nohup python train.py &")
    record = lab.ended(directory)
    assert record["left_behind"] >= 1
    assert record["survivors"] == []
    assert causes(lab, directory)[0] == "backgrounded"


def test_exit_0_without_a_training_step_is_a_failure(lab: Lab) -> None:
    directory = lab.start("print('Training completes!')")
    lab.ended(directory)
    answer = lab.run("watch", directory, "--json")
    assert (answer.code, answer.json["state"], answer.json["verdict"]) == (1, "failed", "no-training-step")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte: a tmpfs where one may be mounted, else a user namespace's own would be needed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_is_told_and_the_end_is_still_recorded(lab: Lab, small_disk: Path) -> None:
    (lab.path / "results").symlink_to(small_disk)
    directory = lab.start("""
    step(1)
    with open(os.environ["exp_result_dir"] + "/checkpoint", "wb") as file:
        while True:
            file.write(b"x" * 4096)
            file.flush()
    """)
    record = lab.ended(directory)
    assert record["disk_was_full"] is True
    assert record["exit_code"] == 1
    answer = lab.run("watch", directory, "--json")
    assert (answer.code, answer.json["state"]) == (1, "failed")
    assert answer.json["causes"][0]["id"] == "disk-full"


def test_the_callers_environment_arrives_and_its_keys_leave_no_trace(lab: Lab) -> None:
    """A tmux server that runs already would give the run its own, older environment."""
    lab.tmux("new-session", "-d", "-s", "older")
    secret = "sk-a-key-of-this-test"
    directory = lab.start("step(1); print(os.environ['MY_KEY'][::-1])", MY_KEY=secret)
    lab.ended(directory)
    assert secret[::-1] in (directory / "console.log").read_text()
    for path in directory.rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes(), path
    session = lab.record(directory)["session"]
    assert secret not in lab.tmux("show-environment", "-t", f"={session}").stdout


def test_a_file_size_limit_is_told(lab: Lab) -> None:
    """The limit of the shell stands in for a quota, which needs a file system made for it."""
    directory = lab.start(
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); step(1); open('big', 'wb').write(b'x' * 10_000_000)",
        command="ulimit -f 1000; python train.py",
    )
    lab.ended(directory)
    assert causes(lab, directory)[0] == "disk-quota"


def test_nothing_of_a_run_has_the_words_in_its_name_that_autokill_looks_for(lab: Lab) -> None:
    """AgentJet ends whatever has python, ray or vllm in its command line: not supervisor, tmux and window."""
    directory = lab.start(GOES_ON)
    until(lambda: has_step(directory), "steps")
    record = lab.record(directory)
    panes = lab.tmux("list-panes", "-a", "-F", "#{pane_pid} #{pid}").stdout.split()
    for pid in (record["supervisor"]["pid"], *panes):
        words = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").casefold()
        assert not [word for word in ("python", "ray", "vllm") if word in words], words
    lab.run("stop", directory)


SHIFTED_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long shift(void) { const char *f = getenv("CLOCK_JUMPED"); return f && access(f, F_OK) == 0 ? 864000 : 0; }
int clock_gettime(clockid_t id, struct timespec *t) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int r = real(id, t);
    if (id == CLOCK_REALTIME) t->tv_sec += shift();
    return r;
}
time_t time(time_t *t) { struct timespec s; clock_gettime(CLOCK_REALTIME, &s); if (t) *t = s.tv_sec; return s.tv_sec; }
int gettimeofday(struct timeval *t, void *z) {
    struct timespec s; clock_gettime(CLOCK_REALTIME, &s); t->tv_sec = s.tv_sec; t->tv_usec = s.tv_nsec / 1000; return 0;
}
"""


def test_a_jump_of_the_clock_changes_nothing(bare: Lab) -> None:
    """Ten days forward, for supervisor and scripts alike: no limit is reached, nothing looks silent or lost."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build the shifted clock with")
    source, library, jumped = (bare.path / name for name in ("clock.c", "clock.so", "jumped"))
    source.write_text(SHIFTED_CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    bare.environment |= {"LD_PRELOAD": str(library), "CLOCK_JUMPED": str(jumped)}
    directory = bare.start("step(1); step(2)\nwhile not os.path.exists('go'): time.sleep(0.05)\nstep(3)", max_time="1h")
    until(lambda: has_step(directory), "steps")
    bare.run("watch", directory, "--for", "1s")
    jumped.touch()
    seen = bare.script("run", "watch", directory, "--for", "2s", "--json")
    assert (seen.code, seen.json["state"], seen.json["verdict"]) == (4, "running", "healthy")
    assert seen.json["seconds"] < 60
    (bare.path / "code one" / "go").touch()
    assert bare.ended(directory)["outcome"] == "exited"
    final = bare.run("watch", directory, "--json")
    assert (final.code, final.json["state"]) == (0, "finished")
    assert final.json["seconds"] < 60


def test_without_tmux_everything_works_the_same(bare: Lab) -> None:
    directory = bare.start("step(1)")
    bare.ended(directory)
    answer = bare.run("watch", directory, "--json")
    assert (answer.code, answer.json["state"], answer.json["session"]) == (0, "finished", None)


def test_asking_for_tmux_where_there_is_none_is_unavailable(bare: Lab) -> None:
    answer = bare.run("start", bare.blueprint("step(1)"), "--tmux")
    assert answer.code == 3
    assert "--no-tmux" in answer.err
