"""The ten traps of the SDK and the service that a naive fetch falls into; run under every supported SDK."""

import importlib.metadata
import json
import os
import re
from pathlib import Path

import pytest
import swanlab

from skillpack.metrics import Window, draw, fetch_run, fetch_runs
from skillpack.metrics.session import Retries
from skillpack.script import Unavailable
from tests.metrics.commands import fetch_json
from tests.swanlab_server import API_KEY, FakeSwanLab

SDK = tuple(int(part) for part in importlib.metadata.version("swanlab").split(".")[:2])


def test_the_sdk_is_the_one_that_was_meant() -> None:
    meant = os.environ.get("SWANLAB_TEST_SDK")
    assert meant is None or swanlab.__version__ == meant


def test_1_fetches_without_open_api_and_names_the_way(server: FakeSwanLab) -> None:
    assert hasattr(swanlab, "OpenApi") == (SDK < (0, 8))
    result = fetch_run(server.run_url(), ["reward"])
    assert result.ok
    assert result.meta["sdk"] == f"swanlab {swanlab.__version__}"
    assert result.meta["path"].startswith(f"swanlab {swanlab.__version__} client, scalar/export")


def test_2_full_resolution_is_the_default(server: FakeSwanLab) -> None:
    result = fetch_run(server.run_url(), ["reward"])
    status = result.status["critic/rewards/mean"]
    assert (status.points, status.of) == (2000, 2000)
    assert result.meta["sampled"] is False
    assert not server.calls(r"/house/metrics/scalar$"), "the sampled route was asked"


@pytest.mark.parametrize(
    ("pattern", "answer", "why"),
    [
        ("scalar/export", 403, "HTTP 403"),
        ("scalar/export", 500, "HTTP 500"),
        ("scalar/export", "null", "without a file"),
        ("presigned/get", 500, "HTTP 500"),
        ("presigned/get", "null", "no download link"),
        (r"\.csv", 403, "HTTP 403"),
        (r"\.csv", "drop", "download failed"),
        (r"\.csv", "html", "not a CSV"),
    ],
)
def test_3_a_failure_is_never_an_empty_curve(
    server: FakeSwanLab, quick: Retries, pattern: str, answer: int | str, why: str
) -> None:
    server.fail(pattern, answer)
    result = fetch_run(server.run_url(), ["critic/rewards/mean"], retries=quick)
    status = result.status["critic/rewards/mean"]
    assert status.state == "failed"
    assert why in status.why
    assert not result.ok


def test_3_an_unknown_key_is_missing_not_empty(server: FakeSwanLab) -> None:
    status = fetch_run(server.run_url(), ["critic/reward/mean"]).status["critic/reward/mean"]
    assert status.state == "missing"
    assert status.did_you_mean == ["critic/rewards/mean"]


def test_3_the_command_fails_where_the_official_one_says_ok(server: FakeSwanLab) -> None:
    server.fail(r"\.csv", 403)
    code, document, _ = fetch_json([server.run_url(), "--keys", "reward", "--retries", "0"])
    assert code == 1
    assert document["ok"] is False
    assert document["runs"][0]["status"][0]["state"] == "failed"


