"""A run's metrics out of its logs: the steps, a table of them, the validation passes."""

from __future__ import annotations

import ast
import csv
import io
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skillpack.files import write_atomically
from skillpack.metrics.console import merge_steps, read_steps
from skillpack.runs.rundir import RunDir

Table = dict[int, dict[str, float]]
_NUMPY = re.compile(r"\b(?:np|numpy)\.\w+\(([^()]*)\)")
_NOT_FINITE = re.compile(r": -?(?:nan|inf)\b")


def read_metrics(run: RunDir, record: dict[str, Any]) -> Table:
    """Return step -> key -> value from the logs of a run's parts. Raises OSError."""
    count = len(record["parts"])
    logs = [run.log_of(part["name"], count) for part in record["parts"]]

    def every() -> Iterator[tuple[int, dict[str, float]]]:
        for log in logs:
            if log.exists():
                yield from read_steps(log)

    return merge_steps(every())[0]


def write_csv(table: Table, path: Path) -> Path:
    """Write a table with a column per key and a row per step; gaps are empty. Raises OSError."""
    keys = list(dict.fromkeys(key for values in table.values() for key in values))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["step", *keys])
    for step in sorted(table):
        writer.writerow([step, *(repr(table[step][key]) if key in table[step] else "" for key in keys)])
    return write_atomically(path, out.getvalue())


def summarise(table: Table) -> list[dict[str, Any]]:
    """Return the figures of every key (see ``metrics.stats.summarize``), NaN and infinity as None; [] without numpy."""
    try:
        from skillpack.metrics.series import Series
        from skillpack.metrics.stats import summarize

        keys = list(dict.fromkeys(key for values in table.values() for key in values))
        rows = []
        for key in keys:
            points = [(step, values[key], math.nan) for step, values in table.items() if key in values]
            rows.append(summarize(Series.of(key, points)))
    except ImportError:
        return []
    return [{name: _json_number(value) for name, value in row.items()} for row in rows]


def _json_number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def validation_table(path: Path) -> list[dict[str, float | str]]:
    """Return the passes of a ``*_print_to_markdown_file_path`` file: despite the name, a Python dict per line.

    Lines that are none are passed over; a missing file gives [].
    """
    rows: list[dict[str, float | str]] = []
    if not path.is_file():
        return rows
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            told = ast.literal_eval(_NOT_FINITE.sub(": None", _NUMPY.sub(r"\1", line.strip())))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(told, dict):
            rows.append({str(key): value for key, value in told.items() if isinstance(value, (int, float, str))})
    return rows
