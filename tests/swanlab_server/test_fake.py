"""The fake answers the real SDK's own calls, and its switches make the faults that the facts tell of."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
import swanlab

from tests.swanlab_server import API_KEY, EVALS, FakeSwanLab

KEY = "critic/rewards/mean"
DICT_API = not hasattr(swanlab, "OpenApi")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSwanLab]:
    for name in ("SWANLAB_API_KEY", "SWANLAB_API_HOST", "SWANLAB_WEB_HOST"):
        monkeypatch.delenv(name, raising=False)
    with FakeSwanLab() as fake:
        yield fake


@pytest.fixture
def run(server: FakeSwanLab) -> "swanlab.api.Experiment":
    return swanlab.Api(api_key=API_KEY, host=server.url).run("ada/agent/main1234")


pytestmark = pytest.mark.skipif(not DICT_API, reason="written against the API of SDK 0.8 and later")


def points(run: "swanlab.api.Experiment", *keys: str) -> list[list[float]]:
    return [[point["value"] for point in one["metrics"]] for one in run.metrics(keys=list(keys), all=True)["list"]]


def test_the_sdk_reads_a_whole_curve(run: "swanlab.api.Experiment") -> None:
    rewards, lengths = points(run, KEY, "response_length/mean")
    assert (len(rewards), len(lengths)) == (2000, 400)


def test_the_sdk_lists_keys(run: "swanlab.api.Experiment") -> None:
    assert KEY in run.series().json()["keys"]
    assert run.series(metric_class="SYSTEM").json()["keys"] == ["__swanlab__.cpu.pct"]


def test_the_sdk_finds_the_runs_of_a_project(server: FakeSwanLab) -> None:
    api = swanlab.Api(api_key=API_KEY, host=server.url)
    assert len([run.name for run in api.runs_get("ada/agent", all=True)]) == 7


@pytest.mark.parametrize("pattern", ["scalar/export", "presigned/get", r"\.csv"])
def test_the_sdk_turns_a_refusal_into_an_empty_curve(
    server: FakeSwanLab, run: "swanlab.api.Experiment", pattern: str
) -> None:
    server.fail(pattern, 403)
    assert points(run, KEY) == [[]]


def test_the_sdk_swaps_reordered_columns(server: FakeSwanLab, run: "swanlab.api.Experiment") -> None:
    truth, _ = points(run, KEY, "training/epoch")
    server.switch.reorder_columns = True
    swapped, _ = points(run, KEY, "training/epoch")
    assert swapped != truth


def test_the_sdk_sends_its_cookie_to_the_object_store(server: FakeSwanLab, run: "swanlab.api.Experiment") -> None:
    assert "localhost" in server.store_url
    assert "127.0.0.1" in server.url
    points(run, KEY)
    assert "cookie" in server.calls("csv", host="store")[0].headers


def test_the_sdk_loses_a_relative_link(server: FakeSwanLab, run: "swanlab.api.Experiment") -> None:
    server.switch.relative_links = True
    assert points(run, KEY) == [[]]


def test_a_fault_comes_at_the_nth_call_and_ends(server: FakeSwanLab, run: "swanlab.api.Experiment") -> None:
    server.fail("scalar/export", 403, after=1, times=1)
    assert [len(points(run, KEY)[0]) for _ in range(3)] == [2000, 0, 2000]


def test_the_program_serves_until_it_is_stopped() -> None:
    command = [sys.executable, str(EVALS / "fake_swanlab.py"), "--fail", "scalar/export=403"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            host = process.stdout.readline().removeprefix("listening on ").strip()
            run = swanlab.Api(api_key=API_KEY, host=host).run("ada/agent/main1234")
            assert run.name == "exp, 名字-1"
            assert points(run, KEY) == [[]]
        finally:
            process.terminate()
