"""The thread pools: order, limits, retries, drains."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from ajet.tuner_lib.experimental.swarm_client import run_episodes_until_all_complete
from ajet.utils import thread_executors
from ajet.utils.thread_executors import (
    BoundedThreadPoolExecutor,
    PeriodicDrainThreadPoolExecutor,
    TaskCountLimitedThreadPoolExecutor,
)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(thread_executors, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(thread_executors, "LONGEST_PAUSE", 0.002)


def test_every_workers_th_submission_drains_in_order_of_submission():
    with PeriodicDrainThreadPoolExecutor(workers=3, max_parallel=2) as executor:
        drained = [executor.submit_with_periodic_drain(pow, number, 2)[1] for number in range(7)]
        assert drained == [[], [], [0, 1, 4], [], [], [9, 16, 25], []]
        assert executor.drain() == [36], "the last, partial batch can be had"


def test_failures_are_left_out_of_a_drain_when_nothing_is_retried():
    def maybe(number: int) -> int:
        if number == 1:
            raise RuntimeError("no")
        return number

    with PeriodicDrainThreadPoolExecutor(workers=3, auto_retry=False) as executor:
        results = [executor.submit_with_periodic_drain(maybe, number)[1] for number in range(3)]
    assert results[-1] == [0, 2]


def test_auto_retry_calls_again_until_it_succeeds():
    calls = []

    def flaky() -> int:
        calls.append(1)
        if len(calls) < 4:
            raise OSError("again")
        return len(calls)

    with PeriodicDrainThreadPoolExecutor(workers=1) as executor:
        assert executor.submit(flaky).result(10) == 4


def test_shutdown_ends_the_retries_of_a_call_that_never_succeeds():
    entered = threading.Event()

    def broken() -> None:
        entered.set()
        raise OSError("for ever")

    executor = PeriodicDrainThreadPoolExecutor(workers=1)
    future = executor.submit(broken)
    assert entered.wait(10)
    executor.shutdown(wait=True)
    assert isinstance(future.exception(10), OSError)


def test_block_first_run_waits_for_the_first_result_only():
    gate = threading.Event()
    with PeriodicDrainThreadPoolExecutor(workers=4, block_first_run=True) as executor:
        first: Future[int] = executor.submit(lambda: 1)
        assert first.done()
        second = executor.submit(gate.wait, 10)
        assert not second.done()
        gate.set()


def test_a_group_takes_one_place_until_all_its_episodes_are_done():
    gates = [threading.Event() for _ in range(2)]
    executor = TaskCountLimitedThreadPoolExecutor(max_parallel_groups=1, max_workers=4)
    try:
        assert executor.submit_group("empty", print, []) == []
        first = executor.submit_group("a", gates[0].wait, [{"timeout": 10}, {"timeout": 10}])
        second_began = threading.Event()

        def submit_second() -> None:
            futures = executor.submit_group("b", gates[1].wait, [{"timeout": 10}])
            second_began.set()
            futures[0].result(10)

        thread = threading.Thread(target=submit_second)
        thread.start()
        assert not second_began.is_set()
        gates[0].set()
        assert all(future.result(10) for future in first)
        assert second_began.wait(10)
        gates[1].set()
        thread.join(10)
    finally:
        executor.shutdown()


def test_submit_blocks_while_the_queue_is_full():
    gate = threading.Event()
    with BoundedThreadPoolExecutor(max_workers=1, max_queue_size=2) as executor:
        futures = [executor.submit(gate.wait, 10) for _ in range(2)]
        third_in = threading.Event()

        def third() -> None:
            executor.submit(int)
            third_in.set()

        thread = threading.Thread(target=third)
        thread.start()
        assert not third_in.is_set()
        gate.set()
        assert third_in.wait(10)
        assert all(future.result(10) for future in futures)
        thread.join(10)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PeriodicDrainThreadPoolExecutor(workers=0),
        lambda: PeriodicDrainThreadPoolExecutor(workers=1, max_parallel=0),
        lambda: BoundedThreadPoolExecutor(1, max_queue_size=0),
        lambda: TaskCountLimitedThreadPoolExecutor(0, 1),
    ],
)
def test_sizes_below_one_are_refused(make):
    with pytest.raises(ValueError, match="at least 1"):
        make()


def test_run_episodes_until_all_complete_keeps_order_and_retries():
    failed: set[int] = set()

    def square(number: int) -> int:
        if number % 3 == 0 and number not in failed:
            failed.add(number)
            raise RuntimeError("once")
        return number * number

    assert run_episodes_until_all_complete(list(range(10)), square, max_workers=4) == [n * n for n in range(10)]
    assert run_episodes_until_all_complete([], square) == []
    failed.clear()
    with pytest.raises(RuntimeError, match="once"):
        run_episodes_until_all_complete([3], square, auto_retry=False)
