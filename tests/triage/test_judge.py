"""Verdicts from several logs and from what is known beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillpack.triage.facts import Facts
from skillpack.triage.judge import Verdict, judge
from skillpack.triage.scan import scan_log

STEP = "step:{} - critic/rewards/mean:{} - actor/entropy:{} - timing_s/step:100.0\n"
OOM = "  File x, in update_actor\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"
REFUSED = "httpx.ConnectError: [Errno 111] Connection refused\n"


def verdict(folder: Path, facts: Facts, **logs: str) -> Verdict:
    scans = {}
    for name, text in logs.items():
        path = folder / f"{name}.log"
        path.write_text(text)
        scans[name] = scan_log(path)
    return judge(scans, facts, lambda _: None)


def ids(found: Verdict) -> list[Any]:
    return [cause["id"] for cause in found.causes]


def test_the_log_of_the_part_that_died_first_is_believed_first(tmp_path: Path) -> None:
    server = "".join(STEP.format(n, 0.5, 0.6) for n in range(50)) + OOM
    facts = Facts(state="failed", died=("server", "client"), ended=True)
    found = verdict(tmp_path, facts, client=REFUSED, server=server)
    assert ids(found) == ["gpu-oom-train", "swarm-unreachable"]
    facts = Facts(state="failed", died=("client", "server"), ended=True)
    assert ids(verdict(tmp_path, facts, client=REFUSED, server=server))[0] == "swarm-unreachable"


def test_an_error_that_a_step_followed_is_no_cause(tmp_path: Path) -> None:
    found = verdict(tmp_path, Facts(state="running", silent=1.0), train=OOM + STEP.format(1, 0.5, 0.6))
    assert found.well
    assert [one["id"] for one in found.survived] == ["gpu-oom-train"]


def test_a_root_just_before_the_last_step_explains_an_end_that_nothing_else_does(tmp_path: Path) -> None:
    log = STEP.format(1, 0.5, 0.6) + OOM + STEP.format(2, 0.5, 0.6) + "ray.exceptions.ActorDiedError: The actor died\n"
    found = verdict(tmp_path, Facts(state="failed", ended=True, exit_code=1), train=log)
    assert ids(found) == ["gpu-oom-train"]
    assert [one["id"] for one in found.followed_by] == ["ray-actor-died"]


def test_a_hang_is_three_median_steps_of_silence(tmp_path: Path) -> None:
    log = "".join(STEP.format(n, 0.5, 0.6) for n in range(1, 6))
    assert verdict(tmp_path, Facts(state="running", silent=299.0), train=log).verdict == "healthy"
    found = verdict(tmp_path, Facts(state="running", silent=301.0), train=log)
    assert found.verdict == "hung"
    assert "300 s (3 x the median step of 100 s" in found.why


def test_a_hang_names_the_warning_that_explains_it(tmp_path: Path) -> None:
    log = STEP.format(1, 0.5, 0.6) + "Total cached episodes [9999] is going to exceed the max cached episodes\n"
    found = verdict(tmp_path, Facts(state="running", silent=9000.0), server=log)
    assert (found.verdict, ids(found)) == ("hung", ["episodes-cached"])


def test_health_tells_window_and_threshold(tmp_path: Path) -> None:
    log = "".join(STEP.format(n, 0.5, 0.001) for n in range(1, 30))
    found = verdict(tmp_path, Facts(state="running", silent=1.0), train=log)
    finding = next(one for one in found.health if one.id == "entropy-collapse")
    assert found.verdict == "unhealthy"
    assert (finding.first_step, finding.last_step, finding.threshold) == (20, 29, "< 0.02")
    assert finding.seen == "mean 0.001"


def test_a_single_nan_is_told_and_too_few_steps_say_nothing_else(tmp_path: Path) -> None:
    log = STEP.format(1, "nan", 0.001)
    found = verdict(tmp_path, Facts(state="running", silent=1.0), train=log)
    assert [one.id for one in found.health] == ["nan"]
