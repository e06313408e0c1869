"""What users of SwanLab ran into (issue numbers of SwanHubX/SwanLab) and what is right instead; run under every SDK."""

import json
import math
from pathlib import Path

import numpy
import pandas
import pyarrow.csv
import pyarrow.parquet
import pytest

from skillpack.metrics import RunMetrics, Series, Window, draw, fetch_run, fetch_runs
from skillpack.metrics.compare import compare_runs
from skillpack.metrics.fetch import RunNotFetched
from skillpack.metrics.plot import smooth_values
from skillpack.metrics.session import Retries
from skillpack.metrics.stats import align, stitch
from skillpack.script import BadInput
from tests.metrics.commands import fetch, fetch_json
from tests.swanlab_server import FakeSwanLab, Run, curve

KEY = "critic/rewards/mean"


def test_1267_a_relative_link_is_joined_to_the_host(server: FakeSwanLab) -> None:
    server.switch.relative_links = True
    assert fetch_run(server.run_url(), [KEY]).ok
    assert server.calls(r"^/exports/.*csv", host="api")


def test_1244_an_empty_summary_is_empty(server: FakeSwanLab) -> None:
    server.fail("scalar/value", "null")
    result = fetch_run(server.run_url(), [KEY])
    assert result.ok
    assert result.status[KEY].verified is False
    code, out, _ = fetch(["summary", server.run_url(), "--keys", "never/logged"])
    assert code == 1
    assert "empty" in out


def test_738_many_runs_come_in_one_frame_with_mean_and_std(server: FakeSwanLab) -> None:
    runs = fetch_runs([server.run_url("main1234"), server.run_url("second12")], [KEY])
    aligned = align(runs, KEY)
    both = numpy.array([run.frame[KEY].to_numpy() for run in runs])
    assert numpy.allclose(aligned.mean, both.mean(axis=0))
    assert numpy.allclose(aligned.std, both.std(axis=0, ddof=1))
    document, _ = compare_runs(runs)
    assert document["config"] == {"seed": [1, 2]}


def test_1008_all_pages_of_a_project_are_read(server: FakeSwanLab) -> None:
    server.switch.page_size = 2
    code, document, _ = fetch_json(["runs", f"{server.url}/@ada/agent/runs"])
    assert code == 0
    assert len(document["runs"]) == 7
    runs = fetch_runs([f"{server.url}/@ada/agent"], ["reward"], only="*seed*")
    assert [run.label for run in runs] == ["seed 2"]


def test_1008_a_page_that_fails_is_no_shorter_list(server: FakeSwanLab) -> None:
    server.switch.page_size = 2
    server.fail(r"/runs\?page=3", 400)
    code, _, err = fetch(["runs", f"{server.url}/@ada/agent"])
    assert code == 1
    assert "HTTP 400" in err


def test_1284_the_last_values_of_all_keys_need_no_download(server: FakeSwanLab) -> None:
    code, document, _ = fetch_json(["keys", server.run_url(), "--quick"])
    assert code == 0
    rows = {row["key"]: row for row in document["runs"][0]["keys"]}
    assert rows["response_length/mean"]["last"] == pytest.approx(499.0)
    assert rows["response_length/mean"]["last_step"] == 1995
    assert not server.calls("csv", host="store")


def test_466_a_short_answer_is_not_taken_for_the_whole(server: FakeSwanLab, quick: Retries) -> None:
    server.switch.truncate = 0.5
    status = fetch_run(server.run_url(), [KEY], retries=quick).status[KEY]
    assert status.state == "failed"
    assert "1999" in status.why or "cut off" in status.why


def test_466_a_file_cut_at_a_line_is_noticed_too(server: FakeSwanLab) -> None:
    run = server.projects["ada/agent"][0]
    whole = server.export(run, [KEY], run.name)
    run.blob = lambda keys: b"".join(whole.splitlines(keepends=True)[:1501])
    status = fetch_run(server.run_url(), [KEY]).status[KEY]
    assert status.state == "failed"
    assert status.why == "incomplete: the export ends at step 1499, but the last logged step is 1999"


