#!/usr/bin/env python3
"""Fetch the metric curves of SwanLab runs, complete and with a state for every key."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True
import _pack

_pack.enter(__file__)

from pathlib import Path
from typing import Any, Callable  # noqa: UP035

import click

from skillpack.script import NO, UNAVAILABLE, BadInput, Command, Group, emit, json_option, run

CODES = {
    NO: "an asked key is missing, empty or failed, or a run cannot be had",
    UNAVAILABLE: "host, API key, network or package is missing",
}
DEFAULT = "get"


class Fetch(Group):
    """A group whose command may be left out: then it is the fetch itself."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the fetch itself in front of what names no command."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """Show the help of the fetch, then the other commands."""
        command = self.commands[DEFAULT]
        with click.Context(command, info_name=ctx.info_name) as inner:
            text = command.get_help(inner)
        formatter = ctx.make_formatter()
        with formatter.section("Other commands (fetch.py COMMAND --help)"):
            formatter.write_dl(
                [(name, other.get_short_help_str(90)) for name, other in self.commands.items() if name != DEFAULT]
            )
        return text + "\n\n" + formatter.getvalue().rstrip()


def options(*choices: Callable) -> Callable:
    """Apply several options to a command, in the order given."""

    def apply(function: Callable) -> Callable:
        for choice in reversed(choices):
            function = choice(function)
        return function

    return apply


