"""The runs that the fake SwanLab serves: small, and with every difficulty of real ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Point = tuple[int, "float | str", int]
"""Step, value (text is sent as it is), timestamp in ms."""

CREATED = "2026-03-01T08:00:00.000Z"
CREATED_MS = 1_772_352_000_000


@dataclass
class Run:
    """One experiment of the fake server; ``series`` holds the logged points of each scalar key."""

    cuid: str
    slug: str
    name: str
    series: dict[str, list[Point]] = field(default_factory=dict)
    state: str = "FINISHED"
    created: Any = CREATED
    config: dict[str, Any] = field(default_factory=dict)
    media: list[str] = field(default_factory=list)
    root: tuple[str, str] | None = None
    listed_only: list[str] = field(default_factory=list)
    blob: Callable[[list[str]], bytes] | None = None

    def describe(self) -> dict[str, Any]:
        """Return the run as ``GET /project/{user}/{project}/runs/{id}`` answers it."""
        document: dict[str, Any] = {
            "cuid": self.cuid,
            "slug": self.slug,
            "name": self.name,
            "state": self.state,
            "createdAt": self.created,
            "finishedAt": None if self.state == "RUNNING" else "2026-03-01T10:00:00.000Z",
            "profile": {"config": {k: {"value": v, "desc": "", "sort": 0} for k, v in self.config.items()}},
            "labels": [],
            "show": True,
            "user": {"username": "ada", "name": "Ada"},
        }
        if self.root:
            document["rootProId"], document["rootExpId"] = self.root
        return document


def curve(steps: range, value: Callable[[int], float | str]) -> list[Point]:
    """Return points at ``steps``, ten seconds apart."""
    return [(step, value(step), CREATED_MS + step * 10_000) for step in steps]


def training(seed: int, steps: int = 2000) -> dict[str, list[Point]]:
    """Return series named as AgentJet names them, with NaN, infinities, a sparse key and awkward names."""

    def entropy(step: int) -> float | str:
        return {2: "Infinity", 3: "-Infinity", 7: "NaN"}.get(step, 1.0 / (1 + step * 0.002 * seed))

    noise = [((math.sin(step * 12.9898 + seed) * 43758.5453) % 1 - 0.5) * 0.2 for step in range(steps)]
    return {
        "critic/rewards/mean": curve(range(steps), lambda s: 0.9 * (1 - math.exp(-s / 400 / seed)) + noise[s]),
        "actor/entropy": curve(range(steps), entropy),
        "response_length/mean": curve(range(0, steps, 5), lambda s: 100.0 + s * 0.2 * seed),
        "actor/ppo_kl": curve(range(steps), lambda s: abs(noise[s]) * 0.1),
        "training/epoch": curve(range(steps), lambda s: s // 500),
        '中文/指标, "q"': curve(range(steps), lambda s: s * 0.5),
    }


def sample_project() -> dict[str, list[Run]]:
    """Return project path -> runs, oldest first."""
    config = {"trainer": {"value": {"lr": 1e-6, "n": 8}, "desc": "", "sort": 1}, "seed": 1}
    main = Run(
        "clf8q2n5p0001xk9wzt7hb3ra",
        "main1234",
        "exp, 名字-1",
        training(1),
        config=config,
        media=["rollout/table"],
        listed_only=["never/logged"],
    )
    main.series["__swanlab__.cpu.pct"] = curve(range(100), lambda s: 40.0 + s % 7)
    second = Run("clf8q2n5p0002xk9wzt7hb3ra", "second12", "seed 2", training(2), config={**config, "seed": 2})
    live = Run("clf8q2n5p0003xk9wzt7hb3ra", "live1234", "still going", training(3, 120), state="RUNNING")
    resumed = Run("clf8q2n5p0004xk9wzt7hb3ra", "resumed1", "resumed")
    resumed.series["critic/rewards/mean"] = [
        *curve(range(60), lambda s: s * 0.01),
        *[(s, 5.0 + s, CREATED_MS + 9_000_000 + s * 10_000) for s in range(50, 100)],
    ]
    clone = Run(
        "clf8q2n5p0005xk9wzt7hb3ra", "clone123", "a clone", root=("project-of-root", "clf8q2n5p0001xk9wzt7hb3ra")
    )
    many = Run("clf8q2n5p0006xk9wzt7hb3ra", "many1234", "forty keys")
    many.series = {f"layer_{i:02d}/norm": curve(range(50), lambda s, i=i: s + i / 100) for i in range(40)}
    named = Run("我的 实验+1", "我的 实验+1", "custom id", {"loss": curve(range(10), lambda s: 1.0 / (s + 1))})
    return {"ada/agent": [main, second, live, resumed, clone, many, named], "ada/empty": []}
