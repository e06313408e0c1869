"""What the episodes of a training are like: how long, how many clients, what a step needs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillpack.script import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ENOUGH_EPISODES = "rollout_until_finish_enough_episodes"
ENOUGH_TASKS = "rollout_until_finish_enough_tasks"
ENOUGH_NON_DUMMY = "rollout_until_finish_enough_non_dummy_tasks"
ANY_AGREES = "rollout_until_any_client_agree_sync_weight"
ALL_AGREE = "rollout_until_all_clients_agree_sync_weight"
AGREES = (ANY_AGREES, ALL_AGREE)
METHODS = (ENOUGH_EPISODES, ENOUGH_TASKS, ENOUGH_NON_DUMMY, ANY_AGREES, ALL_AGREE)

CONSTANT, EXPONENTIAL, LOGNORMAL, OBSERVED = "constant", "exponential", "lognormal", "observed"

Z95 = 1.6448536269514722
"""The 95 % point of the standard normal distribution."""


@dataclass(frozen=True)
class Durations:
    """How long one episode takes when nothing slows it, in seconds.

    ``lognormal`` uses ``cv`` (standard deviation over mean), ``observed`` draws from ``values``.
    """

    kind: str
    mean: float
    cv: float = 0.0
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, mean: float, p95: float | None = None, cv: float | None = None) -> Durations:
        """Return the distribution that the given figures name: exponential if only the mean is known.

        Raises BadInput if no lognormal distribution has this mean and 95 % point.
        """
        if p95 is not None:
            cv = lognormal_cv(mean, p95)
        if cv is None:
            return cls(EXPONENTIAL, mean, 1.0)
        return cls(LOGNORMAL, mean, cv) if cv > 0 else cls(CONSTANT, mean)

    @classmethod
    def from_values(cls, values: Sequence[float]) -> Durations:
        """Return the distribution of observed durations. Raises BadInput if there are none above zero."""
        good = tuple(float(value) for value in values if math.isfinite(value) and value > 0)
        if not good:
            raise BadInput("no durations", expected="numbers of seconds above zero, one a line or as a JSON list")
        mean = math.fsum(good) / len(good)
        variance = math.fsum((value - mean) ** 2 for value in good) / len(good)
        return cls(OBSERVED, mean, math.sqrt(variance) / mean, good)

    def sample(self, generator: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Draw durations."""
        import numpy as np

        if self.kind == CONSTANT:
            return np.full(size, self.mean)
        if self.kind == EXPONENTIAL:
            return generator.exponential(self.mean, size)
        if self.kind == LOGNORMAL:
            sigma = math.sqrt(math.log1p(self.cv**2))
            return generator.lognormal(math.log(self.mean) - sigma**2 / 2, sigma, size)
        return generator.choice(np.asarray(self.values), size)

    def scaled(self, factor: float) -> Durations:
        """Return the same distribution with every duration times ``factor``."""
        return Durations(self.kind, self.mean * factor, self.cv, tuple(value * factor for value in self.values))


def lognormal_cv(mean: float, p95: float) -> float:
    """Return the cv of the lognormal distribution with this mean and 95 % point (the lighter tail of two)."""
    ratio = math.log(p95 / mean) if p95 > 0 and mean > 0 else -1.0
    discriminant = Z95**2 - 2 * ratio
    if ratio < 0 or discriminant < 0:
        raise BadInput(
            f"no lognormal distribution has mean {mean:g} s and a 95 % point of {p95:g} s",
            expected=f"a 95 % point between the mean and {mean * math.exp(Z95**2 / 2):.3g} s",
            hint="--durations FILE with observed durations",
        )
    sigma = Z95 - math.sqrt(discriminant)
    return math.sqrt(math.expm1(sigma**2))


def read_durations(path: str) -> Durations:
    """Read observed durations: a JSON list, or text with one number a line (``#`` comments). Raises BadInput."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        if text.lstrip().startswith("["):
            return Durations.from_values([float(value) for value in json.loads(text)])
        lines = (line.split("#", 1)[0].strip() for line in text.splitlines())
        return Durations.from_values([float(line) for line in lines if line])
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(
            f"{path}: {error}", expected="seconds, one number a line or a JSON list", hint="--episode-seconds MEAN"
        ) from None


@dataclass(frozen=True)
class Workload:
    """A training, as the step model sees it. Times in seconds.

    ``slots`` is the engine's ceiling on running episodes, ``pools`` how many each client runs at
    once. ``batch`` counts tasks, ``repeat`` episodes per task. ``tasks_per_client`` bounds the
    tasks that one client starts in a step (a throttle policy, or a client that waits for its
    batch); ``agree_after`` is the number of episodes after which a client agrees to sync.
    ``vanish`` is the share of episodes whose client disappears; such a slot is lost for
    ``timeout`` and up to ``sweep`` seconds. ``llm_share`` of a duration is LLM time, of which
    ``llm_parallel`` calls run at once without slowing each other (None: no such limit is known).
    ``claim_first`` threads take their task when they have an episode: then tasks start in order
    even where more threads than slots want one.
    """

    durations: Durations
    slots: int
    pools: tuple[int, ...]
    batch: int
    repeat: int
    method: str = ENOUGH_TASKS
    overhead: float = 0.0
    resume: float = 0.0
    update: float = 0.0
    tasks_per_client: int | None = None
    agree_after: int | None = None
    dummy_share: float = 0.0
    vanish: float = 0.0
    timeout: float = 240.0
    sweep: float = 0.0
    llm_share: float = 0.0
    llm_parallel: float | None = None
    claim_first: bool = False

    @property
    def episodes(self) -> int:
        """Episodes that a step needs."""
        return self.batch * self.repeat

    @property
    def concurrency(self) -> int:
        """Episodes that run at once while there is work for all."""
        return min(self.slots, sum(self.pools))