@pytest.mark.parametrize("cut", [1, 5, 14, 20])
def test_466_a_cut_last_line_is_noticed(server: FakeSwanLab, cut: int) -> None:
    server.switch.cut_last_line = cut
    result = fetch_run(server.run_url("many1234"), ["layer_00/norm"])
    if cut == 1:  # only the line's end is missing
        assert result.ok
    else:
        assert result.status["layer_00/norm"].state == "failed"


def test_466_a_file_that_was_cut_once_is_fetched_again(server: FakeSwanLab, quick: Retries) -> None:
    server.switch.cut_last_line = 20
    server.switch.truncate_times = 1
    assert fetch_run(server.run_url(), [KEY], retries=quick).ok


def test_466_a_download_that_breaks_off_is_noticed(server: FakeSwanLab, quick: Retries) -> None:
    server.switch.wrong_length = True
    status = fetch_run(server.run_url(), [KEY], retries=quick).status[KEY]
    assert status.state == "failed"


def test_226_nan_and_inf_are_kept_counted_and_encoded(server: FakeSwanLab, tmp_path: Path) -> None:
    result = fetch_run(server.run_url(), ["actor/entropy"])
    column = result.frame["actor/entropy"]
    assert math.isinf(column[2])
    assert column[3] == -math.inf
    assert math.isnan(column[7])
    assert (result.status["actor/entropy"].nan, result.status["actor/entropy"].inf) == (1, 2)
    picture = draw([result], tmp_path / "entropy.svg").read_text()
    assert "3 NaN or inf (marked)" in picture or picture.count("<use") >= 3


def test_226_a_gap_and_a_logged_nan_stay_different_in_files(server: FakeSwanLab, tmp_path: Path) -> None:
    asked = ["--keys", "actor/entropy,response_length/mean", "--to", "9"]
    for name in ("points.csv", "points.parquet", "points.json"):
        code, _, _ = fetch([server.run_url(), *asked, "--out", str(tmp_path / name)])
        assert code == 0
    lines = (tmp_path / "points.csv").read_text().splitlines()
    assert lines[8].startswith("7,nan,")
    assert lines[2].endswith(",")
    table = pyarrow.parquet.read_table(tmp_path / "points.parquet")
    assert table["actor/entropy"].null_count == 0
    assert math.isnan(table["actor/entropy"][7].as_py())
    assert table["response_length/mean"].null_count == 8
    series = json.loads((tmp_path / "points.json").read_text())["runs"][0]["series"]
    assert series["actor/entropy"][2] == "Infinity"
    assert series["actor/entropy"][7] == "NaN"
    assert series["response_length/mean"][1] is None


def test_644_a_step_logged_twice_counts_once_and_is_reported(server: FakeSwanLab) -> None:
    first = fetch_run(server.run_url("resumed1"))
    assert first.frame[KEY][55] == pytest.approx(0.55)
    assert first.status[KEY].duplicates == 10
    last = fetch_run(server.run_url("resumed1"), duplicates="last", cache=False)
    assert last.frame[KEY][55] == pytest.approx(60.0)
    assert len(last.frame) == len(first.frame) == 100


def test_1363_pieces_of_a_resumed_training_are_stitched(server: FakeSwanLab) -> None:
    early = Run("cla000000000000000000001", "early123", "early", {"loss": curve(range(121), lambda s: 1.0)})
    late = Run("cla000000000000000000002", "late1234", "late", {"loss": curve(range(100, 200), lambda s: 2.0)})
    late.created = "2026-03-02T08:00:00.000Z"
    server.projects["ada/agent"] += [late, early]
    joined = stitch(fetch_runs([server.run_url("late1234"), server.run_url("early123")]))
    assert list(joined.frame.index) == list(range(200))
    assert joined.frame["loss"][99] == 1.0
    assert joined.frame["loss"][100] == 2.0
    assert joined.meta["points_replaced"] == 21


