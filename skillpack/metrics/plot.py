"""Pictures of curves: a panel per key, a line per run, raw and smoothed; and one-line sparklines.

matplotlib is used without pyplot, so no display is needed and no state is left behind.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillpack.files import write_atomically
from skillpack.metrics.series import unique_label
from skillpack.script import BadInput, Unavailable

if TYPE_CHECKING:
    import numpy
    import pandas

    from skillpack.metrics.series import RunMetrics

FORMATS = ("png", "svg", "pdf")
MOST_PANELS = 64
DRAWN_POINTS = 4000
"""Points of a line beyond which only the lowest and highest per stretch are drawn; the eye sees the same."""
SMOOTH_FROM = 10
"""Points below which a curve is not smoothed."""
CJK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Noto Sans CJK JP",
    "Noto Sans CJK TC",
    "Microsoft YaHei",
    "PingFang SC",
    "Hiragino Sans GB",
    "SimHei",
    "AR PL UMing CN",
    "Droid Sans Fallback",
    "Arial Unicode MS",
)
BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass
class Curve:
    """One line of a panel: equally long ``x`` and ``y``, and a half width ``band`` around it, if any."""

    label: str
    x: numpy.ndarray
    y: numpy.ndarray
    band: numpy.ndarray | None = None


@dataclass
class Panel:
    """The lines that share one pair of axes."""

    title: str
    curves: list[Curve] = field(default_factory=list)


def draw(
    source: pandas.DataFrame | Mapping[str, pandas.DataFrame] | Iterable[RunMetrics] | Sequence[Panel],
    path: str | PathLike[str],
    *,
    keys: Sequence[str] | None = None,
    title: str = "",
    x_label: str = "step",
    smooth: float = 0.6,
    log_x: bool = False,
    log_y: bool = False,
) -> Path:
    """Draw curves into a PNG, SVG or PDF file (as its name ends) and return its path.

    ``source`` is a wide frame (index: x, a column per key), frames by run name, fetched runs or
    ready panels. ``smooth`` is the weight of the past in a bias-corrected exponential moving
    average over points, 0 for none; the picture names it. NaN and infinities are marked at the
    border. Raises BadInput (format, nothing to draw, too many panels), Unavailable (no matplotlib) and OSError.
    """
    kind = check_picture(path)
    if not 0 <= smooth < 1:
        raise BadInput(f"{smooth} is no smoothing weight", expected="0 (none) up to, but not including, 1")
    panels = [panel for panel in _panels(source, keys) if panel.curves]
    if not panels:
        raise BadInput("there is nothing to draw", expected="at least one key with points")
    if len(panels) > MOST_PANELS:
        raise BadInput(f"{len(panels)} keys are too many for one picture", expected=f"up to {MOST_PANELS}",
                       hint="choose some with --keys, such as --keys 'critic/*'")  # fmt: skip
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Unavailable(
            f"matplotlib is not installed ({error})", hint="pip install 'agentjet-skills[swanlab]'"
        ) from None
    settings: dict[Any, Any] = {
        "font.family": font_families(),
        "svg.hashsalt": "agentjet-skills",
        "axes.unicode_minus": False,
    }
    with matplotlib.rc_context(settings):
        columns = min(len(panels), 1 if len(panels) == 1 else 2 if len(panels) <= 6 else 3 if len(panels) <= 24 else 4)
        rows = -(-len(panels) // columns)
        figure = Figure(figsize=(9 if columns == 1 else 5.2 * columns, 1.2 + 3.4 * rows), layout="constrained")
        colours = _Colours(panels)
        smoothed = False
        for place, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, place + 1)
            smoothed |= _draw_panel(axes, panel, colours, smooth, log_x, log_y)
            if place >= len(panels) - columns:
                axes.set_xlabel(drawable(x_label), parse_math=False)
        if title:
            figure.suptitle(drawable(title), parse_math=False)
        _legend(figure, colours, smooth if smoothed else 0, any(c.band is not None for p in panels for c in p.curves))
        buffer = io.BytesIO()
        dateless = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        figure.savefig(buffer, format=kind, dpi=110, metadata=dateless.get(kind))
    return write_atomically(Path(path), buffer.getvalue())


def check_picture(path: str | PathLike[str]) -> str:
    """Return the picture format that a file name stands for. Raises BadInput."""
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise BadInput(f"cannot draw into {Path(path).name}", expected="a name that ends in .png, .svg or .pdf")
    return kind


def smooth_values(values: numpy.ndarray, weight: float) -> numpy.ndarray:
    """Return the bias-corrected exponential moving average; NaN and infinities are passed over.

    ``s_t = Σ w^(t-i) y_i / Σ w^(t-i)`` over the finite points up to t, with the weight ``w``.
    """
    import numpy
    import pandas

    finite = pandas.Series(numpy.where(numpy.isfinite(values), values, numpy.nan))
    averaged: numpy.ndarray = finite.ewm(alpha=1 - weight, adjust=True, ignore_na=True).mean().to_numpy()
    return averaged


def sparkline(values: Iterable[float], width: int = 60) -> str:
    """Return a line of block characters, one per stretch of values (their mean).

    A stretch of NaN or gaps is a blank, one with +inf ``↑`` and with -inf ``↓``; a constant curve is
    drawn at half height. No values give an empty string.
    """
    numbers = [float(value) for value in values]
    cells = min(width, len(numbers))
    stretches = [numbers[len(numbers) * i // cells : len(numbers) * (i + 1) // cells] for i in range(cells)]
    means = [_mean(stretch) for stretch in stretches]
    finite = [mean for mean in means if math.isfinite(mean)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)

    def block(mean: float) -> str:
        if math.isnan(mean):
            return " "
        if math.isinf(mean):
            return "↑" if mean > 0 else "↓"
        return BLOCKS[3] if high == low else BLOCKS[min(7, int((mean - low) / (high - low) * 8))]

    return "".join(block(mean) for mean in means)


def _mean(stretch: Sequence[float]) -> float:
    numbers = [number for number in stretch if not math.isnan(number)]
    if not numbers:
        return math.nan
    infinite = [number for number in numbers if math.isinf(number)]
    return infinite[0] if infinite else math.fsum(numbers) / len(numbers)


@cache
def font_families() -> list[str]:
    """Return the font families to use: matplotlib's own, then the first installed one with Chinese glyphs."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ["DejaVu Sans", *[name for name in CJK_FONTS if name in installed][:1]]


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib import font_manager

    found: set[int] = set()
    for family in font_families():
        found |= set(font_manager.get_font(font_manager.findfont(family)).get_charmap())
    return frozenset(found)


