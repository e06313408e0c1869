"""The command line: documents, exit codes, cache, files, comparisons."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pandas
import pytest

from skillpack.metrics import fetch_run
from skillpack.pack import SCHEMAS
from tests.metrics.commands import SCRIPT, fetch, fetch_json
from tests.swanlab_server import FakeSwanLab

KEY = "critic/rewards/mean"


def check(document: Any, topic: str) -> None:
    schema = json.loads((SCHEMAS / f"metrics-{topic}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)


def test_the_call_of_the_issue(server: FakeSwanLab, tmp_path: Path) -> None:
    code, out, err = fetch(
        [
            server.run_url(), server.run_url("second12"), "--keys", "reward,entropy,critic/*",
            "--out", "metrics.parquet", "--plot", "curves.png", "--x", "time", "--tail", "200",
        ]
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "reward = critic/rewards/mean" in out
    assert "entropy = actor/entropy" in out
    assert "200 of 2,000 points" in out
    assert "by swanlab" in out
    frame = pandas.read_parquet("metrics.parquet")
    assert list(frame.columns) == ["run", "run_name", "step", "time", KEY, "actor/entropy"]
    assert len(frame) == 400
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")
    sidecar = json.loads(Path("metrics.parquet.meta.json").read_text())
    check(sidecar, "sidecar")
    first = sidecar["runs"][0]
    assert first["url"] == server.run_url()
    assert first["config"] == {"trainer": {"lr": 1e-6, "n": 8}, "seed": 1}
    assert first["window"] == {"tail": 200}


@pytest.mark.parametrize("name", ["metrics.csv", "metrics.json", "metrics.parquet"])
@pytest.mark.parametrize("x", ["step", "time", "relative", "training/epoch"])
def test_documents_and_files_on_every_axis(server: FakeSwanLab, name: str, x: str) -> None:
    code, document, _ = fetch_json([server.run_url("live1234"), "--keys", "reward", "--x", x, "--out", name])
    assert code == 0
    check(document, "fetch")
    check(json.loads(Path(name + ".meta.json").read_text()), "sidecar")
    assert document["files"]["out"] == name


def test_inline_values_where_they_are_few(server: FakeSwanLab) -> None:
    _, document, _ = fetch_json([server.run_url(), "--keys", "reward", "--tail", "3", "--x", "time"])
    check(document, "fetch")
    assert document["data"][0]["time"][0] == "2026-03-01T13:32:50.000Z"
    assert len(document["data"][0]["series"][KEY]) == 3
    _, document, _ = fetch_json([server.run_url(), "--keys", "reward"])
    assert "data" not in document


def test_a_long_document_stays_short_and_names_the_whole(server: FakeSwanLab) -> None:
    code, out, _ = fetch([server.run_url("many1234"), "--json", "--keys", "*,nothing"])
    assert code == 1
    assert len(out) < 10_000
    document = json.loads(out)
    check(document, "fetch")
    run = document["runs"][0]
    assert run["keys_ok"] == 40
    assert [one["key"] for one in run["status"]] == ["nothing"]
    whole = json.loads(Path(document["files"]["report"]).read_text())
    assert len(whole["runs"][0]["status"]) == 41
    Path(document["files"]["report"]).unlink()


@pytest.mark.parametrize(
    ("arguments", "topic"),
    [
        (["keys", "{run}"], "keys"),
        (["keys", "{run}", "--quick", "--system"], "keys"),
        (["runs", "{project}"], "runs"),
        (["summary", "{run}", "{second}", "--keys", "reward,kl,entropy"], "summary"),
        (["sparkline", "{run}", "--keys", "reward"], "sparkline"),
        (["compare", "{run}", "{second}", "--keys", "reward", "--plot", "band.svg", "--out", "c.csv"], "compare"),
        (["compare", "{run}", "{second}", "--keys", "reward", "--x", "relative", "--out", "c.parquet"], "compare"),
    ],
)
def test_documents_of_the_other_commands(server: FakeSwanLab, arguments: list[str], topic: str) -> None:
    places = {"run": server.run_url(), "second": server.run_url("second12"), "project": f"{server.url}/@ada/agent"}
    filled = [argument.format(**places) for argument in arguments]
    code, document, _ = fetch_json(filled)
    assert code == 0
    check(document, topic)
    code, out, _ = fetch(filled)
    assert code == 0
    assert out.strip()


def test_summary_figures(server: FakeSwanLab) -> None:
    _, document, _ = fetch_json(["summary", server.run_url("many1234"), "--keys", "layer_00/norm", "--best", "min"])
    (figures,) = document["runs"][0]["keys"]
    assert (figures["first"], figures["last"], figures["mean"]) == (0.0, 49.0, 24.5)
    assert (figures["best"], figures["best_step"], figures["best_is"]) == (0.0, 0, "min")
    assert figures["slope"] == pytest.approx(1000.0)
    _, document, _ = fetch_json(["summary", server.run_url(), "--keys", "kl,reward,entropy"])
    best = {one["key"]: one["best_is"] for one in document["runs"][0]["keys"]}
    assert best == {"actor/ppo_kl": "min", KEY: "max", "actor/entropy": "max"}


def test_a_curve_without_a_finite_value_has_no_figures(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("step:1 - actor/lost:nan\nstep:2 - actor/lost:inf\n")
    _, document, _ = fetch_json(["summary", str(tmp_path / "console.log")])
    check(document, "summary")
    _, out, _ = fetch(["summary", str(tmp_path / "console.log")])
    assert out.splitlines()[0] == document["runs"][0]["name"]  # a log has neither id nor state
    (figures,) = document["runs"][0]["keys"]
    assert (figures["count"], figures["nan"], figures["inf"]) == (2, 1, 1)
    assert (figures["mean"], figures["best"], figures["best_is"]) == (None, None, None)


def test_figures_that_overflow_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("step:1 - a/b:1e308 - c/d:1e200\nstep:2 - a/b:1.7e308 - c/d:-1e200\n")
    log = str(tmp_path / "console.log")
    code, document, errors = fetch_json(["summary", log])
    assert (code, errors) == (0, "")
    check(document, "summary")
    large, wide = document["runs"][0]["keys"]
    assert (large["max"], large["mean"], large["std"], large["slope"]) == (1.7e308, None, None, None)
    assert (wide["mean"], wide["std"]) == (0.0, None)
    _, out, errors = fetch(["summary", log])
    assert errors == ""
    assert "nan" not in out.splitlines()[2]
    _, out, errors = fetch(["compare", log, log])
    assert errors == ""
    assert "mean ± std at step 2, the last that all have: -" in out


def test_comparison_by_time_interpolates_within_each_run(server: FakeSwanLab) -> None:
    code, document, _ = fetch_json(
        ["compare", server.run_url(), server.run_url("live1234"), "--keys", "response_length", "--x", "relative"]
    )
    assert code == 0
    (key,) = document["keys"]
    assert key["points"] == 400
    assert key["shared_points"] == 24
    assert document["config"]


def test_a_comparison_says_which_run_is_not_at_its_end(server: FakeSwanLab) -> None:
    server.projects["ada/agent"][0].state = "RUNNING"
    _, out, _ = fetch(["compare", server.run_url(), server.run_url("second12"), "--keys", "reward"])
    assert out.count("its last value may not be its end") == 1
    assert "is RUNNING: its last value may not be its end" in out.splitlines()[0]


def test_a_misspelled_alias_is_recognised(server: FakeSwanLab) -> None:
    code, document, _ = fetch_json([server.run_url(), "--keys", "rewrd"])
    assert code == 1
    assert document["runs"][0]["status"][0]["did_you_mean"][0] == "reward"


def test_times_in_a_file_say_that_they_are_utc(server: FakeSwanLab) -> None:
    fetch([server.run_url(), "--keys", "reward", "--tail", "1", "--x", "time", "--out", "metrics.csv"])
    header, row = Path("metrics.csv").read_text().splitlines()
    assert header.split(",")[1] == '"time"'
    assert row.split(",")[1] == "2026-03-01 13:33:10.000Z"


def test_a_comparison_of_one_is_refused(server: FakeSwanLab) -> None:
    code, _, err = fetch(["compare", server.run_url(), "--keys", "reward"])
    assert code == 2
    assert "at least two runs" in err


def test_stitching_by_command(server: FakeSwanLab) -> None:
    code, out, _ = fetch([server.run_url(), server.run_url("live1234"), "--stitch", "--keys", "reward"])
    assert code == 0
    assert "stitched from 2 runs" in out


def test_unusable_files_are_refused_before_anything_is_fetched(server: FakeSwanLab) -> None:
    for option in (["--out", "metrics.xlsx"], ["--plot", "curves.gif"]):
        code, _, err = fetch([server.run_url(), *option])
        assert code == 2
        assert "ends in" in err
    assert server.seen == []


def test_bad_windows_are_refused(server: FakeSwanLab) -> None:
    for window in (["--from", "abc"], ["--x", "time", "--from", "noon"], ["--from", "5", "--to", "1"], ["--tail", "0"]):
        code, _, err = fetch([server.run_url(), *window])
        assert code == 2, window
        assert err.startswith("error:")
    assert fetch([server.run_url(), "--keys", "re:["])[0] == 2


def test_finished_runs_come_from_the_cache(server: FakeSwanLab) -> None:
    first = fetch_run(server.run_url(), "reward,entropy")
    downloads = len(server.calls("csv", host="store"))
    second = fetch_run(server.run_url(), "reward,kl")
    assert second.meta["from_cache"] == 1
    assert len(server.calls("csv", host="store")) == downloads + 1
    again = fetch_run(server.run_url(), "reward,entropy")
    assert again.frame.equals(first.frame)
    assert again.meta["path"] == "cache"
    assert len(server.calls("csv", host="store")) == downloads + 1
    fetch_run(server.run_url(), "reward", refresh=True)
    assert len(server.calls("csv", host="store")) == downloads + 2
    server.projects["ada/agent"][0].state = "CRASHED"
    assert fetch_run(server.run_url(), "reward").meta["from_cache"] == 0


def test_failed_and_partial_series_are_not_cached(server: FakeSwanLab) -> None:
    server.fail(r"\.csv", 403, times=2)
    arguments = [server.run_url(), "--keys", "reward"]
    assert fetch([*arguments, "--retries", "1"])[0] == 1
    assert fetch(arguments)[0] == 0


def test_a_broken_cache_is_fetched_anew(server: FakeSwanLab, tmp_path: Path) -> None:
    fetch_run(server.run_url(), "reward")
    for path in (tmp_path / "cache").rglob("*.arrow"):
        path.write_bytes(b"broken")
    assert fetch_run(server.run_url(), "reward").ok


def test_offline_uses_only_the_cache(server: FakeSwanLab, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = [server.run_url(), "--keys", "reward", "--offline"]
    code, _, err = fetch(arguments)
    assert code == 3
    assert "not in the cache" in err
    fetch_run(server.run_url(), "reward")
    asked = len(server.seen)
    monkeypatch.delenv("SWANLAB_API_KEY")
    assert fetch(arguments)[0] == 0
    code, out, _ = fetch([server.run_url(), "--keys", "reward,entropy", "--offline"])
    assert code == 1
    assert "not in the cache" in out
    assert len(server.seen) == asked


def test_without_a_key(server: FakeSwanLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWANLAB_API_KEY")
    code, out, err = fetch([server.run_url(), "--json"])
    assert (code, out) == (3, "")
    assert "swanlab login --host" in err


def test_a_wrong_key(server: FakeSwanLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWANLAB_API_KEY", "Wrong123456789Wrong12")
    code, out, err = fetch([server.run_url()])
    assert (code, out) == (3, "")
    assert "cannot log in" in err
    assert "Wrong123456789Wrong12" not in err


def test_help_shows_the_options_and_the_other_commands() -> None:
    code, out, _ = fetch(["--help"])
    assert code == 0
    for text in ("--keys", "--out", "--plot", "--x", "--from", "--to", "--tail", "--json", "summary", "Exit codes"):
        assert text in out
    for command in ("keys", "runs", "summary", "compare", "local", "sparkline"):
        code, out, _ = fetch([command, "--help"])
        assert code == 0
        assert "Example" in out
    assert fetch([])[0] == 2


def test_the_script_runs_from_anywhere_as_it_stands(server: FakeSwanLab, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "sparkline", server.run_url(), "--keys", "reward"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "critic/rewards/mean" in done.stdout
    assert done.stderr == ""


def test_control_characters_of_a_server_do_not_reach_the_terminal(server: FakeSwanLab) -> None:
    server.projects["ada/agent"][0].name = "\x1b[2Jgone\u202e"
    code, out, _ = fetch([server.run_url(), "--keys", "reward"])
    assert code == 0
    assert "\\x1b[2Jgone\\u202e" in out
    assert "\x1b" not in out