def test_1672_keys_are_never_taken_apart(server: FakeSwanLab, tmp_path: Path) -> None:
    names = [
        "a/b/c/d",
        "[x]/y",
        "x_step",
        "x",
        "run-x",
        "loss,val",
        "日本/損失",
        "k" * 512,
        "=cmd",
        "a b",
        "$m_1$",
        "step",
    ]
    values = {name: curve(range(5), lambda s, i=i: float(i)) for i, name in enumerate(names)}
    server.projects["ada/agent"].append(Run("cla000000000000000000003", "names123", "x_step-run", values))
    result = fetch_run(server.run_url("names123"))
    assert result.ok
    assert {key: result.frame[key][0] for key in names} == {name: float(i) for i, name in enumerate(names)}
    again = fetch_run(server.run_url("names123"), "loss,val,[x]/y,x")
    assert list(again.status) == ["loss,val", "[x]/y", "x"]
    assert again.meta["from_cache"] == 3
    code, out, _ = fetch(
        [server.run_url("names123"), "--out", str(tmp_path / "n.csv"), "--plot", str(tmp_path / "n.png")]
    )
    assert code == 0
    assert "[x]/y" in out
    read = pyarrow.csv.read_csv(tmp_path / "n.csv")
    assert read.column_names == ["step", *names[:-1], "step (metric)"]


def test_1346_chinese_names_with_commas_and_quotes(server: FakeSwanLab) -> None:
    server.projects["ada/agent"][0].name = '实验, "一"-step'
    result = fetch_run(server.run_url(), ['中文/指标, "q"'])
    assert result.ok
    assert result.label == '实验, "一"-step'
    assert result.frame['中文/指标, "q"'][1999] == 999.5
    assert fetch_run(f"{server.url}/@ada/agent/runs/%E6%88%91%E7%9A%84%20%E5%AE%9E%E9%AA%8C+1").ok


def test_1768_any_key_can_be_the_axis(server: FakeSwanLab) -> None:
    result = fetch_run(server.run_url(), ["response_length"], window=Window(x="training/epoch", start=1, end=2))
    assert list(result.frame.columns) == ["training/epoch", "response_length/mean"]
    assert sorted(set(result.frame["training/epoch"])) == [1.0, 2.0]
    assert result.frame["response_length/mean"].count() == 200
    assert "training/epoch" not in [key for key, one in result.status.items() if not one.ok]


def test_1768_a_missing_axis_is_reported(server: FakeSwanLab) -> None:
    result = fetch_run(server.run_url(), ["reward"], window=Window(x="epoch"))
    assert result.status["epoch"].state == "missing"
    assert not result.ok


def test_1627_ranges_by_step_time_and_tail(server: FakeSwanLab) -> None:
    def steps(**window: object) -> tuple[int, int, int]:
        frame = fetch_run(server.run_url(), [KEY], window=Window(**window)).frame  # type: ignore[arg-type]
        return int(frame.index[0]), int(frame.index[-1]), len(frame)

    assert steps(start=10, end="20") == (10, 20, 11)
    assert steps(tail=7) == (1993, 1999, 7)
    assert steps(start=100, tail=2) == (1998, 1999, 2)
    assert steps(x="relative", start=50, end=100) == (5, 10, 6)
    assert steps(x="time", start="2026-03-01T08:01:00Z", end="2026-03-01T08:02:00+00:00") == (6, 12, 7)
    assert steps(x="time", start=1_772_352_060, end=1_772_352_120_000) == (6, 12, 7)
    with pytest.raises(BadInput, match="behind"):
        Window(start=5, end=1)


def test_1627_the_counts_say_how_much_was_cut(server: FakeSwanLab) -> None:
    status = fetch_run(server.run_url(), [KEY], window=Window(tail=100)).status[KEY]
    assert (status.points, status.of) == (100, 2000)


def test_1745_null_lists_are_tolerated_where_they_mean_nothing(server: FakeSwanLab) -> None:
    server.fail("media/keys", "null")
    result = fetch_run(server.run_url(), [KEY, "nothing"])
    assert result.status["nothing"].state == "missing"
    assert result.status[KEY].ok