def drawable(text: str, most: int = 60) -> str:
    """Return ``text`` as it can be drawn: what no installed font has as ``\\uXXXX``, not as boxes; the middle left out
    where it has more than ``most`` characters."""
    glyphs = _glyphs()
    written = "".join(
        char if ord(char) in glyphs else " " if char.isspace() else char.encode("unicode_escape").decode()
        for char in text
    )
    half = most // 2
    return written if len(written) <= most else f"{written[:half]} … {written[-half:]}"


def _panels(source: Any, keys: Sequence[str] | None) -> list[Panel]:
    if hasattr(source, "columns") and hasattr(source, "index"):
        source = {"": source}
    table: dict[str, Panel] = {}
    if isinstance(source, Mapping):
        for label, frame in source.items():
            for key in frame.columns if keys is None else [key for key in keys if key in frame.columns]:
                panel = table.setdefault(str(key), Panel(str(key)))
                panel.curves.append(Curve(str(label), frame.index.to_numpy(), frame[key].to_numpy(dtype="float64")))
        return list(table.values())
    items = list(source)
    for place, item in enumerate(items):
        if isinstance(item, Panel):
            table[item.title] = item
            continue
        label = unique_label(items, place)
        for key, series in item.series.items():
            if len(series) and key != item.x and (keys is None or key in keys):
                x = item.axis(series)
                known = x == x  # another key as axis need not have a value at every step
                curve = Curve(label, x[known], series.values[known])
                table.setdefault(key, Panel(key)).curves.append(curve)
    return list(table.values())


class _Colours:
    """One colour per label, the same in every panel; black for a mean with its band."""

    def __init__(self, panels: Sequence[Panel]) -> None:
        from matplotlib import colormaps

        self.labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
        palette = colormaps["tab10" if len(self.labels) <= 10 else "tab20"].colors  # type: ignore[attr-defined]
        self.by_label: dict[str, Any] = {label: palette[i % len(palette)] for i, label in enumerate(self.labels)}
        self.by_label.update({c.label: "black" for panel in panels for c in panel.curves if c.band is not None})


