"""Fetched curves as files: Parquet, CSV and JSON, each with a sidecar that says where they came from."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from skillpack import __version__
from skillpack.files import write_atomically
from skillpack.metrics.series import OWN_COLUMNS, RunMetrics, renamed, status_document
from skillpack.script import BadInput

if TYPE_CHECKING:
    import pyarrow

Layout = Literal["wide", "long"]
FORMATS = ("parquet", "csv", "json")


def check_name(path: str | Path) -> str:
    """Return the format that a file name stands for. Raises BadInput."""
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise BadInput(f"cannot write {Path(path).name}", expected="a name that ends in .parquet, .csv or .json")
    return kind


def write_metrics(runs: Sequence[RunMetrics], path: str | Path, layout: Layout = "wide") -> tuple[Path, Path, int]:
    """Write the runs into one file, and its sidecar ``PATH.meta.json``; return both and the number of rows.

    A gap is a null (an empty cell in CSV); NaN and infinities stay what they are, in JSON as the
    texts "NaN", "Infinity" and "-Infinity". Raises BadInput and OSError.
    """
    kind = check_name(path)
    if kind == "json":
        content = json.dumps(json_document(runs), ensure_ascii=False, allow_nan=False).encode()
        rows = sum(len(run.steps) if layout == "wide" else run.meta["points"] for run in runs)
    else:
        table = wide_table(runs) if layout == "wide" else long_table(runs)
        content, rows = _encoded(table, kind), table.num_rows
    written = write_atomically(Path(path), content)
    sidecar = {
        "file": written.name,
        "format": kind,
        "layout": "columns by run" if kind == "json" else layout,
        "rows": rows,
        "sha256": hashlib.sha256(content).hexdigest(),
        "written_by": f"agentjet-skills {__version__}",
        "runs": [{**run.meta, "status": status_document(run.status)} for run in runs],
    }
    beside = written.with_name(written.name + ".meta.json")
    text = json.dumps(json_safe(sidecar), ensure_ascii=False, indent=2, allow_nan=False)
    return written, write_atomically(beside, text + "\n"), rows


def wide_table(runs: Sequence[RunMetrics]) -> pyarrow.Table:
    """Return one row per run and step: [``run``, ``run_name``,] ``step``, [the x axis,] a column per key.

    ``time`` as x axis is in UTC. A key that is called like one of the first columns gets ``(metric)`` behind its name.
    """
    import pyarrow

    tables = []
    for run in runs:
        columns: dict[str, Any] = {**_run_columns(run, runs, len(run.steps)), "step": pyarrow.array(run.steps)}
        for name, (values, present) in run.columns().items():
            column = renamed(name) if name in OWN_COLUMNS else name
            cells = pyarrow.array(values, mask=None if present is None else ~present)
            is_time = name == "time" and run.x == "time"
            columns[column] = cells.cast(pyarrow.timestamp("ms", "UTC")) if is_time else cells
        tables.append(pyarrow.table(columns))
    return pyarrow.concat_tables(tables, promote_options="default")


def long_table(runs: Sequence[RunMetrics]) -> pyarrow.Table:
    """Return one row per point: [``run``, ``run_name``,] ``key``, ``step``, ``value``, ``timestamp`` (UTC)."""
    import numpy
    import pyarrow

    tables = []
    for run in runs:
        for key, series in run.series.items():
            unknown = numpy.isnan(series.stamps)
            stamps = numpy.where(unknown, 0, series.stamps).astype("int64")
            tables.append(
                pyarrow.table(
                    {
                        **_run_columns(run, runs, len(series)),
                        "key": pyarrow.array([key] * len(series), "string"),
                        "step": pyarrow.array(series.steps),
                        "value": pyarrow.array(series.values),
                        "timestamp": pyarrow.array(stamps, mask=unknown).cast(pyarrow.timestamp("ms", "UTC")),
                    }
                )
            )
    return pyarrow.concat_tables(tables) if tables else pyarrow.table({"key": [], "step": [], "value": []})


def json_document(runs: Sequence[RunMetrics]) -> dict[str, Any]:
    """Return the runs column by column, JSON-safe: ``{"runs": [{"run", "name", "step", …, "series": {key: […]}}]}``."""
    documents = []
    for run in runs:
        document: dict[str, Any] = {
            "run": run.meta.get("run_id"),
            "name": run.label,
            "step": run.steps.tolist(),
            "series": {},
        }
        for name, (values, present) in run.columns().items():
            if name == "time" and run.x == "time":
                document["time"] = [f"{value}Z" for value in values]
                continue
            cells: list[float | str | None] = [json_number(value) for value in values.tolist()]
            if present is not None:
                cells = [cell if there else None for cell, there in zip(cells, present.tolist(), strict=True)]
            (document if name == "relative" and run.x == "relative" else document["series"])[name] = cells
        documents.append(document)
    return {"runs": documents}


def json_number(value: float) -> float | str:
    """Return a number as JSON can hold it: NaN and infinities as text."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def json_safe(value: Any) -> Any:
    """Return a document with every NaN and infinity as text, and what JSON does not know as its text."""
    if isinstance(value, dict):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_safe(item) for item in value]
    if isinstance(value, float):
        return json_number(value)
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


def _run_columns(run: RunMetrics, runs: Sequence[RunMetrics], length: int) -> dict[str, Any]:
    import pyarrow

    if len(runs) == 1:
        return {}
    names = {"run": str(run.meta.get("run_id") or ""), "run_name": run.label}
    return {column: pyarrow.array([name] * length, "string") for column, name in names.items()}


def _encoded(table: pyarrow.Table, kind: str) -> bytes:
    from pyarrow import csv, parquet

    buffer = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(table, buffer)
    else:
        csv.write_csv(table, buffer)
    return buffer.getvalue()
