"""How long the configuration takes, as ratios to ``yaml.safe_load`` of the default files, in one run.

python benchmarks/config.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from ajet.copilot.job import AgentJetJob
from ajet.utils.config_loading import default_path, load_config
from skillpack.config.lint import lint
from skillpack.config.sources import read_source

REPEATS = 50

SCRIPT = """
import os
from ajet.copilot.job import AgentJetJob
N = int(os.getenv("N", "8"))
job = AgentJetJob(experiment_name="x", num_repeat=N, batch_size=4 * N, max_env_worker=16 * N)
job.config.ajet.rollout.temperature = 1.0
"""


def best(action: Callable[[], object]) -> float:
    """Return the shortest time of an action in seconds: noise only ever adds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print a line per action."""
    documents = [default_path("swarm").read_text(), default_path("classic").read_text()]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(SCRIPT)
        dumped = AgentJetJob(experiment_name="x").dump_job_as_yaml(Path(folder) / "job.yaml")
        source = read_source(script)
        base = best(lambda: [yaml.safe_load(one) for one in documents])
        print(
            f"yaml.safe_load of both default files ({sum(map(len, documents))} characters): 1.00 = {base * 1000:.1f} ms"
        )
        for name, action in {
            "load_config()": load_config,
            "load_config(a dumped job)": lambda: load_config(dumped),
            "AgentJetJob()": lambda: AgentJetJob(num_repeat=8),
            "AgentJetJob() and dump_job_as_yaml": lambda: AgentJetJob(num_repeat=8).dump_job_as_yaml(dumped),
            "read a client script": lambda: read_source(script),
            "lint it": lambda: lint(source),
        }.items():
            print(f"{name:36} {best(action) / base:6.2f}")


if __name__ == "__main__":
    main()
