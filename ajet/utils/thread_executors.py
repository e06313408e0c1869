"""Thread pools that clients run their episodes in."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
"""Seconds between the attempts of ``auto_retry``: doubled from the first to the longest."""


def call_until_success(fn: Callable[..., Any], *args: Any, closed: threading.Event | None = None, **kwargs: Any) -> Any:
    """Call ``fn`` until it does not raise, with growing pauses; return what it returned.

    When ``closed`` is set, the next error is raised instead of retried. (Released executors retry
    without a pause, also when nobody waits any more.)
    """
    closed = closed or threading.Event()
    pause = FIRST_PAUSE
    while True:
        try:
            return fn(*args, **kwargs)
        except Exception:
            if closed.is_set():
                raise
            log.exception("%s failed and runs again in %.1f s", getattr(fn, "__qualname__", fn), pause)
            closed.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


class PeriodicDrainThreadPoolExecutor:
    """Runs ``max_parallel`` calls at once and, after each ``workers`` submissions, waits for all of them.

    ``workers`` is usually batch size times repeats, so that a drain falls between batches. With
    ``auto_retry`` a call that raises is made again; ``block_first_run`` makes the first submission
    wait for its result, so that an error in the agent shows before a thousand of them run.
    """

    def __init__(
        self,
        workers: int = 100,
        max_parallel: int | None = None,
        auto_retry: bool = True,
        block_first_run: bool = False,
    ) -> None:
        if workers < 1 or (max_parallel is not None and max_parallel < 1):
            raise ValueError(f"workers is {workers} and max_parallel is {max_parallel}; both must be at least 1")
        self._workers = workers
        self._auto_retry = auto_retry
        self._wait_for_first = block_first_run
        self._executor = ThreadPoolExecutor(max_workers=max_parallel or workers)
        self._closed = threading.Event()
        self._undrained: list[Future[Any]] = []

    def __enter__(self) -> PeriodicDrainThreadPoolExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn(*args, **kwargs)`` in the pool and return its future."""
        if self._auto_retry:
            future = self._executor.submit(call_until_success, fn, *args, closed=self._closed, **kwargs)
        else:
            future = self._executor.submit(fn, *args, **kwargs)
        if self._wait_for_first:
            self._wait_for_first = False
            future.result()
        return future

    def submit_with_periodic_drain(
        self, fn: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> tuple[Future[Any], list[Any]]:
        """Run ``fn`` in the pool; return its future and, on each ``workers``-th call, the results since the last drain.

        The results come in the order of submission; those of calls that raised are logged and left out.
        """
        future = self.submit(fn, *args, **kwargs)
        self._undrained.append(future)
        return future, self.drain() if len(self._undrained) >= self._workers else []

    def drain(self) -> list[Any]:
        """Wait for everything submitted since the last drain and return the results: for the last, partial batch."""
        futures, self._undrained = self._undrained, []
        results = []
        for future in futures:
            try:
                results.append(future.result())
            except Exception:
                log.exception("an episode failed and is left out of the results")
        return results

    def shutdown(self, wait: bool = True) -> None:
        """Take no more calls; with ``wait`` return when all have run. Failed calls are not retried any more."""
        self._closed.set()
        self._executor.shutdown(wait=wait)


class TaskCountLimitedThreadPoolExecutor(PeriodicDrainThreadPoolExecutor):
    """Runs groups of calls, one group per task, with at most ``max_parallel_groups`` groups at once."""

    def __init__(
        self, max_parallel_groups: int, max_workers: int, auto_retry: bool = True, block_first_run: bool = False
    ) -> None:
        super().__init__(max_workers, max_workers, auto_retry, block_first_run)
        if max_parallel_groups < 1:
            raise ValueError(f"max_parallel_groups is {max_parallel_groups}; it must be at least 1")
        self._groups = threading.BoundedSemaphore(max_parallel_groups)

    def submit_group(
        self, task_id: str, fn: Callable[..., Any], list_of_kwargs: list[dict[str, Any]]
    ) -> list[Future[Any]]:
        """Run ``fn(**kwargs)`` for each of a task's episodes; blocks until a group may begin.

        ``task_id`` names the group in the log. An empty list takes no place.
        """
        if not list_of_kwargs:
            return []
        self._groups.acquire()
        left = len(list_of_kwargs)
        lock = threading.Lock()

        def one_done(_: Future[Any]) -> None:
            nonlocal left
            with lock:
                left -= 1
                last = left == 0
            if last:
                log.debug("all episodes of task %s are done", task_id)
                self._groups.release()

        futures = []
        try:
            for kwargs in list_of_kwargs:
                futures.append(self.submit(fn, **kwargs))
                futures[-1].add_done_callback(one_done)
        except BaseException:
            for _ in range(len(list_of_kwargs) - len(futures)):
                one_done(Future())
            raise
        return futures

    def on_entering_weight_sync(self) -> None:
        """Note a weight sync; meant for ``add_entering_weight_sync_callback``."""
        log.info("weights are being synced; groups that run go on, no slot is freed early")


class BoundedThreadPoolExecutor:
    """A thread pool whose ``submit`` blocks while ``max_queue_size`` calls are queued or running."""

    def __init__(self, max_workers: int, max_queue_size: int = 100) -> None:
        if max_queue_size < 1:
            raise ValueError(f"max_queue_size is {max_queue_size}; it must be at least 1")
        self._executor = ThreadPoolExecutor(max_workers=max_workers)
        self._places = threading.BoundedSemaphore(max_queue_size)

    def __enter__(self) -> BoundedThreadPoolExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn(*args, **kwargs)`` in the pool, once there is room, and return its future."""
        self._places.acquire()
        try:
            future = self._executor.submit(fn, *args, **kwargs)
        except BaseException:
            self._places.release()
            raise
        future.add_done_callback(lambda _: self._places.release())
        return future

    def shutdown(self, wait: bool = True) -> None:
        """Take no more calls; with ``wait`` return when all have run."""
        self._executor.shutdown(wait=wait)
