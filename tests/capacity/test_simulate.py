"""The step model: exact where it can be, and the same whatever does not bind."""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skillpack.capacity.queueing import cycle_time, slowdown
from skillpack.capacity.simulate import simulate
from skillpack.capacity.workload import (
    ALL_AGREE,
    ANY_AGREES,
    ENOUGH_EPISODES,
    ENOUGH_NON_DUMMY,
    ENOUGH_TASKS,
    METHODS,
    Durations,
    Workload,
    lognormal_cv,
)
from skillpack.script import BadInput

BASE = Workload(Durations.of(10.0), slots=16, pools=(64,), batch=8, repeat=4, method=ENOUGH_EPISODES)


def exponential_step(episodes: int, concurrency: int, mean: float) -> tuple[float, float]:
    """Return the expected seconds to collect ``episodes`` and to drain, for exponential durations.

    Completions come at rate concurrency / mean. Then the other concurrency - 1 episodes still run, each as if just
    begun: the last ends after mean * (1 + 1/2 + ...) seconds (David and Nagaraja, "Order Statistics", section 2.7).
    """
    return episodes * mean / concurrency, mean * sum(1 / running for running in range(1, concurrency))


@pytest.mark.parametrize(("slots", "batch"), [(1, 4), (4, 8), (16, 8), (40, 4)])
def test_exponential_episodes_take_the_exact_time(slots: int, batch: int) -> None:
    workload = replace(BASE, slots=slots, batch=batch)
    collect, drain = exponential_step(workload.episodes, slots, 10.0)
    found = simulate(workload, steps=3000, seed=1)
    assert found is not None
    assert found.step.low * 0.99 < collect + drain < found.step.high * 1.01


def test_constant_episodes_take_whole_rounds() -> None:
    found = simulate(replace(BASE, durations=Durations.of(10.0, cv=0), slots=8, pools=(8,)), steps=3)
    assert found is not None
    assert found.step.mean == pytest.approx(40.0)  # 32 episodes by 8, and no step outlives its last round
    assert found.utilisation == pytest.approx(1.0)


def test_a_client_that_waits_for_its_batch_has_no_surplus() -> None:
    found = simulate(replace(BASE, method=ENOUGH_TASKS, tasks_per_client=8), steps=200)
    assert found is not None
    assert (found.surplus, found.partial) == (0, 0)
    assert found.episodes_per_hour.mean == pytest.approx(32 * 3600 / found.step.mean)


def test_clients_that_may_not_start_enough_tasks_never_end_a_step() -> None:
    workload = replace(BASE, method=ENOUGH_TASKS, pools=(20, 20), slots=64)
    assert simulate(replace(workload, tasks_per_client=3), steps=2) is None
    assert simulate(replace(workload, tasks_per_client=4), steps=2) is not None


def test_the_methods_order_themselves() -> None:
    def seconds(method: str, **changes: object) -> float:
        workload = replace(BASE, method=method, pools=(16, 16), slots=32, **changes)  # type: ignore[arg-type]
        found = simulate(workload, steps=400)
        assert found is not None
        return found.step.mean

    assert seconds(ENOUGH_EPISODES) < seconds(ENOUGH_TASKS) < seconds(ENOUGH_NON_DUMMY, dummy_share=0.5)
    assert seconds(ANY_AGREES, agree_after=16) < seconds(ALL_AGREE, agree_after=16)
    assert seconds(ENOUGH_NON_DUMMY) == pytest.approx(seconds(ENOUGH_TASKS), rel=0.1)


def test_threads_that_take_their_task_before_they_claim_keep_more_groups_open() -> None:
    workload = replace(BASE, method=ENOUGH_TASKS, slots=8)
    early, late = simulate(workload, steps=300), simulate(replace(workload, claim_first=True), steps=300)
    assert early is not None
    assert late is not None
    assert early.step.mean > 1.1 * late.step.mean
    assert early.partial > late.partial


def test_vanished_clients_hold_their_slots_until_the_timeout() -> None:
    quick = simulate(replace(BASE, vanish=0.2, timeout=20.0), steps=300)
    slow = simulate(replace(BASE, vanish=0.2, timeout=200.0), steps=300)
    assert quick is not None
    assert slow is not None
    assert quick.step.mean < slow.step.mean
    assert slow.lost_to_timeouts > 5 * quick.lost_to_timeouts
    assert slow.vanished > 0


