"""Collect a run into ``report.md``, ``report.json``, ``metrics.csv`` and ``curves.png``, from files alone."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from skillpack import rendering
from skillpack.blueprint.durations import format_duration
from skillpack.files import write_atomically
from skillpack.runs.diagnose import diagnose
from skillpack.runs.metrics import Table, read_metrics, summarise, validation_table, write_csv
from skillpack.runs.progress import Progress
from skillpack.runs.rundir import RunDir, read_json
from skillpack.runs.status import Status, observe
from skillpack.script import ScriptError
from skillpack.triage.remedy import config_lookup

CURVES = (
    "critic/rewards/mean",
    "critic/score/mean",
    "critic/success_rate",
    "task_pass_rate@1",
    "actor/entropy",
    "actor/kl_loss",
    "actor/grad_norm",
    "response_length/mean",
    "response_length/clip_ratio",
    "timing_s/step",
)
VALIDATION_KEYS = ("global_steps", "task_pass_rate@1", "mean_reward", "std_reward", "total_tasks")


def collect(run: RunDir) -> dict[str, Any]:
    """Write a run's report and return it (the document of ``report.json``). Raises BadInput or OSError."""
    status = observe(run)
    record = status.record
    progress = Progress.of(run, record)
    progress.refresh(whole=not status.alive)
    verdict = diagnose(run, status, progress)
    table = read_metrics(run, record)
    notes: list[str] = []
    document: dict[str, Any] = {
        "id": record["id"],
        "dir": str(run.path),
        "purpose": record["purpose"],
        "mode": record["mode"],
        "state": status.state,
        "reason": status.reason,
        "attempt": record["attempt"],
        "seconds": status.elapsed(),
        "started": record.get("started"),
        "ended": record.get("ended"),
        "exit_code": status.exit_code,
        "steps": _steps(table, verdict.steps),
        "verdict": verdict.verdict,
        "causes": verdict.causes,
        "health": [asdict(finding) for finding in verdict.health],
        "metrics": summarise(table),
        "validation": _validation(run, record, table),
        "git": record.get("git"),
        "versions": _versions(record, notes),
        "attempts": _text(run.attempts),
    }
    document["config_diff"], document["config_note"] = _config_diff(run, record)
    if table:
        write_csv(table, run.path / "metrics.csv")
    document["curves"] = _draw(run, table, notes)
    document["notes"] = notes
    document["files"] = _files(run)
    write_atomically(run.path / "report.md", render(document))
    write_atomically(
        run.path / "report.json", json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    )
    return document


def _steps(table: Table, told: dict[str, Any]) -> dict[str, Any]:
    median = told["median_seconds"]
    return {
        "count": len(table),
        "first": min(table, default=None),
        "last": max(table, default=None),
        "total": told["total"],
        "median_seconds": None if median is None else round(median, 3),
    }


def _validation(run: RunDir, record: dict[str, Any], table: Table) -> list[dict[str, Any]]:
    """Return the validation passes: from the file that the configuration names, else from the metric lines."""
    named = config_lookup(run.configuration(record))("ajet.trainer_common.val_print_to_markdown_file_path")
    rows: list[dict[str, Any]] = []
    if named:
        rows = list(validation_table(Path(record["spec"].get("codebase_dir") or run.path) / str(named)))
    if not rows:
        rows = [
            {"global_steps": step, **values} for step, values in sorted(table.items()) if "task_pass_rate@1" in values
        ]
    kept = [{key: row[key] for key in VALIDATION_KEYS if key in row} for row in rows]
    return [{key: _plain(value) for key, value in row.items()} for row in kept if len(row) > 1]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _versions(record: dict[str, Any], notes: list[str]) -> dict[str, str]:
    from skillpack.blueprint.lint_files import probe_python

    python = record["spec"].get("venv_exe")
    told = probe_python(Path(python), None) if python and record["backend"]["kind"] == "local" else None
    if told is None:
        notes.append("versions: the interpreter of exp_venv_exe does not answer here")
        return {}
    return {"python": told["python"], **told["versions"]}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").removeprefix("# Attempts").strip() if path.exists() else ""


def _config_diff(run: RunDir, record: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Return what the run's configuration sets to something else than the defaults, and a note if it is unknown."""
    path = run.configuration(record)
    if path is None:
        return [], "the configuration was not there when the run started"
    from skillpack.config.keys import all_keys
    from skillpack.config.sources import read_source

    try:
        source = read_source(path)
    except (ScriptError, OSError) as error:
        return [], f"the configuration cannot be read: {error}"
    known = all_keys()
    rows = []
    for key in source.config:
        default = known[key].default(source.mode) if key in known else None
        if source.is_users(key) and key.split(".")[0] not in ("defaults", "hydra") and source.config[key] != default:
            rows.append({"key": key, "value": source.config[key], "default": default})
    return rows, ""


def _draw(run: RunDir, table: Table, notes: list[str]) -> str | None:
    """Draw the curves that people look at first; what prevents that is a note, not a failure."""
    keys = [key for key in CURVES if any(key in values for values in table.values())]
    if len(table) < 2 or not keys:
        return None
    try:
        import pandas

        from skillpack.metrics.plot import draw

        frame = pandas.DataFrame.from_dict(table, orient="index").sort_index()
        draw(frame, run.path / "curves.png", keys=keys, title=run.path.name)
    except (ImportError, ScriptError) as error:
        notes.append(f"curves: {error}")
        return None
    return "curves.png"


def _files(run: RunDir) -> list[str]:
    skipped = {"report.md", "report.json", "finish.flag", "progress.json", "heartbeat.json"}
    names = [path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file()]
    return sorted(name for name in names if not name.startswith(".") and name not in skipped)[:100]


def render(document: dict[str, Any]) -> str:
    """Return the report in Markdown."""
    title = document["purpose"].splitlines()[0][:80] if document["purpose"] else document["id"]
    seconds = document["seconds"]
    time_text = format_duration(seconds) if seconds is not None else "time unknown"
    text = rendering.render("run_report.md.jinja", **document, title=title, time_text=time_text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def report_is_current(run: RunDir, status: Status) -> bool:
    """Tell whether ``report.json`` is about this attempt, as it ended."""
    report = read_json(run.path / "report.json")
    return (
        report.get("id") == status.record["id"]
        and report.get("state") == status.state
        and (run.path / "report.md").exists()
    )