def test_4_a_key_goes_to_its_own_host_only(server: FakeSwanLab, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWANLAB_API_KEY")
    (home / ".swanlab").mkdir()
    (home / ".swanlab" / ".netrc").write_text(f"machine {server.url}\nlogin {server.url}\npassword {API_KEY}\n")
    with FakeSwanLab() as other, pytest.raises(Unavailable, match="no API key"):
        fetch_run(other.run_url())
    assert other.seen == []
    assert fetch_run(server.run_url(), ["reward"]).ok


def test_4_the_key_of_a_login_is_found(server: FakeSwanLab, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWANLAB_API_KEY")
    monkeypatch.chdir(home)
    swanlab.login(api_key=API_KEY, host=server.url, save=True)
    for name in [name for name in os.environ if name.startswith("SWANLAB_")]:
        monkeypatch.delenv(name)
    assert (home / ".swanlab" / ".netrc").exists()
    assert fetch_run(server.run_url(), ["reward"]).ok


def test_4_the_environment_s_key_belongs_to_the_environment_s_host(
    server: FakeSwanLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWANLAB_API_HOST", server.url + "/api")
    with FakeSwanLab() as other, pytest.raises(Unavailable, match="SWANLAB_API_HOST"):
        fetch_run(other.run_url())
    assert other.seen == []
    assert fetch_run(server.run_url(), ["reward"]).ok


def test_4_a_session_about_to_expire_is_not_renewed_at_another_host(
    server: FakeSwanLab, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SWANLAB_API_KEY")
    (home / ".netrc").write_text(f"machine {server.url} login x password {API_KEY}\n")
    server.switch.session_days = 3
    with FakeSwanLab() as other:
        monkeypatch.setenv("SWANLAB_API_HOST", other.url + "/api")
        assert fetch_run(server.run_url(), ["reward"]).ok
        assert other.seen == []


def test_5_the_object_store_gets_no_cookie_and_no_key(server: FakeSwanLab, home: Path) -> None:
    (home / ".netrc").write_text("default login somebody password something\n")
    assert fetch_run(server.run_url(), ["reward"]).ok
    downloads = server.calls("csv", host="store")
    assert downloads
    for request in downloads:
        assert "cookie" not in request.headers
        assert "authorization" not in request.headers
        assert API_KEY not in str(request)


def test_6_columns_are_found_by_name(server: FakeSwanLab) -> None:
    truth = fetch_run(server.run_url(), cache=False)
    server.switch.reorder_columns = True
    server.switch.rename_experiment = "renamed - by_step"
    reordered = fetch_run(server.run_url(), cache=False)
    assert reordered.frame.equals(truth.frame)
    assert reordered.frame["response_length/mean"].dropna().iloc[0] == 100.0


def test_6_a_left_out_column_is_noticed(server: FakeSwanLab) -> None:
    server.switch.omit_columns = ("actor/entropy",)
    result = fetch_run(server.run_url(), ["critic/rewards/mean", "actor/entropy", "actor/ppo_kl"])
    assert result.status["actor/entropy"].state == "failed"
    assert "no column" in result.status["actor/entropy"].why
    assert list(result.frame.columns) == ["critic/rewards/mean", "actor/ppo_kl"]
    assert result.frame["actor/ppo_kl"].max() < 0.01


def test_7_nothing_of_the_sdk_reaches_stdout(server: FakeSwanLab) -> None:
    server.fail("scalar/export", 500, times=1)
    server.fail("media/keys", 404)
    code, document, err = fetch_json([server.run_url(), "--keys", "reward,nothing", "--no-cache"])
    assert code == 1
    assert document["runs"][0]["status"][0]["points"] == 2000
    assert "HTTP 500" in err


def test_8_steps_are_joined_outer_and_columns_stay_in_order(server: FakeSwanLab) -> None:
    asked = ["response_length/mean", "critic/rewards/mean", "actor/entropy"]
    frame = fetch_run(server.run_url(), asked).frame
    assert list(frame.columns) == asked
    assert len(frame) == 2000
    assert frame["response_length/mean"].count() == 400
    assert frame["response_length/mean"].isna().sum() == 1600


def test_9_files_in_the_working_directory_do_not_choose_the_host(
    server: FakeSwanLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeSwanLab() as other:
        Path(".env").write_text(f"SWANLAB_API_HOST={other.url}\nSWANLAB_API_KEY=Xyz0123456789Xyz01234\n")
        Path("swanlab.yaml").write_text(f"api_host: {other.url}\n")
        monkeypatch.setenv("SWANLAB_WEB_HOST", server.url)
        assert fetch_run(server.run_url(), ["reward"]).ok
        assert other.seen == []
    assert os.environ.get("SWANLAB_API_HOST") is None, "the SDK's variable was left behind"


def test_10_the_picture_holds_the_points(server: FakeSwanLab, tmp_path: Path) -> None:
    result = fetch_run(server.run_url(), ["reward"], window=Window(tail=500))
    picture = draw([result], tmp_path / "curve.svg", smooth=0)
    longest = max(re.findall(r' d="([^"]+)"', picture.read_text()), key=len)
    assert len(re.findall(r"[ML] ", longest)) > 300


def test_a_key_can_be_asked_of_a_private_host_with_old_routes(server: FakeSwanLab) -> None:
    server.switch.old_routes = True
    server.switch.list_answers = SDK < (0, 8)
    result = fetch_run(server.run_url(), 'reward,response_length,中文/指标, "q"')
    assert result.ok
    assert len(result.frame) == 2000
    assert result.meta["path"] == f"swanlab {swanlab.__version__} client, column/csv (a file per key)"


def test_more_keys_than_one_export_takes(server: FakeSwanLab) -> None:
    result = fetch_run(server.run_url("many1234"))
    assert result.ok
    assert [round(value, 2) for value in result.frame.iloc[0]] == [i / 100 for i in range(40)]
    assert max(len(call.body["columns"]) for call in server.calls("scalar/export")) == 16


def test_many_runs_share_one_login(server: FakeSwanLab) -> None:
    runs = fetch_runs([server.run_url("main1234"), server.run_url("second12"), server.run_url("live1234")], ["reward"])
    assert [run.label for run in runs] == ["exp, 名字-1", "seed 2", "still going"]
    assert len(server.calls("login")) <= 2


def test_the_document_is_valid_json_with_nan_as_text(server: FakeSwanLab) -> None:
    _, document, _ = fetch_json([server.run_url(), "--keys", "entropy", "--to", "8"])
    assert document["data"][0]["series"]["actor/entropy"][2:8:5] == ["Infinity", "NaN"]
    json.dumps(document, allow_nan=False)
