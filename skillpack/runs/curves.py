"""The command line of ``curves.py``: metric curves of runs and logs, as a picture and in the terminal."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import click

from skillpack.script import NO, UNAVAILABLE, YES, BadInput, Command, emit, json_option


@click.command(
    "curves",
    cls=Command,
    example="scripts/curves.py DIR --keys 'critic/rewards/mean,actor/*' --out curves.png",
    exit_codes={
        YES: "drawn",
        NO: "a key that was asked for is not there",
        UNAVAILABLE: "pandas or matplotlib is missing",
    },
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--keys", help="Keys or patterns, separated by commas (default: the usual ones).")
@click.option("--out", type=click.Path(path_type=Path), help="A .png, .svg or .pdf file (default: terminal only).")
@click.option("--smooth", default=0.9, show_default=True, help="Weight of the past in the smoothed curve; 0: none.")
@json_option
def curves_command(paths: tuple[Path, ...], keys: str | None, out: Path | None, smooth: float, as_json: bool) -> None:
    """Draw the metric curves of runs and console logs, several in one picture to compare."""
    import sys

    from skillpack.metrics.plot import sparkline
    from skillpack.runs.collect import CURVES
    from skillpack.runs.metrics import Table

    tables: dict[str, Table] = {}
    for path in paths:
        name, table = _read(path)
        tables[name if name not in tables else str(path)] = table
    known = list(dict.fromkeys(key for table in tables.values() for values in table.values() for key in values))
    if not known:
        raise BadInput(
            "there is no metric line in these logs", expected="lines such as step:7 - critic/rewards/mean:0.5"
        )
    asked = [one.strip() for one in keys.split(",") if one.strip()] if keys else [key for key in CURVES if key in known]
    chosen = [key for one in asked for key in fnmatch.filter(known, one)] or ([] if keys else known[:12])
    missing = [one for one in asked if keys and not fnmatch.filter(known, one)]
    rows = [_row(name, key, table) for key in dict.fromkeys(chosen) for name, table in tables.items()]
    rows = [row for row in rows if row["points"]]
    document: dict[str, Any] = {
        "runs": list(tables),
        "curves": rows,
        "missing": missing,
        "picture": str(_draw(tables, list(dict.fromkeys(chosen)), out, smooth)) if out and chosen else None,
    }
    width = max((len(row["key"]) for row in rows), default=0)
    lines = []
    for row in rows:
        values = [tables[row["run"]][step].get(row["key"], float("nan")) for step in sorted(tables[row["run"]])]
        whose = f"  {row['run']}" if len(tables) > 1 else ""
        ends = f"{_shown(row['first'])} -> {_shown(row['last'])}"
        lines.append(f"{row['key']:<{width}}  {sparkline(values)}  {ends}{whose}")
    lines += [f"not there: {one}" for one in missing]
    lines += [f"drawn: {document['picture']}"] if document["picture"] else []
    emit(document, as_json=as_json, text="\n".join(lines))
    sys.exit(NO if missing else YES)


def _read(path: Path) -> tuple[str, Any]:
    """Return the name and the steps of a run's directory or of a log."""
    from skillpack.metrics.console import merge_steps, read_steps
    from skillpack.runs.metrics import read_metrics
    from skillpack.runs.rundir import RunDir

    path = path.expanduser().absolute()
    if path.is_file() and path.name != "run.json":
        return path.stem, merge_steps(read_steps(path))[0]
    run = RunDir.existing(path)
    return run.path.name, read_metrics(run, run.read())


def _row(name: str, key: str, table: Any) -> dict[str, Any]:
    import math

    values = [table[step][key] for step in sorted(table) if key in table[step]]
    ends = [value if math.isfinite(value) else None for value in (values[:1] + values[-1:])]
    return {
        "run": name,
        "key": key,
        "points": len(values),
        "first": ends[0] if ends else None,
        "last": ends[-1] if ends else None,
    }


def _shown(value: float | None) -> str:
    return "NaN" if value is None else f"{value:.4g}"


def _draw(tables: Any, keys: list[str], out: Path, smooth: float) -> Path:
    from skillpack.metrics.plot import check_picture, draw
    from skillpack.script import Unavailable

    check_picture(out)
    try:
        import pandas
    except ImportError as error:
        raise Unavailable(f"pandas is not installed ({error})", hint="pip install 'agentjet-skills[swanlab]'") from None
    frames = {name: pandas.DataFrame.from_dict(table, orient="index").sort_index() for name, table in tables.items()}
    return draw(frames, out, keys=keys, smooth=smooth)