def test_a_seed_gives_the_same_figures_and_another_gives_near_ones() -> None:
    first, again, other = (simulate(BASE, steps=500, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first is not None
    assert other is not None
    assert first != other
    assert first.step.mean == pytest.approx(other.step.mean, rel=0.1)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(METHODS),
    st.integers(1, 40),
    st.integers(1, 3),
    st.integers(1, 20),
    st.integers(1, 6),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.4, 1.0, 1.5]),
)
def test_more_of_what_does_not_bind_changes_nothing(
    method: str, slots: int, clients: int, pool: int, batch: int, repeat: int, cv: float
) -> None:
    workload = Workload(
        Durations.of(5.0, cv=cv), slots, (pool,) * clients, batch, repeat, method, llm_share=0.5, llm_parallel=64
    )
    found = simulate(workload, steps=5)
    assert found is not None
    assert found.step.mean >= 5.0 * (cv == 0)
    assert 0 <= found.utilisation <= 1 + 1e-9
    assume(slots > clients * pool)
    more_slots = simulate(replace(workload, slots=slots + 7), steps=5)
    assert more_slots is not None
    assert more_slots.step == found.step
    more_calls = simulate(replace(workload, llm_parallel=128), steps=5)
    assert more_calls == found


@pytest.mark.parametrize("customers", [1, 2, 8, 50, 400])
def test_a_shared_llm_is_never_faster_than_alone_nor_than_its_throughput(customers: int) -> None:
    cycle = cycle_time(customers, think=2.0, service=8.0, servers=8)
    assert cycle >= max(10.0, customers * 8.0 / 8) * (1 - 1e-9)
    assert slowdown(customers, 0.8, 8) == pytest.approx(cycle / 10)


def test_a_single_llm_server_gives_the_known_closed_queue() -> None:
    """Machine repairman, 2 customers, think 1, service 1: utilisation 0.8 (Erlang's formula), so a cycle of 2.5."""
    assert cycle_time(2, think=1.0, service=1.0, servers=1) == pytest.approx(2.5)


def test_large_populations_do_not_overflow() -> None:
    assert math.isfinite(cycle_time(20_000, think=5.0, service=5.0, servers=512))


@given(st.floats(1, 1000), st.floats(1.01, 3.8))
def test_a_lognormal_distribution_has_the_mean_and_the_point_that_were_given(mean: float, ratio: float) -> None:
    cv = lognormal_cv(mean, mean * ratio)
    sigma = math.sqrt(math.log1p(cv**2))
    assert math.exp(math.log(mean) - sigma**2 / 2 + 1.6448536269514722 * sigma) == pytest.approx(mean * ratio)


def test_a_95_point_that_no_lognormal_has_is_refused() -> None:
    with pytest.raises(BadInput, match="no lognormal distribution"):
        Durations.of(10.0, p95=60.0)
    with pytest.raises(BadInput, match="no lognormal distribution"):
        Durations.of(10.0, p95=5.0)


def naive_step_seconds(workload: Workload, steps: int, seed: int) -> float:
    """Mean step time by an event loop that follows every thread: what the vectorised simulation must equal."""
    chance = random.Random(seed)
    given = [0] * len(workload.pools)

    def work(client: int) -> tuple[int, int]:
        given[client] += 1
        return client, given[client] - 1

    threads = [client for client, pool in enumerate(workload.pools) for _ in range(pool)]
    free: list = threads if workload.claim_first else [work(client) for client in threads]
    total = 0.0
    for _ in range(steps):
        now, running, done, full = 0.0, [], {}, 0
        while True:
            while full < workload.batch and len(running) < workload.slots and free:
                chosen = free.pop(chance.randrange(len(free)))
                client, number = work(chosen) if workload.claim_first else chosen
                heapq.heappush(running, (now + chance.expovariate(1 / workload.durations.mean), client, number))
            if not running:
                break
            now, client, number = heapq.heappop(running)
            free.append(client if workload.claim_first else work(client))
            group = (client, number // workload.repeat)
            done[group] = done.get(group, 0) + 1
            full += done[group] == workload.repeat
        total += now
    return total / steps


@pytest.mark.parametrize("claim_first", [True, False])
@pytest.mark.parametrize(("slots", "pools"), [(6, (6,)), (6, (20,)), (12, (4, 5)), (5, (9, 9))])
def test_the_vectorised_steps_equal_an_event_loop(slots: int, pools: tuple[int, ...], claim_first: bool) -> None:
    workload = Workload(
        Durations.of(10.0), slots, pools, batch=5, repeat=3, method=ENOUGH_TASKS, claim_first=claim_first
    )
    found = simulate(workload, steps=2500, seed=2)
    assert found is not None
    assert found.step.mean == pytest.approx(naive_step_seconds(workload, steps=4000, seed=5), rel=0.035)
