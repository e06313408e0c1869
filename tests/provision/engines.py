"""Reference engines for these tests: real processes on real sockets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

JOB = """\
ajet:
  project_name: install-check
  model: {path: /models/q}
  data: {train_batch_size: 2}
  rollout: {num_repeat: 2, max_env_worker: 4}
"""


@contextmanager
def engine(folder: Path, *, rolling: bool) -> Iterator[str]:
    """Run a reference engine, ROLLING or OFFLINE, and yield its address."""
    job = folder / "engine.yaml"
    job.write_text(JOB)
    more = ["--conf", str(job), "--start"] if rolling else []
    process = subprocess.Popen(
        [sys.executable, "-m", "ajet.swarm_cli", "start", "--swarm-port", "0", *more],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.wait()
