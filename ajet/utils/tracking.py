"""Where the metrics of a run go: the console line, metrics.jsonl, and on request TensorBoard and SwanLab."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ajet.utils.files import append_line, open_for_lines

log = logging.getLogger(__name__)

METRICS = "metrics.jsonl"
"""File of the experiment's folder with the metrics of each step."""


class Tracker(Protocol):
    """Takes the metrics of one step."""

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """Write the metrics of a step."""

    def close(self) -> None:
        """Write what is buffered."""


class ConsoleTracker:
    """Prints ``step:N - key:value - …``, the line that verl's console logger prints."""

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """Print the line to stdout; whoever read it may have gone."""
        with contextlib.suppress(BrokenPipeError):
            print(f"step:{step} - " + " - ".join(f"{key}:{value!r}" for key, value in metrics.items()), flush=True)

    def close(self) -> None:
        """Nothing is buffered."""


class JsonlTracker:
    """Appends ``{"step", "time", "metrics"}`` to a file, a line per step; what is not finite is null there."""

    def __init__(self, path: Path) -> None:
        self._stream = open_for_lines(path)

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """Append the line."""
        finite = {key: value if math.isfinite(value) else None for key, value in metrics.items()}
        self._stream.write(json.dumps({"step": step, "time": time.time(), "metrics": finite}) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class LinesTracker:
    """Appends the Python form of the metrics to a file, a line per step.

    That is what ``train_print_to_markdown_file_path`` does in a released AgentJet, its name notwithstanding.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """Append the line."""
        append_line(self._path, repr(metrics))

    def close(self) -> None:
        """Nothing is buffered."""


class TensorboardTracker:
    """Writes scalar summaries, by the tensorboard package alone."""

    def __init__(self, directory: Path) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        directory.mkdir(parents=True, exist_ok=True)
        self._writer = EventFileWriter(str(directory))

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """Add an event with all metrics."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=key, simple_value=value) for key, value in metrics.items()]
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
        self._writer.flush()

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()


class SwanlabTracker:
    """Writes a SwanLab run to the disk, without any network."""

    def __init__(self, directory: Path, project: str, experiment: str) -> None:
        import swanlab

        directory.mkdir(parents=True, exist_ok=True)
        self._run = swanlab.init(
            project=project, experiment_name=experiment, mode="offline", logdir=str(directory), reinit=True
        )

    def log(self, step: int, metrics: dict[str, float]) -> None:
        """Add the metrics to the run."""
        self._run.log(metrics, step=step)

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


def last_step(path: Path) -> int:
    """Return the step of the last whole line of a metrics file; -1 if there is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return -1
    for line in reversed(lines):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return int(json.loads(line)["step"])
    return -1


def open_trackers(
    loggers: tuple[str, ...], experiment_dir: Path, project: str, experiment: str, train_lines: Path | None = None
) -> list[Tracker]:
    """Return the trackers of a run; ``metrics.jsonl`` is always written.

    A logger that is not installed, or that needs the network, is warned of and left out: the
    metrics are in ``metrics.jsonl`` all the same.
    """
    makers: dict[str, Callable[[], Any]] = {
        "console": ConsoleTracker,
        "tensorboard": lambda: TensorboardTracker(experiment_dir / "tensorboard_log"),
        "swanlab": lambda: SwanlabTracker(experiment_dir / "swanlog", project, experiment),
    }
    trackers: list[Tracker] = [JsonlTracker(experiment_dir / METRICS)]
    if train_lines:
        trackers.append(LinesTracker(train_lines))
    for name in loggers:
        if name not in makers:
            log.warning("logger %r is not one of the reference engine's (%s): left out", name, ", ".join(makers))
            continue
        try:
            trackers.append(makers[name]())
        except Exception as error:
            log.warning("logger %r left out: %s", name, error)
    return trackers
