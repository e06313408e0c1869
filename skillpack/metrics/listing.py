"""What ``keys``, ``runs``, ``summary`` and ``sparkline`` tell: documents, and texts made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from skillpack.metrics.fetch import Fetcher, Options
from skillpack.metrics.output import json_safe
from skillpack.metrics.plot import sparkline
from skillpack.metrics.report import columns_of, explained, number, padded, table
from skillpack.metrics.select import SYSTEM_PREFIX
from skillpack.metrics.series import RunMetrics, iso
from skillpack.metrics.stats import Direction, summarize
from skillpack.metrics.urls import parse_place
from skillpack.script import BadInput

ALL_KEYS = f"*,{SYSTEM_PREFIX}*"
SUMMARY_COLUMNS = ("key", "first", "last", "min", "max", "mean", "std", "best", "best_step", "slope", "nan", "count")


def describe_runs(project: str, only: str, **options: Any) -> list[dict[str, Any]]:
    """Return id, name, state, creation and address of a project's runs. Raises as ``fetch_runs``."""
    fetcher = Fetcher(Options(**options))
    place = parse_place(project, host=fetcher.options.host)
    if place.run is not None:
        raise BadInput(f"{place.url} is a run, not a project", expected="https://HOST/@USER/PROJECT")
    return [
        {
            "id": run.slug or run.cuid,
            "name": run.name,
            "state": run.state,
            "created": iso(run.created),
            "url": run.place.url,
        }
        for run in fetcher.list_runs(place)
        if any(fnmatchcase(text, only) for text in (run.name, run.slug, run.cuid) if text)
    ]


def runs_text(documents: Sequence[dict[str, Any]]) -> str:
    """Return the runs as a table."""
    if not documents:
        return "no runs"
    return table(documents, ("id", "state", "created", "name", "url"), left=("id", "state", "created", "name", "url"))


def describe_keys(targets: Iterable[str], *, system: bool, **options: Any) -> list[dict[str, Any]]:
    """Return per run its keys with the last point of each, without downloading any curve. Raises as ``fetch_run``."""
    fetcher = Fetcher(Options(**options))
    documents = []
    for place in fetcher.expand([parse_place(target, host=fetcher.options.host) for target in targets]):
        run, scalar, media, last = fetcher.keys(place)
        rows: list[dict[str, Any]] = []
        for key in scalar:
            if system or not key.startswith(SYSTEM_PREFIX):
                step, value = last.get(key, (None, None))
                rows.append({"key": key, "kind": "scalar", "last": value, "last_step": step})
        rows += [{"key": key, "kind": "media"} for key in media]
        documents.append({"name": run.name, "run_id": run.cuid, "state": run.state, "url": place.url, "keys": rows})
    safe: list[dict[str, Any]] = json_safe(documents)
    return safe


def describe_series(runs: Iterable[RunMetrics]) -> list[dict[str, Any]]:
    """Return per run its keys with last value, last step and number of points, from the curves themselves."""
    documents = []
    for run in runs:
        rows: list[dict[str, Any]] = []
        for key, one in run.status.items():
            row: dict[str, Any] = {"key": key, "kind": "scalar", "count": one.points}
            if one.points:
                row.update(last=float(run.series[key].values[-1]), last_step=one.last_step)
            if not one.ok:
                row.update(state=one.state, why=explained(one))
            rows.append(row)
        rows += [{"key": key, "kind": "media"} for key in run.meta.get("media_keys") or ()]
        documents.append({**_named(run), "keys": rows})
    safe: list[dict[str, Any]] = json_safe(documents)
    return safe


def keys_text(documents: Iterable[dict[str, Any]]) -> str:
    """Return the keys of each run as a table."""
    lines: list[str] = []
    for document in documents:
        lines.append(f"{_heading(document)} · {len(document['keys'])} keys")
        columns = ["key", "last", "last_step", "count"]
        if not any("count" in row for row in document["keys"]):
            columns.pop()
        if any("why" in row for row in document["keys"]):
            columns.append("why")
        rows = [{**row, "last": row["kind"] if row["kind"] == "media" else row.get("last")} for row in document["keys"]]
        lines.append(table(rows, columns, left=("key", "why")))
    return "\n".join(lines)


def summarize_runs(runs: Iterable[RunMetrics], best: Direction) -> list[dict[str, Any]]:
    """Return per run the figures of each curve, and the state of each key that has none."""
    documents = []
    for run in runs:
        figures = [summarize(run.series[key], best) for key, one in run.status.items() if one.points]
        absent = [
            {"key": key, "state": one.state, "why": explained(one)} for key, one in run.status.items() if not one.ok
        ]
        documents.append({**_named(run), "aliases": run.meta.get("aliases") or {}, "keys": figures, "not_ok": absent})
    return documents


def summary_text(documents: Iterable[dict[str, Any]]) -> str:
    """Return the figures of each run as a table."""
    lines: list[str] = []
    for document in documents:
        lines.append(_heading(document))
        lines += [f"  {alias} = {key}" for alias, key in document["aliases"].items()]
        if document["keys"]:
            lines.append(table(document["keys"], SUMMARY_COLUMNS))
        lines += [f"  {row['state']}  {row['key']}  {row['why']}" for row in document["not_ok"]]
    return "\n".join(lines)


def sparkline_rows(runs: Iterable[RunMetrics], width: int) -> list[dict[str, Any]]:
    """Return one row per run and key: its shape in block characters, and what its ends are."""
    rows: list[dict[str, Any]] = []
    for run in runs:
        for key, one in run.status.items():
            row: dict[str, Any] = {"run": run.label, "key": key, "state": one.state}
            if one.points:
                figures = summarize(run.series[key])
                row["sparkline"] = sparkline(run.series[key].values, width)
                row.update({name: figures[name] for name in ("first", "last", "min", "max")}, points=one.points)
            else:
                row["why"] = explained(one)
            rows.append(row)
    return rows


def sparkline_text(rows: Sequence[dict[str, Any]]) -> str:
    """Return the sparklines, one per line, under the name of their run."""
    lines: list[str] = []
    width = min(44, max((columns_of(row["key"]) for row in rows), default=0))
    for place, row in enumerate(rows):
        if place == 0 or rows[place - 1]["run"] != row["run"]:
            lines.append(row["run"])
        if "sparkline" in row:
            ends = f"{number(row['first'])} → {number(row['last'])}  [{number(row['min'])}, {number(row['max'])}]"
            lines.append(f"  {padded(row['key'], width)}  {row['sparkline']}  {ends}")
        else:
            lines.append(f"  {padded(row['key'], width)}  {row['state']}: {row['why']}")
    return "\n".join(lines)


def _heading(document: dict[str, Any]) -> str:
    """Return what names a run: a log has neither id nor state."""
    return " · ".join(str(document[part]) for part in ("name", "run_id", "state") if document[part])


def _named(run: RunMetrics) -> dict[str, Any]:
    meta = run.meta
    return {
        "name": run.label,
        "run_id": meta.get("run_id"),
        "state": meta.get("state"),
        "url": meta.get("url") or meta.get("source"),
    }
