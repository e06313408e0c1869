"""Watch a running server for a while: episode durations, steps, and what held them up.

Durations are seen from outside: an episode that appears while we watch begins then, one that
disappears has ended. Those that still run at the end count as longer than seen (Kaplan and Meier,
"Nonparametric estimation from incomplete observations", 1958).
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from skillpack.capacity.observe import Snapshot

ROLLING, ROLLING_POST, SYNCING = "ENGINE.ROLLING", "ENGINE.ROLLING_POST", "ENGINE.WEIGHT_SYNCING"
LOOKS_AT_LEAST = 100
INTERVAL_AT_MOST, INTERVAL_AT_LEAST = 2.0, 0.05


@dataclass
class Watch:
    """What was seen. ``ended`` and ``unended`` are (seconds) of episodes that began while we watched."""

    seconds: float = 0.0
    ended: list[float] = field(default_factory=list)
    unended: list[float] = field(default_factory=list)
    looks: list[tuple[float, Snapshot]] = field(default_factory=list)

    @property
    def last(self) -> Snapshot:
        """The newest look."""
        return self.looks[-1][1]


def watch(look: Callable[[], Snapshot], seconds: float) -> Watch:
    """Look at a server again and again for ``seconds``; at least a hundred times, at most every 50 ms."""
    interval = min(INTERVAL_AT_MOST, max(INTERVAL_AT_LEAST, seconds / LOOKS_AT_LEAST))
    never = threading.Event()
    seen = Watch()
    begun: dict[str, float] = {}
    unseen_begin: set[str] = set()
    start = time.monotonic()
    while True:
        at = time.monotonic() - start
        snapshot = look()
        running = {episode.episode_uuid + episode.client_uuid for episode in snapshot.running}
        if not seen.looks:
            unseen_begin = running
        for episode in [name for name in begun if name not in running]:
            seen.ended.append(at - begun.pop(episode))
        for episode in running - unseen_begin:
            begun.setdefault(episode, at - interval / 2)
        unseen_begin &= running
        seen.looks.append((at, snapshot))
        if at >= seconds:
            break
        never.wait(max(0.0, min(interval, seconds - at)))
    seen.seconds = at
    seen.unended = [at - begin for begin in begun.values()]
    return seen


def durations(seen: Watch, draws: int = 400) -> list[float]:
    """Return ``draws`` quantiles of the episodes' durations, corrected for those that had not ended."""
    if not seen.ended:
        return []
    deaths = Counter(seen.ended)
    at_risk = len(seen.ended) + len(seen.unended)
    survival, curve = 1.0, []
    gone = sorted([(value, True) for value in deaths] + [(value, False) for value in seen.unended])
    for value, ended in gone:
        if ended:
            survival *= 1 - deaths[value] / at_risk
            at_risk -= deaths[value]
            curve.append((1 - survival, value))
        else:
            at_risk -= 1
    longest = max([*seen.ended, *seen.unended])
    found = []
    for index in range(draws):
        quantile = (index + 0.5) / draws
        found.append(next((value for share, value in curve if share >= quantile), longest))
    return found


@dataclass(frozen=True)
class Observed:
    """Figures of a watch. ``step_seconds`` and ``update_seconds`` are None if no whole step was seen."""

    seconds: float
    episodes: int
    episodes_per_hour: float
    mean_running: float
    peak_running: int
    utilisation: float | None
    peak_by_client: dict[str, int]
    full_share: float
    waiting_share: float
    phase_shares: dict[str, float]
    stale_share: float
    steps: int
    step_seconds: float | None
    update_seconds: float | None


def summarise(seen: Watch, ceiling: int | None, stale: Callable[[Snapshot], int]) -> Observed:
    """Return the figures of a watch; times are weighted by how long each look held."""
    spans = [after - before for (before, _), (after, _) in zip(seen.looks, seen.looks[1:], strict=False)] or [1.0]
    weighted = list(zip(spans, (look for _, look in seen.looks), strict=False))
    total = sum(spans)
    phases: dict[str, float] = {}
    full = waiting = running = stuck = 0.0
    peaks: Counter[str] = Counter()
    for span, look in weighted:
        phases[look.status] = phases.get(look.status, 0.0) + span / total
        running += span * len(look.running) / total
        if look.status == ROLLING:
            full += span * (ceiling is not None and len(look.running) >= ceiling)
            waiting += span * bool(look.waiting)
        stuck += span * stale(look) / total
        for client, count in Counter(episode.client_uuid for episode in look.running).items():
            peaks[client] = max(peaks[client], count)
    rolling = phases.get(ROLLING, 0.0) * total or 1.0
    step_times, update_times = _steps(seen)
    mean = running
    return Observed(
        seconds=total,
        episodes=len(seen.ended),
        episodes_per_hour=_completed(seen) / total * 3600,
        mean_running=mean,
        peak_running=max(len(look.running) for _, look in seen.looks),
        utilisation=None if not ceiling else mean / ceiling,
        peak_by_client=dict(peaks),
        full_share=full / rolling,
        waiting_share=waiting / rolling,
        phase_shares=phases,
        stale_share=stuck / mean if mean else 0.0,
        steps=len(step_times),
        step_seconds=sum(step_times) / len(step_times) if step_times else None,
        update_seconds=sum(update_times) / len(update_times) if update_times else None,
    )


def _steps(seen: Watch) -> tuple[list[float], list[float]]:
    """Return the seconds of the whole steps that were seen, and of their weight syncs."""
    begins: list[float] = []
    syncs: list[float] = []
    since: float | None = None
    before: Snapshot | None = None
    for at, look in seen.looks:
        if before is not None:
            if look.global_step != before.global_step or (look.status == ROLLING and before.status == SYNCING):
                begins.append(at)
                if since is not None:
                    syncs.append(at - since)
                since = None
            if look.status == SYNCING and before.status != SYNCING:
                since = at
        before = look
    return [after - first for first, after in itertools.pairwise(begins)], syncs


def _completed(seen: Watch) -> int:
    """Return how many episodes the server completed meanwhile, by its own count."""
    total = 0
    for (_, before), (_, after) in zip(seen.looks, seen.looks[1:], strict=False):
        first, second = (int(look.pool.get("completed_episodes") or 0) for look in (before, after))
        total += second - first if second >= first else second
    return total


def as_json(observed: Observed) -> dict[str, Any]:
    """Return the figures as a JSON object with four significant digits."""
    shown: dict[str, Any] = {}
    for name, value in vars(observed).items():
        if isinstance(value, dict):
            value = {key: float(f"{number:.4g}") for key, number in value.items()}
        shown[name] = float(f"{value:.4g}") if isinstance(value, float) else value
    return shown