def _keys(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> str | None:
    return ",".join(given) or None


targets_argument = click.argument("targets", metavar="URL...", nargs=-1, required=True)
keys_option = click.option(
    "--keys", multiple=True, callback=_keys, help="Keys, aliases (reward, entropy, kl …) or patterns, with commas."
)
window_options = options(
    click.option("--x", default="step", metavar="step|time|relative|KEY", help="The x axis. [step]"),
    click.option("--from", "start", metavar="X", help="First x (time: ISO 8601 or Unix seconds)."),
    click.option("--to", "end", metavar="X", help="Last x."),
    click.option("--tail", type=int, metavar="N", help="Only the last N steps."),
)
source_options = options(
    click.option(
        "--duplicates", type=click.Choice(["first", "last"]), default="first", help="Which of repeated steps."
    ),
    click.option("--only", default="*", metavar="PATTERN", help="Of a project, the runs with this name or id."),
    click.option("--most", default=50, show_default=True, help="Runs of a project to take at most."),
    click.option("--host", metavar="ORIGIN", help="Host of a bare USER/PROJECT/RUN.", envvar="SWANLAB_API_HOST"),
    click.option("--refresh", is_flag=True, help="Fetch again what the cache has."),
    click.option("--no-cache", is_flag=True, help="Neither read nor write the cache."),
    click.option("--offline", is_flag=True, help="Only the cache, no network."),
    click.option("--workers", type=click.IntRange(1, 16), default=4, show_default=True, help="Parallel requests."),
    click.option("--retries", type=click.IntRange(0, 10), default=4, show_default=True, help="Repeats per request."),
)
layout_option = click.option("--layout", type=click.Choice(["wide", "long"]), default="wide", show_default=True)
output_options = options(
    click.option("--out", type=click.Path(dir_okay=False), help="Write the series: FILE.parquet, .csv or .json."),
    click.option("--plot", type=click.Path(dir_okay=False), help="Draw the curves: FILE.png, .svg or .pdf."),
    click.option("--smooth", type=float, default=0.6, show_default=True, help="EMA weight in the plot, 0 for none."),
    click.option("--log-y", is_flag=True, help="Logarithmic y axis."),
    click.option("--log-x", is_flag=True, help="Logarithmic x axis."),
)


def _note(text: str) -> None:
    click.echo(text, err=True)


class _Progress:
    """A bar on stderr, where that is a terminal."""

    def __init__(self) -> None:
        self.bar: Any = None

    def __call__(self, to_come: int, done: int) -> None:
        if not sys.stderr.isatty():
            return
        if self.bar is None:
            self.bar = click.progressbar(length=0, label="fetching keys", file=sys.stderr)
            self.bar.__enter__()
        self.bar.length += to_come
        self.bar.update(done)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.__exit__(None, None, None)


def _window(given: dict[str, Any]) -> Any:
    from skillpack.metrics.window import Window

    return Window(given.get("x", "step"), given.get("start"), given.get("end"), given.get("tail"))


def _fetch_options(given: dict[str, Any]) -> dict[str, Any]:
    from skillpack.metrics.session import Retries

    return {
        "duplicates": given["duplicates"],
        "host": given["host"],
        "refresh": given["refresh"],
        "cache": not given["no_cache"],
        "offline": given["offline"],
        "workers": given["workers"],
        "retries": Retries(given["retries"]),
        "note": _note,
    }


def _load(targets: tuple[str, ...], keys: str | None, given: dict[str, Any], media: bool = False) -> list[Any]:
    """Return the runs of the targets, in their order: local paths are read, the rest is fetched."""
    window = _window(given)
    local = [target for target in targets if "://" not in target and Path(target).expanduser().exists()]
    remote = [target for target in targets if target not in local]
    runs: list[Any] = []
    if local:
        from skillpack.metrics.local import read_local

        for target in local:
            runs += read_local(target, keys, window=window, duplicates=given["duplicates"])
    if remote:
        from skillpack.metrics.fetch import fetch_runs

        progress = _Progress()
        try:
            runs += fetch_runs(remote, keys, window=window, only=given["only"], most=given["most"],
                               media=media, progress=progress, **_fetch_options(given))  # fmt: skip
        finally:
            progress.close()
    return runs


def _deliver(runs: list[Any], given: dict[str, Any], as_json: bool) -> None:
    """Write the files that were asked for, report, and end with 1 if a key is not what was asked."""
    from skillpack.metrics.report import fetch_document, fetch_text

    files: dict[str, str] = {}
    written: list[str] = []
    with_points = [one for one in runs if one.series]
    if given["out"] and with_points:
        from skillpack.metrics.output import write_metrics

        path, sidecar, rows = write_metrics(with_points, given["out"], given["layout"])
        files.update(out=str(path), sidecar=str(sidecar))
        written.append(f"wrote {path} ({rows:,} rows, {given['layout']}) and {sidecar.name}")
    if given["plot"] and with_points:
        from skillpack.metrics.plot import draw

        title = with_points[0].label if len(with_points) == 1 else ""
        path = draw(with_points, given["plot"], title=title, x_label=_axis_name(given["x"]), smooth=given["smooth"],
                    log_x=given["log_x"], log_y=given["log_y"])  # fmt: skip
        files["plot"] = str(path)
        written.append(f"drew {path}")
    _print(fetch_document(runs, files), as_json=as_json, text=lambda: fetch_text(runs, written))
    _end(runs)


def _print(document: Any, as_json: bool, text: Callable) -> None:
    from skillpack.metrics.report import printable

    emit(document, as_json=as_json, text=lambda: printable(text()))


def _axis_name(x: str) -> str:
    return {"time": "time (UTC)", "relative": "seconds since the first point"}.get(x, x)


def _end(runs: list[Any]) -> None:
    if not all(one.ok for one in runs):
        raise click.exceptions.Exit(NO)


def _check_files(given: dict[str, Any]) -> None:
    """Refuse an unusable file name before anything is fetched."""
    from skillpack.metrics.output import check_name
    from skillpack.metrics.plot import check_picture

    if given.get("out"):
        check_name(given["out"])
    if given.get("plot"):
        check_picture(given["plot"])


@click.group("fetch.py", cls=Fetch)
def command() -> None:
    """Fetch the metric curves of SwanLab runs."""


@command.command(
    DEFAULT,
    cls=Command,
    hidden=True,
    example="fetch.py https://swanlab.cn/@user/project/runs/abc123 --keys reward,entropy,'critic/*' "
    "--out metrics.parquet --plot curves.png",
    exit_codes=CODES,
)
@targets_argument
@keys_option
@output_options
@layout_option
@window_options
@click.option("--stitch", is_flag=True, help="Join the runs as pieces of one resumed training; later pieces win.")
@source_options
@json_option
def get(targets: tuple[str, ...], keys: str | None, stitch: bool, as_json: bool, **given: Any) -> None:
    """Fetch the full-resolution curves of SwanLab runs, with a state for every key.

    URL is a run or project page in any shape, or USER/PROJECT/RUN; a project stands for all of its
    runs. The API key comes from SWANLAB_API_KEY or the host's netrc entry.
    """
    _check_files(given)
    runs = _load(targets, keys, given)
    if stitch:
        from skillpack.metrics.stats import stitch as join

        runs = [join(runs)]
    _deliver(runs, given, as_json)


@command.command("keys", cls=Command, example="fetch.py keys https://swanlab.cn/@user/project/runs/abc123",
                 exit_codes=CODES)  # fmt: skip
@targets_argument
@click.option("--quick", is_flag=True, help="Only names and last values: no counts, nothing is downloaded.")
@click.option("--system", is_flag=True, help="SwanLab's own keys (CPU, GPU, memory) too.")
@source_options
@json_option
def list_keys(targets: tuple[str, ...], quick: bool, system: bool, as_json: bool, **given: Any) -> None:
    """List a run's keys with the last value and the number of points of each."""
    from skillpack.metrics.listing import ALL_KEYS, describe_keys, describe_series, keys_text

    if quick:
        documents = describe_keys(targets, system=system, **_fetch_options(given))
    else:
        documents = describe_series(_load(targets, ALL_KEYS if system else None, given, media=True))
    _print({"runs": documents}, as_json=as_json, text=lambda: keys_text(documents))


@command.command("runs", cls=Command, example="fetch.py runs https://swanlab.cn/@user/project", exit_codes=CODES)
@click.argument("project", metavar="URL")
@source_options
@json_option
def list_runs(project: str, as_json: bool, **given: Any) -> None:
    """List the runs of a project."""
    from skillpack.metrics.listing import describe_runs, runs_text

    documents = describe_runs(project, given["only"], **_fetch_options(given))
    _print({"runs": documents}, as_json=as_json, text=lambda: runs_text(documents))


@command.command("summary", cls=Command, example="fetch.py summary https://swanlab.cn/@user/project/runs/abc123 "
                 "--keys reward,kl", exit_codes=CODES)  # fmt: skip
@targets_argument
@keys_option
@click.option("--best", type=click.Choice(["auto", "max", "min"]), default="auto", show_default=True,
              help="What best means; auto: the minimum of losses, errors, KL and times.")  # fmt: skip
@window_options
@source_options
@json_option
def summary(targets: tuple[str, ...], keys: str | None, best: Any, as_json: bool, **given: Any) -> None:
    """Print first, last, min, max, mean, std, best@step, slope per 1,000 steps and NaN count per key."""
    from skillpack.metrics.listing import summarize_runs, summary_text

    runs = _load(targets, keys, given)
    documents = summarize_runs(runs, best)
    _print({"ok": all(one.ok for one in runs), "runs": documents}, as_json=as_json,
         text=lambda: summary_text(documents))  # fmt: skip
    _end(runs)


@command.command("compare", cls=Command, example="fetch.py compare URL1 URL2 URL3 --keys reward --plot band.png",
                 exit_codes=CODES)  # fmt: skip
@targets_argument
@keys_option
@output_options
@window_options
@source_options
@json_option
def compare(targets: tuple[str, ...], keys: str | None, as_json: bool, **given: Any) -> None:
    """Align several runs: where each ends, mean and std over the runs, and how their configurations differ."""
    from skillpack.metrics.compare import compare_runs, comparison_text, draw_comparison, write_comparison

    _check_files(given)
    runs = _load(targets, keys, given)
    if len([one for one in runs if one.series]) < 2:
        raise BadInput("a comparison needs at least two runs with points", hint="give more URLs, or a project's")
    document, aligned = compare_runs(runs)
    if given["out"]:
        document["files"].update(write_comparison(aligned, runs, given["out"]))
    if given["plot"]:
        path = draw_comparison(aligned, given["plot"], x_label=_axis_name(given["x"]), smooth=given["smooth"],
                               log_x=given["log_x"], log_y=given["log_y"])  # fmt: skip
        document["files"]["plot"] = str(path)
    _print(document, as_json=as_json, text=lambda: comparison_text(document))
    _end(runs)


@command.command("local", cls=Command, example="fetch.py local swanlog/run-20260301_080000-abc123 --keys reward",
                 exit_codes={NO: CODES[NO], UNAVAILABLE: "a run file that needs another SDK"})  # fmt: skip
@click.argument("path", metavar="DIR", type=click.Path())
@keys_option
@output_options
@layout_option
@window_options
@click.option("--duplicates", type=click.Choice(["first", "last"]), default="first", help="Which of repeated steps.")
@json_option
def local(path: str, keys: str | None, as_json: bool, **given: Any) -> None:
    """Read curves from a .swanlab file, a run folder, a folder of them, or a console log, without any network."""
    from skillpack.metrics.local import read_local

    _check_files(given)
    runs = read_local(path, keys, window=_window(given), duplicates=given["duplicates"])
    _deliver(runs, given, as_json)


@command.command("sparkline", cls=Command, example="fetch.py sparkline https://swanlab.cn/@user/project/runs/abc123 "
                 "--keys reward", exit_codes=CODES)  # fmt: skip
@targets_argument
@keys_option
@click.option("--width", type=click.IntRange(8, 200), default=60, show_default=True)
@window_options
@source_options
@json_option
def sparklines(targets: tuple[str, ...], keys: str | None, width: int, as_json: bool, **given: Any) -> None:
    """Draw each curve as one line of the terminal."""
    from skillpack.metrics.listing import sparkline_rows, sparkline_text

    runs = _load(targets, keys, given)
    rows = sparkline_rows(runs, width)
    _print({"ok": all(one.ok for one in runs), "curves": rows}, as_json=as_json, text=lambda: sparkline_text(rows))
    _end(runs)


if __name__ == "__main__":
    run(command)
