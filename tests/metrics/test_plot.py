"""Pictures and sparklines."""

import re
from pathlib import Path

import numpy
import pandas
import pytest

from skillpack.metrics import RunMetrics, Series, draw, sparkline
from skillpack.metrics.plot import DRAWN_POINTS, Curve, Panel, drawable, font_families
from skillpack.script import BadInput


@pytest.fixture
def frame() -> pandas.DataFrame:
    steps = numpy.arange(200)
    values = {"critic/rewards/mean": numpy.sin(steps / 20), "actor/ppo_kl": 10.0 ** -(1 + steps % 5)}
    return pandas.DataFrame(values, index=steps)


def texts(svg: Path) -> str:
    """Return the words of an SVG: matplotlib draws glyphs and leaves the text in a comment before them."""
    return "\n".join(re.findall(r"<!-- (.*?) -->", svg.read_text(), re.DOTALL))


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_formats_are_what_they_say_and_the_same_each_time(
    frame: pandas.DataFrame, tmp_path: Path, name: str, magic: bytes
) -> None:
    first = draw(frame, tmp_path / name).read_bytes()
    assert first.startswith(magic)
    assert draw(frame, tmp_path / name).read_bytes() == first


def test_the_picture_names_keys_axis_and_smoothing(frame: pandas.DataFrame, tmp_path: Path) -> None:
    words = texts(draw(frame, tmp_path / "a.svg", title="my run", smooth=0.6))
    for word in ("critic/rewards/mean", "actor/ppo_kl", "step", "my run", "raw", "smoothed: EMA, weight 0.6"):
        assert word in words
    assert "smoothed" not in texts(draw(frame, tmp_path / "b.svg", smooth=0))


def test_many_runs_have_a_legend(frame: pandas.DataFrame, tmp_path: Path) -> None:
    words = texts(draw({"seed 1": frame, "_seed 2": frame * 2, "$x_1$": frame}, tmp_path / "a.svg"))
    assert "seed 1" in words
    assert "_seed 2" in words
    assert "$x_1$" in words


def test_runs_of_one_name_stay_apart(tmp_path: Path) -> None:
    steps = numpy.arange(20)
    runs = [
        RunMetrics({"k": Series("k", steps, steps * factor, steps * 1.0)}, {}, {"name": "grpo", "run_id": run_id})
        for factor, run_id in ((1.0, "aaa"), (2.0, "bbb"))
    ]
    words = texts(draw(runs, tmp_path / "a.svg"))
    assert "grpo (aaa)" in words
    assert "grpo (bbb)" in words


def test_a_log_axis_says_what_it_cannot_show(frame: pandas.DataFrame, tmp_path: Path) -> None:
    words = texts(draw(frame, tmp_path / "a.svg", log_y=True))
    negative = int((frame["critic/rewards/mean"] <= 0).sum())
    assert f"{negative} values ≤ 0 not on a log axis" in words


def test_nan_and_inf_are_marked(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"k": [1.0, float("nan"), 2.0, float("inf"), 1.5]})
    assert "2 NaN or inf (marked)" in texts(draw(frame, tmp_path / "a.svg"))


def test_a_text_without_glyphs_is_escaped_not_boxed(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    frame = pandas.DataFrame({"\U00013000 指标": [1.0, 2.0]})
    draw(frame, tmp_path / "a.png")
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]
    assert drawable("\U00013000") == "\\U00013000"
    assert drawable("a/b_é") == "a/b_é"
    assert drawable("k" * 512) == "k" * 30 + " … " + "k" * 30
    assert font_families()[0] == "DejaVu Sans"


def test_very_long_curves_keep_their_extremes(tmp_path: Path) -> None:
    values = numpy.zeros(100_000)
    values[54_321] = 9.0
    values[77_777] = -9.0
    steps = numpy.arange(len(values))
    run = RunMetrics({"k": Series("k", steps, values, steps.astype(float))}, {}, {"name": "long"})
    path = draw([run], tmp_path / "a.svg", smooth=0)
    line = max(re.findall(r' d="([^"]+)"', path.read_text()), key=len)
    heights = {float(y) for _, y in re.findall(r"[ML] ([\d.]+) ([\d.]+)", line)}
    assert len(re.findall("[ML]", line)) <= DRAWN_POINTS + 2
    assert len(heights) == 3


def test_a_key_as_axis_is_drawn_where_it_has_values(tmp_path: Path) -> None:
    steps = numpy.arange(100)
    stamps = steps.astype(float)
    series = {
        "x": Series("x", steps[::5], steps[::5] * 2.0, stamps[::5]),
        "y": Series("y", steps, numpy.sin(steps / 9), stamps),
    }
    svg = draw([RunMetrics(series, {}, {"name": "r"}, x="x")], tmp_path / "a.svg", smooth=0).read_text()
    assert max(len(re.findall("[ML] ", line)) for line in re.findall(r' d="([^"]+)"', svg)) == 20


def test_a_mean_with_its_band_stands_out(tmp_path: Path) -> None:
    x = numpy.arange(50)
    curves = [Curve("a", x, x * 1.0), Curve("b", x, x * 3.0), Curve("mean of 2 runs", x, x * 2.0, x * 1.0)]
    words = texts(draw([Panel("k", curves)], tmp_path / "a.svg"))
    assert "mean of 2 runs" in words
    assert "mean ± std over runs" in words


def test_what_cannot_be_drawn(frame: pandas.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"a\.gif"):
        draw(frame, tmp_path / "a.gif")
    with pytest.raises(BadInput, match="nothing to draw"):
        draw(pandas.DataFrame(), tmp_path / "a.png")
    with pytest.raises(BadInput, match="smoothing weight"):
        draw(frame, tmp_path / "a.png", smooth=1.0)
    with pytest.raises(BadInput, match="too many"):
        draw(pandas.DataFrame({str(i): [1.0] for i in range(65)}), tmp_path / "a.png")
    assert not list(tmp_path.glob("*.*"))


def test_sparklines() -> None:
    assert sparkline(range(8)) == "▁▂▃▄▅▆▇█"
    assert sparkline([1.0, 1.0]) == "▄▄"
    assert sparkline([1.0, float("nan"), 2.0, float("inf"), float("-inf")]) == "▁ █↑↓"
    assert sparkline([]) == ""
    assert len(sparkline(range(1000), width=33)) == 33
    assert sparkline([float("nan")] * 3) == "   "
