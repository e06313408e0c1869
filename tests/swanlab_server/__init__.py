"""The fake SwanLab. Its program lies in the skill's evals, which start it too."""

import sys

from skillpack.pack import skills_dir

EVALS = skills_dir() / "swanlab-fetch" / "evals"
sys.path.insert(0, str(EVALS))

from fake_swanlab import API_KEY, SID, FakeSwanLab  # noqa: E402
from sample_runs import Run, curve, sample_project  # noqa: E402

__all__ = ["API_KEY", "EVALS", "SID", "FakeSwanLab", "Run", "curve", "sample_project"]