def _draw_panel(axes: Any, panel: Panel, colours: _Colours, smooth: float, log_x: bool, log_y: bool) -> bool:
    """Draw one panel; tell whether anything in it was smoothed. Beside a mean with its band, single runs are faint."""
    import numpy

    axes.set_title(drawable(panel.title), fontsize="medium", loc="left", parse_math=False)
    axes.grid(alpha=0.25)
    smoothed = False
    hidden = marked = 0
    has_band = any(curve.band is not None for curve in panel.curves)
    for curve in panel.curves:
        colour = colours.by_label[curve.label]
        finite = numpy.isfinite(curve.y)
        shown = finite & (curve.y > 0) if log_y else finite
        hidden += int((finite & ~shown).sum())
        marked += _mark(axes, curve, colour)
        y = numpy.where(shown, curve.y, numpy.nan)
        own = smooth > 0 and int(finite.sum()) >= SMOOTH_FROM and (curve.band is not None or not has_band)
        smoothed |= own
        main = smooth_values(y, smooth) if own else y
        if curve.band is not None:
            band = smooth_values(curve.band, smooth) if own else curve.band
            axes.fill_between(curve.x, main - band, main + band, color=colour, alpha=0.2, linewidth=0)
        elif own or has_band:
            axes.plot(*_thinned(curve.x, y), color=colour, alpha=0.3, linewidth=1.0)
        if own or not has_band or curve.band is not None:
            dots = {"marker": "."} if int(shown.sum()) <= 2 else {}
            axes.plot(*_thinned(curve.x, main), color=colour, linewidth=1.7 if own else 1.0, **dots)
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    notes = [f"{marked} NaN or inf (marked)"] * bool(marked) + [f"{hidden} values ≤ 0 not on a log axis"] * bool(hidden)
    axes.set_title("; ".join(notes), fontsize="x-small", loc="right")
    if numpy.issubdtype(panel.curves[0].x.dtype, numpy.datetime64):
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    return smoothed


def _mark(axes: Any, curve: Curve, colour: Any) -> int:
    """Mark NaN by crosses and infinities by triangles at the border; return how many there are."""
    import numpy

    placed = curve.x == curve.x
    count = 0
    for test, marker, height in ((numpy.isnan, "x", 0.03), (numpy.isposinf, "^", 0.97), (numpy.isneginf, "v", 0.03)):
        x = curve.x[test(curve.y) & placed]
        count += len(x)
        if len(x):
            axes.plot(
                x, numpy.full(len(x), height), marker, color="crimson" if marker == "x" else colour,
                markersize=5, transform=axes.get_xaxis_transform(), clip_on=False,
            )  # fmt: skip
    return count


def _thinned(x: numpy.ndarray, y: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Keep the lowest and highest point of every stretch of a very long line, and its gaps."""
    import numpy

    if len(y) <= DRAWN_POINTS:
        return x, y
    size = -(-len(y) * 2 // DRAWN_POINTS)
    whole = len(y) // size * size
    blocks = y[:whole].reshape(-1, size)
    starts = numpy.arange(0, whole, size)
    lowest = starts + numpy.where(numpy.isnan(blocks), numpy.inf, blocks).argmin(axis=1)
    highest = starts + numpy.where(numpy.isnan(blocks), -numpy.inf, blocks).argmax(axis=1)
    kept = numpy.unique(numpy.concatenate([lowest, highest, numpy.arange(whole, len(y)), [len(y) - 1]]))
    return x[kept], y[kept]


def _legend(figure: Any, colours: _Colours, smooth: float, band: bool) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=colours.by_label[label], linewidth=2) for label in colours.labels]
    # a label that starts with an underscore would be left out
    labels = [" " + drawable(label) if label.startswith("_") else drawable(label) for label in colours.labels]
    if labels == [""]:
        lines, labels = [], []
    if smooth:
        lines += [Line2D([], [], color="grey", alpha=0.4), Line2D([], [], color="grey", linewidth=2)]
        labels += ["raw", f"smoothed: EMA, weight {smooth:g}, bias-corrected"]
    if band:
        lines.append(Line2D([], [], color="grey", alpha=0.3, linewidth=8))
        labels.append("mean ± std over runs")
    if labels:
        legend = figure.legend(lines, labels, loc="outside lower center", ncols=min(4, len(labels)), fontsize="small")
        for text in legend.get_texts():
            text.set_parse_math(False)
