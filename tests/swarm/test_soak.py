"""A short run of the soak test that ``benchmarks/swarm_soak.py`` does for half an hour."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def test_nothing_is_lost_or_counted_twice_under_chaos_and_kill_9(tmp_path):
    path = Path(__file__).parents[2] / "benchmarks" / "swarm_soak.py"
    spec = importlib.util.spec_from_file_location("swarm_soak", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    soak = module.Soak(tmp_path, clients=6, seed=3)
    try:
        soak.run(18, kill_every=8)
        module.report(soak)
    finally:
        soak.process.kill()
        soak.process.wait()
        soak.process.stdout.close()
    assert soak.kills == 2
    assert soak.steps > 1
