"""What the metric commands say: short texts for people, documents for ``--json``."""

from __future__ import annotations

import json
import math
import tempfile
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skillpack.metrics.output import json_document, json_safe
from skillpack.metrics.plot import sparkline
from skillpack.metrics.series import KeyStatus, RunMetrics, Series, status_document
from skillpack.script import OUTPUT_LIMIT

INLINE_CELLS = 400
"""Values up to which a ``--json`` document holds them itself."""


def number(value: float | None, digits: int = 5) -> str:
    """Return a number in few characters."""
    if value is None:
        return "-"
    if math.isfinite(value) and value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.{digits}g}"


def heading(run: RunMetrics) -> list[str]:
    """Return the lines that name a run, its state and the way its points came."""
    meta = run.meta
    state = str(meta.get("state") or "")
    if meta.get("running"):
        state += " (more points may come)"
    named = " · ".join(text for text in (run.label, str(meta.get("run_id") or ""), state) if text)
    lines = [named, f"  {meta.get('url') or meta.get('source')}"]
    if meta.get("error"):
        return lines
    way = f"  {len(run.steps):,} steps, full resolution, by {meta.get('path')}"
    lines.append(way + (f"; {meta['from_cache']} keys from the cache" if meta.get("from_cache") else ""))
    if meta.get("clone_of"):
        lines.append(f"  a clone: its data is that of run {meta['clone_of']}")
    if meta.get("ends_early"):
        lines.append(f"  {meta['ends_early']}")
    if meta.get("pieces"):
        lines.append(
            f"  stitched from {len(meta['pieces'])} runs; {meta['points_replaced']} points replaced by later ones"
        )
    lines += [f"  {alias} = {key}" for alias, key in (meta.get("aliases") or {}).items()]
    return lines


def status_line(one: KeyStatus, series: Series | None, width: int) -> str:
    """Return one key's state, counts and shape in a line."""
    if series is None or not len(series):
        return f"  {one.state:<7} {padded(one.key, width)}  {explained(one)}"
    known = [f"{one.points:,} of {one.of:,} points", f"steps {one.first_step}–{one.last_step}"]
    known.append(f"last {number(float(series.values[-1]))}")
    known += [f"{count} {word}" for count, word in ((one.nan, "NaN"), (one.inf, "inf")) if count]
    if one.duplicates:
        known.append(f"{one.duplicates} repeated steps dropped")
    if one.why:
        known.append(explained(one))
    return f"  {one.state:<7} {padded(one.key, width)}  {sparkline(series.values, 24):<24}  {', '.join(known)}"


def explained(one: KeyStatus) -> str:
    """Return why a key is not ok, and what was probably meant."""
    hint = f"; did you mean {' or '.join(one.did_you_mean)}?" if one.did_you_mean else ""
    return one.why + hint


def fetch_text(runs: Sequence[RunMetrics], written: Iterable[str]) -> str:
    """Return the report of a fetch: per run its keys, then the files."""
    lines: list[str] = []
    for run in runs:
        lines += heading(run)
        width = min(44, max((columns_of(key) for key in run.status), default=0))
        lines += [status_line(one, run.series.get(key), width) for key, one in run.status.items()]
    return "\n".join([*lines, *written])


def fetch_document(runs: Sequence[RunMetrics], files: Mapping[str, str]) -> dict[str, Any]:
    """Return the same as a document; the values are in it only if they are few and no file was asked for.

    A document that is too long to print goes to a file, which the short one in its place names.
    """
    cells = sum(len(run.steps) * max(1, len(run.series)) for run in runs)
    document = {
        "ok": all(run.ok for run in runs),
        "runs": [{**_without_config(run.meta), "status": status_document(run.status)} for run in runs],
        "files": dict(files),
    }
    if "out" not in files and cells <= INLINE_CELLS:
        document["data"] = json_document(runs)["runs"]
    return _fitted(json_safe(document))


def _fitted(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document, or where it is too long to print, one without the keys that are ok, which names its file."""
    whole = json.dumps(document, ensure_ascii=False, indent=2)
    if len(whole) < OUTPUT_LIMIT:
        return document
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="swanlab-fetch-", suffix=".json", delete=False
    ) as report:
        report.write(whole)
    runs = []
    for run in document["runs"]:
        faults = [one for one in run["status"] if one["state"] != "ok"]
        runs.append({**run, "status": faults, "keys_ok": len(run["status"]) - len(faults)})
    return {"ok": document["ok"], "runs": runs, "files": {**document["files"], "report": report.name}}


def _without_config(meta: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration can have a thousand entries: it is in the sidecar, and ``compare`` shows what differs."""
    return {name: value for name, value in meta.items() if name != "config"}


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], left: Sequence[str] = ("key", "run")) -> str:
    """Return rows as aligned text columns."""
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(column), *(columns_of(row[i]) for row in cells), 0) for i, column in enumerate(columns)]
    lines = [list(columns), *cells]
    return "\n".join(
        "  ".join(
            padded(text, width, right=column not in left)
            for text, width, column in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in lines
    )


def printable(text: str) -> str:
    """Return a text whose control characters are escaped: names come from a server, and a terminal obeys them."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Fill a text up to a number of terminal columns, on its right or (``right``) on its left."""
    blanks = " " * (width - columns_of(text))
    return blanks + text if right else text + blanks


def columns_of(text: str) -> int:
    """Return how many terminal columns a text takes: a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _cell(value: Any) -> str:
    return number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value or "-")
