"""Speed of the step simulation: 10,000 clients and 1,000 steps, against the time that the steps stand for.

python benchmarks/capacity_simulation.py
"""

from __future__ import annotations

import time

from skillpack.capacity.simulate import simulate
from skillpack.capacity.workload import ENOUGH_EPISODES, ENOUGH_TASKS, Durations, Workload

STEPS = 1000
LIMIT = 60.0


def main() -> None:
    """Print seconds and ratios for some fleets."""
    durations = Durations.of(60.0, cv=0.6)
    cases = {
        "100 clients of 10": Workload(durations, 1000, (10,) * 100, 250, 8),
        "10,000 clients, episodes": Workload(durations, 10_000, (1,) * 10_000, 2500, 8, ENOUGH_EPISODES),
        "10,000 clients, tasks": Workload(durations, 10_000, (1,) * 10_000, 2500, 8, ENOUGH_TASKS),
    }
    print(f"{'case':<26} {'seconds':>8} {'of a minute':>12} {'faster than life':>17}")
    for name, workload in cases.items():
        began = time.perf_counter()
        found = simulate(workload, STEPS)
        seconds = time.perf_counter() - began
        assert found is not None
        print(f"{name:<26} {seconds:8.1f} {seconds / LIMIT:12.0%} {found.step.mean * STEPS / seconds:16,.0f}x")


if __name__ == "__main__":
    main()
