"""Simulate steps of a training: seeded, vectorised over the episodes of a step, with confidence intervals.

Episodes of a slot follow each other, and a slot takes the next episode as soon as it is free. As
durations are drawn independently of the order of work, the starts of all slots together, sorted,
are the order in which work is taken: no event has to be simulated singly. Which client's episode
it is matters only where groups are counted: see ``work_order``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skillpack.capacity.queueing import slowdown
from skillpack.capacity.work_order import Started, WorkOrder, work_order
from skillpack.capacity.workload import AGREES, ANY_AGREES, ENOUGH_EPISODES, ENOUGH_NON_DUMMY, Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Booleans = NDArray[np.bool_]

Z = 1.959963984540054
"""Half width of a 95 % confidence interval in standard errors."""

ROUNDS_AT_MOST = 4096
NEVER = math.inf


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % confidence interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Simulation:
    """Figures of a step. Seconds; ``tail`` is the time after the last start, when slots run empty.

    ``surplus`` counts episodes beyond what the step needs, ``partial`` those in groups that stay
    short of num_repeat, ``dropped`` those in groups without a learning signal (non-dummy method),
    ``vanished`` those whose client disappeared; all per step.
    """

    step: Estimate
    p50: float
    p95: float
    episodes_per_hour: Estimate
    utilisation: float
    collect: float
    tail: float
    update: float
    lost_to_timeouts: float
    surplus: float
    partial: float
    dropped: float
    vanished: float
    steps: int
    seed: int


@dataclass(frozen=True)
class _Step:
    """One simulated step."""

    seconds: float
    collect: float
    tail: float
    busy: float
    lost: float
    collected: int
    partial: int
    dropped: int
    vanished: int


def simulate(workload: Workload, steps: int = 400, seed: int = 0) -> Simulation | None:
    """Simulate ``steps`` steps; None if a step never ends (the clients may not start enough tasks)."""
    draw = _Draw(workload, np.random.default_rng(seed))
    order = work_order(workload, draw.generator)
    done: list[_Step] = []
    for _ in range(steps):
        step = _simulate_step(workload, draw, order)
        if step is None:
            return None
        done.append(step)
    return _summary(workload, done, seed)


def _simulate_step(workload: Workload, draw: _Draw, order: WorkOrder) -> _Step | None:
    """Simulate one step; ``order`` remembers where the clients stand afterwards."""
    slots = draw.slots(draw.rounds)
    while slots.duration.shape[1] <= ROUNDS_AT_MOST:
        episodes = _Episodes(workload, slots, order, draw.enough)
        stop = episodes.stop_time(draw.generator)
        if stop < NEVER and stop <= episodes.horizon:
            draw.enough = max(draw.enough, 1.2 * stop) if draw.enough < NEVER else 1.5 * stop
            return episodes.finish(stop)
        if draw.enough < NEVER:
            draw.enough = NEVER
            continue
        if episodes.exhausted:
            return None
        slots = slots.followed_by(draw.slots(slots.duration.shape[1]))
        draw.rounds = slots.duration.shape[1]
    return None


@dataclass(frozen=True)
class _Slots:
    """What each slot (row) runs, one episode after another (columns)."""

    duration: Floats
    vanished: Booleans

    def followed_by(self, later: _Slots) -> _Slots:
        """Return the same slots with more episodes."""
        return _Slots(
            np.hstack([self.duration, later.duration]),
            np.hstack([self.vanished, later.vanished]),
        )


class _Draw:
    """Draws episodes; remembers how many a slot needed in earlier steps, and how long a step may take."""

    def __init__(self, workload: Workload, generator: np.random.Generator) -> None:
        self.workload = workload
        self.generator = generator
        self.factor = slowdown(workload.concurrency, workload.llm_share, workload.llm_parallel)
        self.rounds = math.ceil(workload.episodes / workload.concurrency) + 2
        self.enough = NEVER

    def slots(self, rounds: int) -> _Slots:
        """Draw ``rounds`` episodes for every slot."""
        workload, generator = self.workload, self.generator
        shape = (workload.concurrency, rounds)
        duration = workload.durations.sample(generator, shape) * self.factor
        if workload.overhead:
            duration += generator.uniform(0.5, 1.5, shape) * workload.overhead
        vanished = np.zeros(shape, dtype=bool)
        if workload.vanish:
            vanished = generator.random(shape) < workload.vanish
            duration = np.where(vanished, workload.timeout + generator.random(shape) * workload.sweep, duration)
        return _Slots(duration, vanished)


class _Episodes:
    """The episodes of one step, in the order of their starts."""

    def __init__(self, workload: Workload, slots: _Slots, order: WorkOrder, enough: float) -> None:
        self.workload, self.order = workload, order
        ends = np.cumsum(slots.duration, axis=1)
        self.horizon = min(enough, float(ends[:, -1].min()))
        """Up to here every start is known."""
        starts = ends - slots.duration
        known = np.flatnonzero(starts.ravel() <= self.horizon)
        known = known[np.argsort(starts.ravel()[known], kind="stable")]
        self.started = Started(
            known // starts.shape[1], starts.ravel()[known], ends.ravel()[known], slots.vanished.ravel()[known]
        )
        self.owner, place = order.assign(self.started)
        self.start, self.end, self.gone = self.started.start, self.started.end, self.started.gone
        self.exhausted = False
        if workload.tasks_per_client is not None:
            place = self._throttle(place, workload.tasks_per_client * workload.repeat)
        first = int(place.min(initial=0)) // workload.repeat
        groups_of_client = int(place.max(initial=0)) // workload.repeat + 1 - first
        self.group = self.owner * groups_of_client + place // workload.repeat - first
        self.dummy = np.zeros(self.group.max(initial=0) + 1, dtype=bool)

    def _throttle(self, place: Integers, most: int) -> Integers:
        """Drop the episodes that a client may not start in this step; return the places of the others."""
        allowed = place < most
        self.start, self.end, self.gone = self.start[allowed], self.end[allowed], self.gone[allowed]
        self.owner = self.owner[allowed]
        given = np.bincount(self.owner[~self.gone], minlength=len(self.workload.pools))
        self.exhausted = bool((given >= most).all())
        if self.exhausted:
            self.horizon = NEVER
        return place[allowed]

    def stop_time(self, generator: np.random.Generator) -> float:
        """Return when the step has enough, by its method; infinity if these episodes are not enough."""
        workload = self.workload
        finished = self.end[~self.gone]
        if workload.method == ENOUGH_EPISODES:
            return _nth(finished, workload.episodes)
        if workload.method in AGREES:
            wanted = workload.agree_after or math.ceil(workload.episodes / len(workload.pools))
            owner = self.owner[~self.gone]
            times = [_nth(finished[owner == client], wanted) for client in range(len(workload.pools))]
            return min(times) if workload.method == ANY_AGREES else max(times)
        complete = self._group_ends()
        if workload.method == ENOUGH_NON_DUMMY:
            self.dummy = generator.random(len(self.dummy)) < workload.dummy_share
            complete = complete[~self.dummy]
        return _nth(complete, workload.batch)

    def _group_ends(self) -> Floats:
        """Return when each group has all its repeats; infinity for those that never have."""
        group = self.group[~self.gone]
        complete = np.zeros(len(self.dummy))
        np.maximum.at(complete, group, self.end[~self.gone])
        counts = np.bincount(group, minlength=len(self.dummy))
        return np.where(counts >= self.workload.repeat, complete, NEVER)

    def finish(self, stop: float) -> _Step:
        """Return the step that stops at ``stop``: running episodes are waited for."""
        workload = self.workload
        ran = self.start < stop
        end = float(self.end[ran].max())
        last_start = float(self.start[ran].max())
        completed = ran & ~self.gone
        in_group = np.bincount(self.group[completed], minlength=len(self.dummy))
        kept_short = (in_group > 0) & (in_group < workload.repeat)
        self.order.commit(self.started, self.owner[completed], int(ran.sum()))
        return _Step(
            seconds=workload.resume + end + workload.update,
            collect=last_start,
            tail=end - last_start,
            busy=float((self.end[ran] - self.start[ran]).sum()),
            lost=float((self.end[ran & self.gone] - self.start[ran & self.gone]).sum()),
            collected=int(completed.sum()),
            partial=int(in_group[kept_short].sum()),
            dropped=int(in_group[self.dummy & ~kept_short].sum()),
            vanished=int((ran & self.gone).sum()),
        )


def _nth(times: Floats, count: int) -> float:
    """Return the ``count``-th smallest time, infinity if there are fewer."""
    if len(times) < count:
        return NEVER
    return float(np.partition(times, count - 1)[count - 1])


def _summary(workload: Workload, done: list[_Step], seed: int) -> Simulation:
    seconds = np.array([step.seconds for step in done])
    collected = np.array([step.collected for step in done], dtype=float)
    total = float(seconds.sum())
    rate = float(collected.sum()) / total
    # delta method for the ratio of two means
    spread = float(np.std(collected - rate * seconds, ddof=1)) if len(done) > 1 else 0.0
    margin = Z * spread / math.sqrt(len(done)) / float(seconds.mean())
    return Simulation(
        step=_estimate(seconds),
        p50=float(np.quantile(seconds, 0.5)),
        p95=float(np.quantile(seconds, 0.95)),
        episodes_per_hour=Estimate(rate * 3600, (rate - margin) * 3600, (rate + margin) * 3600),
        utilisation=sum(step.busy for step in done) / (total * workload.slots),
        collect=_mean([step.collect for step in done]),
        tail=_mean([step.tail for step in done]),
        update=workload.update,
        lost_to_timeouts=_mean([step.lost for step in done]) / workload.concurrency,
        surplus=_mean([max(0, step.collected - workload.episodes) for step in done]),
        partial=_mean([step.partial for step in done]),
        dropped=_mean([step.dropped for step in done]),
        vanished=_mean([step.vanished for step in done]),
        steps=len(done),
        seed=seed,
    )


def _estimate(values: Floats) -> Estimate:
    mean = float(values.mean())
    margin = Z * float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Estimate(mean, mean - margin, mean + margin)


def _mean(values: list[float] | list[int]) -> float:
    return float(np.mean(values))