def test_1745_a_null_list_of_keys_is_not_a_run_without_keys(server: FakeSwanLab) -> None:
    server.fail("scalar/keys", "null")
    everything = fetch_run(server.run_url())
    assert everything.status["*"].state == "failed"
    assert fetch_run(server.run_url(), [KEY]).ok


@pytest.mark.parametrize("answer", [418, 429, 499, 502, "drop"])
def test_1509_passing_faults_are_retried(server: FakeSwanLab, quick: Retries, answer: int | str) -> None:
    notes: list[str] = []
    for pattern in ("runs/main1234", "scalar/keys", "scalar/export", "presigned", r"\.csv"):
        server.fail(pattern, answer, times=1)
    result = fetch_run(server.run_url(), [KEY], retries=quick, note=notes.append)
    assert result.ok
    assert len(notes) == 5


def test_1509_retries_end_and_the_trace_id_is_told(server: FakeSwanLab, quick: Retries) -> None:
    server.fail("scalar/export", 418)
    why = fetch_run(server.run_url(), [KEY], retries=quick).status[KEY].why
    assert "HTTP 418" in why
    assert "trace-0001" in why
    assert len(server.calls("scalar/export")) == 4


def test_1509_retry_after_is_obeyed(server: FakeSwanLab) -> None:
    notes: list[str] = []
    server.fail("scalar/keys", 429, times=1, retry_after="0")
    assert fetch_run(server.run_url(), [KEY], retries=Retries(1, first_wait=30), note=notes.append).ok
    assert "again in 0.0 s" in notes[0]


def test_a_link_that_has_run_out_is_asked_for_again(server: FakeSwanLab, quick: Retries) -> None:
    server.switch.expired_links = 1
    assert fetch_run(server.run_url(), [KEY], retries=quick).ok
    assert len(server.calls("scalar/export")) == 2


def test_a_session_that_ends_early_is_renewed_once(server: FakeSwanLab, quick: Retries) -> None:
    server.fail("scalar/export", 401, times=1)
    assert fetch_run(server.run_url(), [KEY], retries=quick).ok
    server.fail("scalar/export", 401)
    status = fetch_run(server.run_url(), ["actor/ppo_kl"], retries=quick).status["actor/ppo_kl"]
    assert "HTTP 401" in status.why


def test_one_bad_key_does_not_spoil_the_others(server: FakeSwanLab) -> None:
    server.switch.garbage_cell = "n/a"
    result = fetch_run(server.run_url(), [KEY, "actor/ppo_kl"])
    assert result.status[KEY].state == "failed"
    assert result.status[KEY].why == "1 cells are not numbers, the first is 'n/a' at step 5"
    assert len(result.frame) == 1999


def test_1051_smoothing_is_the_one_that_is_named() -> None:
    values = numpy.array([1.0, numpy.nan, 3.0, 2.0])
    w = 0.5
    third = (2.0 + w * 3.0 + w * w * 1.0) / (1 + w + w * w)
    assert smooth_values(values, w)[3] == pytest.approx(third)
    assert smooth_values(values, 0.9)[0] == 1.0


def test_mcp_2_all_keys_system_and_media_can_be_listed(server: FakeSwanLab) -> None:
    code, document, _ = fetch_json(["keys", server.run_url(), "--system"])
    assert code == 0
    rows = {row["key"]: row for row in document["runs"][0]["keys"]}
    assert rows["__swanlab__.cpu.pct"]["count"] == 100
    assert rows["response_length/mean"]["count"] == 400
    assert rows["rollout/table"]["kind"] == "media"
    assert "__swanlab__.cpu.pct" not in fetch_run(server.run_url()).frame
    assert len(fetch_run(server.run_url(), "__swanlab__*").frame) == 100


def test_media_keys_are_told_apart(server: FakeSwanLab) -> None:
    status = fetch_run(server.run_url(), ["rollout/table"]).status["rollout/table"]
    assert status.state == "failed"
    assert "media key" in status.why


