"""capacity.py live --for: durations with those that had not ended, phases, steps, and who waited for whom."""

from __future__ import annotations

import json
import statistics
from typing import Any

import pytest

from skillpack.capacity.inputs import Inputs
from skillpack.capacity.live_watch import watched_report
from skillpack.capacity.observe import RunningEpisode, Snapshot
from skillpack.capacity.watch import Watch, durations, summarise, watch

from .helpers import ReleasedServer, answer_of, run_script

ROLLING, POST, SYNCING = "ENGINE.ROLLING", "ENGINE.ROLLING_POST", "ENGINE.WEIGHT_SYNCING"
CAPACITY = {"max_env_worker": 4, "num_repeat": 2, "train_batch_size": 4, "cap": 4, "slots": "documented"}


def look(status: str, running: int, *, waiting: int = 0, step: int = 1, done: int = 0, idle: float = 0.0) -> Snapshot:
    """Return one look at a server with ``running`` episodes of one client."""
    episodes = tuple(RunningEpisode(f"e{step}-{number}", "client", "", idle, 10.0, 1) for number in range(running))
    pool: dict[str, Any] = {
        "completed_episodes": done,
        "completed_task_target": 4,
        "task_expected_num_repeat": 2,
        "sample_collection_method": "rollout_until_finish_enough_episodes",
    }
    return Snapshot("reference", status, step, episodes, waiting, (), pool, CAPACITY)


def seen(*looks: tuple[float, Snapshot], ended: tuple[float, ...] = (), unended: tuple[float, ...] = ()) -> Watch:
    """Return a watch of the given looks."""
    return Watch(seconds=looks[-1][0], ended=list(ended), unended=list(unended), looks=list(looks))


def report_of(watched: Watch) -> dict[str, Any]:
    """Return the report of a watch."""
    return watched_report("http://x", watched, Inputs())


def test_durations_are_those_that_ended() -> None:
    found = durations(seen((0, look(ROLLING, 1)), ended=(1.0, 2.0, 3.0, 4.0)), draws=4)
    assert found == [1.0, 2.0, 3.0, 4.0]


def test_episodes_that_had_not_ended_are_not_taken_for_short_ones() -> None:
    """Ten of true length 10, seen for 5 s on average: half never end while watched."""
    found = durations(seen((0, look(ROLLING, 1)), ended=(1.0,) * 5, unended=(10.0,) * 5), draws=100)
    assert statistics.fmean(found) == pytest.approx(5.5)
    assert durations(seen((0, look(ROLLING, 1)), unended=(3.0,))) == []


def test_a_watch_follows_episodes_that_come_and_go() -> None:
    looks = iter([look(ROLLING, 1, step=1), look(ROLLING, 2, step=2), *[look(ROLLING, 0, step=3)] * 1000])
    watched = watch(lambda: next(looks), 0.2)
    assert len(watched.ended) == 2  # the episode of the first look began before the watch
    assert all(0 < seconds < 0.2 for seconds in watched.ended)


def test_steps_and_phases_are_timed() -> None:
    watched = seen(
        (0.0, look(ROLLING, 4, step=1, done=6)),
        (4.0, look(POST, 2, step=1, done=8)),
        (5.0, look(SYNCING, 0, step=1)),
        (6.0, look(ROLLING, 4, step=2, done=0)),
        (10.0, look(POST, 1, step=2, done=8)),
        (11.0, look(SYNCING, 0, step=2)),
        (12.0, look(ROLLING, 4, step=3)),
    )
    observed = summarise(watched, 4, lambda _: 0)
    assert (observed.steps, observed.step_seconds, observed.update_seconds) == (1, 6.0, 1.0)
    assert observed.phase_shares == {ROLLING: 8 / 12, POST: 2 / 12, SYNCING: 2 / 12}
    assert observed.full_share == 1.0
    assert observed.episodes_per_hour == pytest.approx((2 + 8) / 12 * 3600)
    assert observed.peak_by_client == {"client": 4}


@pytest.mark.parametrize(
    ("looks", "name"),
    [
        ([(0.0, look(ROLLING, 4)), (9.0, look(ROLLING, 4))], "engine_slots"),
        ([(0.0, look(ROLLING, 2, waiting=2)), (9.0, look(ROLLING, 2, waiting=2))], "client_pools"),
        ([(0.0, look(ROLLING, 4)), (1.0, look(POST, 1)), (9.0, look(ROLLING, 4))], "stragglers"),
        ([(0.0, look(ROLLING, 4)), (1.0, look(SYNCING, 0)), (9.0, look(ROLLING, 4))], "update"),
        ([(0.0, look(ROLLING, 4, idle=9.0)), (9.0, look(ROLLING, 4, idle=9.0))], "timeouts"),
    ],
)
def test_the_bottleneck_is_what_took_the_time(looks: list[tuple[float, Snapshot]], name: str) -> None:
    assert report_of(seen(*looks))["bottleneck"]["name"] == name


def test_enough_episodes_give_a_prediction_and_what_one_change_would_bring() -> None:
    looks = [(0.0, look(ROLLING, 4)), (9.0, look(ROLLING, 4, done=8))]
    report = report_of(seen(*looks, ended=(1.0, 1.1, 0.9, 1.0, 1.2, 1.0)))
    assert report["durations"]["mean"] == pytest.approx(1.03, abs=0.01)
    assert report["prediction"]["engine"] == "documented"
    assert report["prediction"]["step"]["step"]["mean"] > 1.8
    assert {gain["change"].split(" (")[0] for gain in report["gains"]} == {
        "twice the engine_slots",
        "every episode of mean length",
    }
    assert report_of(seen(*looks, ended=(1.0,)))["prediction"] is None


def test_live_for_reports_within_the_output_limit(released_server: ReleasedServer) -> None:
    released_server.pool = {"completed_task_target": 16, "task_expected_num_repeat": 8}
    released_server.run_episodes(running=40, offered=0, idle=4.9)
    answer = answer_of("live", "--url", released_server.url, "--for", "0.3s")
    assert answer["bottleneck"]["name"] == "timeouts"
    assert answer["observed"]["mean_running"] == 40
    assert answer["durations"] is None
    assert len(json.dumps(answer)) < 10_000


@pytest.mark.parametrize("how_long", ["soon", "5x", "0s"])
def test_a_time_that_is_none_is_refused(how_long: str) -> None:
    done = run_script("live", "--url", "http://127.0.0.1:9", "--for", how_long)
    assert done.returncode == 2
    assert "is not a time" in done.stderr
