"""Whose episode starts next: clients work through their tasks in order, but threads may overtake each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skillpack.capacity.workload import ENOUGH_EPISODES, Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Booleans = NDArray[np.bool_]

THREADS_AT_MOST = 5000
"""More threads than this are not followed singly: which client's episode is next is drawn by their shares."""


@dataclass(frozen=True)
class Started:
    """What starts in a step, in order: the slot, its times, and whether the client disappears."""

    slot: Integers
    start: Floats
    end: Floats
    gone: Booleans


class WorkOrder:
    """Whose episode starts next where each client has slots enough for its pool, or where groups do not mix.

    Each client works through its tasks in order; ``phases`` counts the episodes already given to
    its current task.
    """

    def __init__(self, workload: Workload, generator: np.random.Generator) -> None:
        self.workload = workload
        self.generator = generator
        pools = np.asarray(workload.pools)
        self.phases = np.zeros(len(pools), dtype=np.int64)
        self.shares = pools / pools.sum()
        self.own_slots = np.repeat(np.arange(len(pools)), pools) if pools.sum() <= workload.slots else None

    def assign(self, started: Started) -> tuple[Integers, Integers]:
        """Return the client of each start, and its place among that client's episodes."""
        if len(self.shares) == 1:
            owner = np.zeros(len(started.start), dtype=np.int64)
        elif self.own_slots is not None:
            owner = self.own_slots[started.slot]
        else:
            owner = self.generator.choice(len(self.shares), len(started.start), p=self.shares)
        # a vanished episode is tried again: its successor takes its place
        return owner, _count_before(owner, ~started.gone) + self.phases[owner]

    def commit(self, started: Started, completed: Integers, ran: int) -> None:
        """Note that the first ``ran`` starts came to pass, and whose episodes were completed."""
        given = np.bincount(completed, minlength=len(self.phases))
        self.phases = (self.phases + given) % self.workload.repeat


class ThreadQueue(WorkOrder):
    """Whose episode starts next where more threads than slots want one.

    A thread takes its client's next episode when it is free, and then waits for a slot. Released
    clients ask every two seconds, so which of the waiting threads gets a slot is a matter of
    chance: episodes of a group drift apart, and more groups are open at once. (A thread that takes
    its task only when it has an episode avoids that: ``claim_first``.)
    """

    def __init__(self, workload: Workload, generator: np.random.Generator) -> None:
        super().__init__(workload, generator)
        self.given = [0] * len(workload.pools)
        self.waiting: list[tuple[int, int]] = []
        for client in generator.permutation(np.repeat(np.arange(len(workload.pools)), workload.pools)):
            self._join(int(client))

    def _join(self, client: int) -> None:
        self.waiting.append((client, self.given[client]))
        self.given[client] += 1

    def assign(self, started: Started) -> tuple[Integers, Integers]:
        """Return the client of each start, and its place among that client's episodes."""
        self.chances = self.generator.random(len(started.start)).tolist()
        before = self.given.copy(), self.waiting.copy()
        owner, place = self._play(started, len(started.start))
        self.given, self.waiting = before
        return np.asarray(owner), np.asarray(place)

    def commit(self, started: Started, completed: Integers, ran: int) -> None:
        """Note that the first ``ran`` starts came to pass; the threads of those still running wait next."""
        owners, _ = self._play(started, ran)
        by_end = np.argsort(started.end[:ran], kind="stable")
        for index in by_end[max(0, ran - self.workload.slots) :].tolist():
            if not started.gone[index]:
                self._join(owners[index])

    def _play(self, started: Started, count: int) -> tuple[list[int], list[int]]:
        slots, waiting, gone = self.workload.slots, self.waiting, started.gone.tolist()
        by_end = np.argsort(started.end, kind="stable").tolist()
        owner, place = [0] * count, [0] * count
        for index in range(count):
            if index >= slots:
                ended = by_end[index - slots]
                if not gone[ended]:
                    self._join(owner[ended])
            chosen = int(self.chances[index] * len(waiting))
            waiting[chosen], waiting[-1] = waiting[-1], waiting[chosen]
            owner[index], place[index] = waiting.pop()
            if gone[index]:
                waiting.append((owner[index], place[index]))
        return owner, place


def work_order(workload: Workload, generator: np.random.Generator) -> WorkOrder:
    """Return how work is given out: by a queue of threads where it matters and can be afforded."""
    contended = sum(workload.pools) > workload.slots and workload.tasks_per_client is None
    contended = contended and not workload.claim_first
    counts_groups = workload.method != ENOUGH_EPISODES
    if contended and counts_groups and sum(workload.pools) <= THREADS_AT_MOST:
        return ThreadQueue(workload, generator)
    return WorkOrder(workload, generator)


def _count_before(owner: Integers, counted: Booleans) -> Integers:
    """Return, for each episode, how many earlier ones of the same owner count."""
    small = owner.astype(np.uint16) if owner.max(initial=0) < 1 << 16 else owner  # numpy sorts 16 bits by radix
    by_owner = np.argsort(small, kind="stable")
    sorted_owner = owner[by_owner]
    before: Integers = np.cumsum(counted[by_owner]) - counted[by_owner]
    first = np.concatenate(([True], sorted_owner[1:] != sorted_owner[:-1]))
    base = np.maximum.accumulate(np.where(first, before, 0))
    count = np.empty(len(owner), dtype=np.int64)
    count[by_owner] = before - base
    return count