def test_1289_a_running_run_is_labelled_and_fetched_again(server: FakeSwanLab) -> None:
    server.switch.growing = True
    first = fetch_run(server.run_url("live1234"), [KEY])
    second = fetch_run(server.run_url("live1234"), [KEY])
    assert first.meta["running"] is True
    assert (len(first.frame), len(second.frame)) == (121, 122)
    _, out, _ = fetch([server.run_url("live1234"), "--keys", "reward"])
    assert "RUNNING (more points may come)" in out


def test_1148_layouts_wide_and_long(server: FakeSwanLab, tmp_path: Path) -> None:
    targets = [server.run_url("main1234"), server.run_url("live1234"), "--keys", "reward,response_length"]
    fetch([*targets, "--out", str(tmp_path / "wide.parquet")])
    fetch([*targets, "--out", str(tmp_path / "long.parquet"), "--layout", "long"])
    wide = pandas.read_parquet(tmp_path / "wide.parquet")
    long = pandas.read_parquet(tmp_path / "long.parquet")
    assert list(wide.columns) == ["run", "run_name", "step", KEY, "response_length/mean"]
    assert list(long.columns) == ["run", "run_name", "key", "step", "value", "timestamp"]
    assert len(wide) == 2120
    assert len(long) == 2000 + 400 + 120 + 24
    pivot = long.pivot(index=["run", "step"], columns="key", values="value")
    assert pivot[KEY].sum() == pytest.approx(wide[KEY].sum())


def test_1666_an_empty_answer_for_a_run_is_no_empty_run(server: FakeSwanLab, quick: Retries) -> None:
    server.fail("runs/main1234", "null")
    code, out, _ = fetch([server.run_url(), "--retries", "0"])
    assert code == 1
    assert "is empty" in out


@pytest.mark.parametrize(
    "document", ["[]", "{}", "7", '"text"', "[null]", '[{"latest": 3}]', '{"keys": 5, "urls": {}}']
)
@pytest.mark.parametrize(
    "call",
    ["runs/main1234", "ada/agent$", "scalar/keys", "media/keys", "scalar/value", "scalar/export", "presigned/get"],
)
def test_an_answer_of_another_shape_is_a_reason_not_a_crash(
    server: FakeSwanLab, quick: Retries, call: str, document: str
) -> None:
    server.fail(call, "json:" + document)
    try:
        result = fetch_run(server.run_url(), [KEY, "nothing"], retries=quick)
    except RunNotFetched as error:
        assert call == "runs/main1234"
        assert "main1234" in error.message  # noqa: PT017
    else:
        status = result.status[KEY]
        assert status.ok or status.why
        assert status.ok == (len(result.frame) == 2000)


def test_a_clone_has_the_data_of_its_origin(server: FakeSwanLab) -> None:
    result = fetch_run(server.run_url("clone123"), [KEY])
    assert result.ok
    assert len(result.frame) == 2000
    assert result.meta["clone_of"] == "clf8q2n5p0001xk9wzt7hb3ra"
    column = server.calls("scalar/export")[0].body["columns"][0]
    assert column["rootExpId"] == "clf8q2n5p0001xk9wzt7hb3ra"


def test_key_lists_are_read_page_by_page(server: FakeSwanLab) -> None:
    server.switch.page_size = 3
    assert len(fetch_run(server.run_url("many1234")).frame.columns) == 40


def test_columns_left_out_for_want_of_points_are_empty(server: FakeSwanLab) -> None:
    server.switch.omit_empty_columns = True
    result = fetch_run(server.run_url(), [KEY, "never/logged"])
    assert result.status["never/logged"].state == "empty"
    assert not result.ok


def test_slow_bodies_arrive(server: FakeSwanLab) -> None:
    server.fail(r"\.csv", "slow")
    assert fetch_run(server.run_url(), [KEY]).ok


def test_series_keep_their_order_of_logging() -> None:
    series = Series.of("k", [(3, 1.0, 0.0), (1, 2.0, 0.0), (3, 5.0, 0.0)])
    kept, dropped = series.deduplicated("last")
    assert (kept.steps.tolist(), kept.values.tolist(), dropped) == ([1, 3], [2.0, 5.0], 1)
    assert RunMetrics({"k": kept}, {}, {}).frame["k"].tolist() == [2.0, 5.0]
