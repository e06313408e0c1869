"""Every address shape that was seen in public text, with the run it means or the error that it deserves."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpack.metrics.urls import CLOUD_API, Place, origins, parse_place
from skillpack.script import BadInput
from tests.metrics.commands import fetch
from tests.swanlab_server import FakeSwanLab

OLD_ID = "clf8q2n5p0001xk9wzt7h"

RUNS = {
    f"https://swanlab.cn/@user/p/runs/{OLD_ID}/chart": f"user/p/{OLD_ID}",
    f"https://swanlab.cn/@user/my_lerobot/runs/{OLD_ID}": f"user/my_lerobot/{OLD_ID}",
    f"https://swanlab.cn/@user/trl-visualization/runs/{OLD_ID}/overview": f"user/trl-visualization/{OLD_ID}",
    f"https://swanlab.cn/@user/qwen2.5-vl-sft/runs/{OLD_ID}/environment/overview": f"user/qwen2.5-vl-sft/{OLD_ID}",
    f"https://swanlab.cn/@user/SD-Naruto/runs/{OLD_ID}/environment/requirements": f"user/SD-Naruto/{OLD_ID}",
    f"https://swanlab.cn/@user/ComputeMetrics/runs/{OLD_ID}/chart#NHFwdTEx-YQ==": f"user/ComputeMetrics/{OLD_ID}",
    "https://swanlab.cn/@user/EgoWAM-Native/runs/dudp2hxy": "user/EgoWAM-Native/dudp2hxy",
    "https://swanlab.cn/@u/a+b.c/runs/x1/chart?tab=1&q=2": "u/a+b.c/x1",
    "https://swanlab.cn/@u/p/runs/%E6%88%91%E7%9A%84%20%E5%AE%9E%E9%AA%8C/chart": "u/p/我的 实验",
    "https://swanlab.cn/@u/p/runs/我的实验/chart": "u/p/我的实验",
    "https://swanlab.cn/@u/p/runs/我的 实验": "u/p/我的 实验",
    "https://swanlab.cn/@u/p/runs/我的 实验/chart": "u/p/我的 实验",
    "https://www.swanlab.cn/@u/p/runs/abc": "u/p/abc",
    "[https://swanlab.cn/@u/p/runs/abc](https://swanlab.cn/@u/p/runs/abc)": "u/p/abc",
    "see [the run](https://swanlab.cn/@u/p/runs/abc/chart), it is fine": "u/p/abc",
    "`https://swanlab.cn/@u/p/runs/abc`。": "u/p/abc",
    "**https://swanlab.cn/@u/p/runs/abc**": "u/p/abc",
    "<https://swanlab.cn/@u/p/runs/abc>": "u/p/abc",
    "(https://swanlab.cn/@u/p/runs/abc)": "u/p/abc",
    "| https://swanlab.cn/@u/p/runs/abc| 0.5 |": "u/p/abc",
    "https://swanlab.cn/@u/p/runs/abc,": "u/p/abc",
    "曲线见 https://swanlab.cn/@u/p/runs/abc，谢谢": "u/p/abc",
    "SwanLab=https://swanlab.cn/@u/p/runs/abc/chart": "u/p/abc",
    "https://link.zhihu.com/?target=https%3A//swanlab.cn/@u/p/runs/abc": "u/p/abc",
    "swanlab: 🚀 View run at https://swanlab.cn/@user/p/runs/id": "user/p/id",
    "docs https://docs.swanlab.cn and run https://swanlab.cn/@u/p/runs/abc": "u/p/abc",
    "u/p/run": "u/p/run",
    "@u/p/runs/run/chart": "u/p/run",
    "swanlab.cn/@u/p/runs/abc": "u/p/abc",
}

PROJECTS = {
    "https://swanlab.cn/@user/p/overview": "user/p",
    "https://swanlab.cn/@user/tutorial_with_rnn/charts": "user/tutorial_with_rnn",
    "https://swanlab.cn/@user/chat-huanhuan/runs": "user/chat-huanhuan",
    "https://swanlab.cn/@user/chatglm-finetune/": "user/chatglm-finetune",
    "https://swanlab.cn/@user/chatglm-finetune": "user/chatglm-finetune",
    "user/p": "user/p",
}

PRIVATE = {
    "http://10.1.2.3:8000/@u/p/runs/abc/chart": "http://10.1.2.3:8000",
    "https://dev.powerducker.com/@user/test-section-rule/runs/x": "https://dev.powerducker.com",
    "https://dev101.swanlab.cn/@u/p/runs/x": "https://dev101.swanlab.cn",
    "https://swanlab.115.zone/@u/p/runs/x": "https://swanlab.115.zone",
    "http://[fd00::1]:8000/@u/p/runs/x": "http://[fd00::1]:8000",
    "https://SwanLab.Example.com:443/@u/p/runs/x": "https://swanlab.example.com",
    "127.0.0.1:8000/@u/p/runs/x": "http://127.0.0.1:8000",
    "lab.example.com:9000/@u/p/runs/x": "https://lab.example.com:9000",
}

WRONG = {
    "https://swanlab.cn/space/~": "not a run or project page but the page /space/~",
    "https://swanlab.cn/space/~/settings": "not a run or project page",
    "https://swanlab.cn/": "the site's front",
    "https://swanlab.cn/@user": "the page of a user",
    "https://docs.swanlab.cn/guide_cloud/": "not a run or project page",
    "https://swanlab.cn/@user/p/runs/experiment_id/···": "is not a run id",
    "https://swanlab.cn/@us er/p/runs/x": "the page of a user",
    "https://swanlab.cn/@u/p/runs/a%2Fb": "is not a run id",
    "https://swanlab.cn/@u%20v/p/runs/x": "is not a user name",
    "https://swanlab.cn/@u/p%20q/runs/x": "is not a project name",
    "http://h:99999/@u/p/runs/x": "not a host",
    "http://[/@u/p/runs/x": "is no address",
    "the reward curve": "no run or project in",
    "a/b/c/d": "no run or project in",
    "": "no run or project in",
}


@pytest.mark.parametrize("text", RUNS)
def test_run_addresses(text: str) -> None:
    place = parse_place(text)
    assert place.path == RUNS[text]
    assert place.api == CLOUD_API
    assert parse_place(place.url) == place


@pytest.mark.parametrize("text", PROJECTS)
def test_project_addresses(text: str) -> None:
    place = parse_place(text)
    assert (place.path, place.run) == (PROJECTS[text], None)


@pytest.mark.parametrize("text", PRIVATE)
def test_private_hosts_keep_scheme_and_port(text: str) -> None:
    assert parse_place(text).api == PRIVATE[text]


@pytest.mark.parametrize("text", WRONG)
def test_other_pages_are_named_for_what_they_are(text: str) -> None:
    with pytest.raises(BadInput, match=WRONG[text].replace("(", r"\(")):
        parse_place(text)


def test_a_password_in_an_address_is_dropped() -> None:
    place = parse_place("https://user:s3cret@lab.example.com/@u/p/runs/x")
    assert "s3cret" not in repr(place)
    with pytest.raises(BadInput) as error:
        parse_place("https://user:s3cret@lab.example.com/space")
    assert "s3cret" not in error.value.message


def test_hosts_as_users_write_them() -> None:
    assert origins("swanlab.cn") == ("https://swanlab.cn", CLOUD_API)
    assert origins("https://api.swanlab.cn/api") == ("https://swanlab.cn", CLOUD_API)
    assert origins("localhost:8000/")[1] == "http://localhost:8000"
    assert origins("[::1]:8000")[1] == "http://[::1]:8000"
    assert origins("[::1]")[1] == "http://[::1]"
    with pytest.raises(ValueError, match="origin"):
        origins("ftp://lab.example.com")


@given(
    st.from_regex(r"[0-9A-Za-z_-]{1,25}", fullmatch=True),
    st.from_regex(r"[0-9A-Za-z_.+-]{1,30}", fullmatch=True),
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters='<>:"/\\|?*#%'), min_size=1),
)
def test_an_address_that_was_made_is_read_back(user: str, project: str, run: str) -> None:
    place = Place("https://swanlab.cn", CLOUD_API, user, project, run)
    try:
        assert parse_place(place.url + "/chart") == place
    except BadInput as error:
        assert "is not a run id" in error.message  # a placeholder such as "..."  # noqa: PT017


def test_a_project_is_fetched_whole_or_refused_with_the_way_out(server: FakeSwanLab) -> None:
    project = f"{server.url}/@ada/agent/charts"
    code, out, _ = fetch([project, "--keys", "loss", "--only", "custom*"])
    assert code == 0
    assert "10 of 10 points" in out
    code, _, err = fetch([project, "--most", "3"])
    assert code == 2
    assert "has 7 runs" in err
    assert "--only" in err
    code, _, err = fetch([f"{server.url}/@ada/empty"])
    assert code == 1
    assert "has 0 runs" in err
    code, _, err = fetch([f"{server.url}/@ada/nothing"])
    assert code == 1
    assert "not found" in err


def test_a_run_that_is_not_there(server: FakeSwanLab) -> None:
    code, out, _ = fetch([server.run_url("nobody12")])
    assert code == 1
    assert "is not found" in out
    assert "experiment not found" in out


def test_a_host_that_is_not_there(home: Path) -> None:
    code, out, err = fetch(["http://127.0.0.1:9/@u/p/runs/x"])
    assert (code, out) == (3, "")
    assert "is not reached: Connection refused" in err


def test_a_host_that_is_no_swanlab(server: FakeSwanLab) -> None:
    server.fail("login", "html")
    code, out, err = fetch([server.run_url()])
    assert (code, out) == (3, "")
    assert "cannot log in" in err


def test_the_host_of_a_bare_path(server: FakeSwanLab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetch(["ada/agent/main1234", "--keys", "reward", "--host", server.url])[0] == 0
    monkeypatch.setenv("SWANLAB_API_HOST", server.url + "/api")
    assert fetch(["ada/agent/main1234", "--keys", "reward"])[0] == 0
