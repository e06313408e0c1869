"""Reading export files: columns by name, cut and broken files, odd cells."""

import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpack.metrics.export_csv import Export, download_session, match_columns, read_export
from skillpack.metrics.session import CallFailed
from tests.swanlab_server import FakeSwanLab

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
AWKWARD = st.sampled_from(["a", "b-a", "a_step", "step", "x/y", "x", "y", "_timestamp", "a_timestamp", "run-a", "-"])


@pytest.fixture
def server() -> Iterator[FakeSwanLab]:
    with FakeSwanLab({}) as fake:
        yield fake


def read(server: FakeSwanLab, content: str | bytes, *keys: str) -> Export:
    server.blobs["one.csv"] = content.encode() if isinstance(content, str) else content
    return read_export(download_session(), f"{server.store_url}/one.csv", "run", keys)


def header(experiment: str, keys: list[str]) -> list[str]:
    return ["step", *(f"{experiment}-{key}_{part}" for key in keys for part in ("step", "timestamp"))]


@given(st.one_of(NAMES, AWKWARD), st.lists(st.one_of(NAMES, AWKWARD), min_size=1, max_size=6, unique=True), st.data())
def test_columns_are_found_in_any_order_or_not_at_all(experiment: str, keys: list[str], data: st.DataObject) -> None:
    there = data.draw(st.lists(st.sampled_from(keys), unique=True, max_size=len(keys)))
    names = header(experiment, there)
    assert match_columns(names, experiment, keys) == {
        key: (names.index(f"{experiment}-{key}_step"), names.index(f"{experiment}-{key}_timestamp")) for key in there
    }


@given(st.one_of(NAMES, AWKWARD), st.lists(st.one_of(NAMES, AWKWARD), min_size=1, max_size=6, unique=True), st.data())
def test_under_another_experiment_s_name_it_is_right_or_refused(
    other: str, keys: list[str], data: st.DataObject
) -> None:
    there = data.draw(st.permutations(keys))
    names = header(other, there)
    try:
        found = match_columns(names, "what we called it", keys)
    except CallFailed as failure:
        assert "cannot tell which column" in failure.args[0]  # noqa: PT017
    else:
        assert {key: names[value] for key, (value, _) in found.items()} == {key: f"{other}-{key}_step" for key in there}


@pytest.mark.parametrize("step", ["", "nan", "inf", "1.5", "1e30"])
def test_a_step_that_is_no_whole_number_is_told_and_left_out(server: FakeSwanLab, step: str) -> None:
    export = read(server, f"step,run-x_step\n0,1\n{step},2\n3,4\n", "x")
    assert export.series["x"].steps.tolist() == [0, 3]
    assert export.unreadable["x"] == f"1 cells are not numbers, the first is '2' at step {step}"


def test_headers_of_other_shapes() -> None:
    assert match_columns(["step", "x", "x_timestamp", "y"], "run", ["y", "x"]) == {"y": (3, None), "x": (1, 2)}
    with pytest.raises(CallFailed, match="twice"):
        match_columns(["step", "run-x_step", "run-x_step"], "run", ["x"])
    with pytest.raises(CallFailed, match="cannot tell"):
        match_columns(["step", "somebody-else_step"], "run", ["x"])


def test_values_gaps_nan_and_infinities(server: FakeSwanLab) -> None:
    export = read(
        server,
        "step,run-a_step,run-a_timestamp,run-b_step,run-b_timestamp\n"
        "0,1.5,1000,,\n1,NaN,2000,Infinity,2000\n2,-inf,3000,null,\n3,,,1e-3,4000\n",
        "a",
        "b",
    )
    assert not export.cut
    a, b = export.series["a"], export.series["b"]
    assert a.steps.tolist() == [0, 1, 2]
    assert math.isnan(a.values[1])
    assert a.values[2] == -math.inf
    assert (b.steps.tolist(), b.values.tolist(), b.stamps.tolist()) == ([1, 3], [math.inf, 0.001], [2000.0, 4000.0])


def test_a_mark_at_the_beginning_and_foreign_line_ends(server: FakeSwanLab) -> None:
    export = read(server, b"\xef\xbb\xbfstep,run-a_step,run-a_timestamp\r\n1.0,2,1000\r\n2,3,2000\r\n", "a")
    assert export.series["a"].steps.tolist() == [1, 2]
    assert not export.cut


def test_a_header_with_line_breaks_and_quotes(server: FakeSwanLab) -> None:
    export = read(server, 'step,"run-a\n""b"", c_step","run-a\n""b"", c_timestamp"\n1,2,1000\n', 'a\n"b", c')
    assert export.series['a\n"b", c'].values.tolist() == [2.0]


@pytest.mark.parametrize("body", ["step,run-a_step,run-a_timestamp\n", "step,run-a_step,run-a_timestamp"])
def test_a_file_without_rows(server: FakeSwanLab, body: str) -> None:
    export = read(server, body, "a")
    assert len(export.series["a"]) == 0
    assert not export.cut


def test_a_file_without_columns(server: FakeSwanLab) -> None:
    assert read(server, "step\n", "a").without_column == ["a"]


@pytest.mark.parametrize("body", ["", "<html>,", "a sentence"])
def test_what_is_no_export(server: FakeSwanLab, body: str) -> None:
    with pytest.raises(CallFailed, match="not a CSV export"):
        read(server, body, "a")


@pytest.mark.parametrize(
    "body", ["step,run\r-a_step\n", "step,run-a_step\n0,\x00\n1,1\n", "step,run-a_step\n" + "x" * 200_000]
)
def test_bytes_that_no_reader_likes_end_in_a_reason(server: FakeSwanLab, body: str) -> None:
    try:
        export = read(server, body, "a")
    except CallFailed as failure:
        assert failure.args[0]  # noqa: PT017
    else:
        assert export.cut or export.unreadable or export.without_column


@pytest.mark.parametrize("last", ["5", "5,", "5,0.5", "5,0.5,", "5,0.5,17723"])
def test_a_last_line_that_is_cut(server: FakeSwanLab, last: str) -> None:
    rows = "".join(f"{step},0.25,177235200{step}000\n" for step in range(5))
    assert read(server, "step,run-a_step,run-a_timestamp\n" + rows + last, "a").cut


def test_a_cell_that_is_no_number_is_told_for_its_key(server: FakeSwanLab) -> None:
    export = read(
        server, "step,run-a_step,run-a_timestamp,run-b_step,run-b_timestamp\n0,1,5,2,5\n1,x,5,3,5\n", "a", "b"
    )
    assert list(export.unreadable) == ["a"]
    assert export.series["b"].values.tolist() == [2.0, 3.0]
    assert export.series["a"].values.tolist() == [1.0]


def test_files_larger_than_a_block(server: FakeSwanLab) -> None:
    count = 200_000
    rows = "".join(f"{step},{step / 7},{1_772_352_000_000 + step}\n" for step in range(count))
    series = read(server, "step,run-a_step,run-a_timestamp\n" + rows, "a").series["a"]
    assert len(series) == count
    assert series.values[123_456] == 123_456 / 7
    assert series.stamps[-1] == 1_772_352_000_000 + count - 1
