"""Metric curves: from SwanLab runs, run files on disk and console logs.

>>> from skillpack.metrics import fetch_run
>>> result = fetch_run("https://swanlab.cn/@user/project/runs/id", ["reward", "entropy"])
>>> result.frame, result.status, result.meta
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillpack.metrics.console import iter_steps, read_console
    from skillpack.metrics.fetch import fetch_run, fetch_runs
    from skillpack.metrics.local import read_local
    from skillpack.metrics.plot import draw, sparkline
    from skillpack.metrics.series import KeyStatus, RunMetrics, Series, long_frame, wide_frame
    from skillpack.metrics.window import Window

_HOMES = {
    "fetch_run": "fetch",
    "fetch_runs": "fetch",
    "Window": "window",
    "KeyStatus": "series",
    "RunMetrics": "series",
    "Series": "series",
    "long_frame": "series",
    "wide_frame": "series",
    "read_local": "local",
    "iter_steps": "console",
    "read_console": "console",
    "draw": "plot",
    "sparkline": "plot",
}

__all__ = [
    "KeyStatus",
    "RunMetrics",
    "Series",
    "Window",
    "draw",
    "fetch_run",
    "fetch_runs",
    "iter_steps",
    "long_frame",
    "read_console",
    "read_local",
    "sparkline",
    "wide_frame",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
