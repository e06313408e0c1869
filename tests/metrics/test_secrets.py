"""No key, cookie or signature in any output, file, exception, process list or request to a foreign host."""

import os
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest

from skillpack.metrics import fetch_run
from skillpack.metrics.credentials import ApiKey, find_key, redact, without_secrets
from skillpack.metrics.session import Retries, sdk_silenced
from skillpack.metrics.urls import CLOUD_API
from skillpack.script import Unavailable
from tests.metrics.commands import SCRIPT, fetch
from tests.swanlab_server import API_KEY, SID, FakeSwanLab

SIGNATURE = "5ec4e7"
OTHER_KEY = "Zyx0123456789Zyx01234"
SECRETS = (API_KEY, OTHER_KEY, SID, SIGNATURE)


def netrc(path: Path, *entries: tuple[str, str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"machine {machine}\nlogin x\npassword {password}\n" for machine, password in entries))


def test_nothing_secret_is_left_anywhere(server: FakeSwanLab, home: Path, tmp_path: Path) -> None:
    faults: list[tuple[str, int | str]] = [
        ("nothing", 200), ("scalar/export", 403), ("presigned", 500), (r"\.csv", 403), (r"\.csv", "drop"),
        ("login", 401), ("runs/main1234", 404), ("scalar/keys", "html"), ("scalar/value", 500),
    ]  # fmt: skip
    said = ""
    for number, (pattern, answer) in enumerate(faults):
        server.faults.clear()
        server.fail(pattern, answer)
        out = str(tmp_path / "out" / f"{number}.parquet")
        for extra in ([], ["--json"]):
            code, stdout, stderr = fetch(
                [server.run_url(), "--keys", "reward,no", "--retries", "0", "--out", out, *extra]
            )
            assert code in (1, 3)
            said += stdout + stderr
    server.switch.relative_links = True
    server.fail(r"\.csv", 403)
    said += "".join(fetch([server.run_url(), "--no-cache", "--retries", "1"])[1:])
    assert "HTTP 403" in said
    for secret in SECRETS:
        assert secret not in said
        for path in tmp_path.rglob("*"):
            assert not path.is_file() or secret.encode() not in path.read_bytes(), path
            assert secret not in path.name


def test_a_traceback_holds_no_secret(server: FakeSwanLab, monkeypatch: pytest.MonkeyPatch) -> None:
    server.fail("login", 401)
    with pytest.raises(Unavailable) as error:
        fetch_run(server.run_url(), retries=Retries(0))
    text = "".join(traceback.format_exception(error.value)) + repr(error.value.__context__)
    assert not any(secret in text for secret in SECRETS)
    assert API_KEY not in repr(ApiKey(API_KEY, "here"))


def test_a_foreign_host_sees_no_secret(server: FakeSwanLab, home: Path) -> None:
    netrc(home / ".netrc", (server.url, API_KEY), ("localhost", OTHER_KEY))
    assert fetch([server.run_url(), "--keys", "reward", "--plot", "p.png"])[0] == 0
    foreign = server.calls("", host="store")
    assert foreign
    for request in foreign:
        assert not any(secret in str(request.headers) for secret in (API_KEY, OTHER_KEY, SID))


def test_the_key_reaches_the_login_and_nothing_else(server: FakeSwanLab) -> None:
    fetch_run(server.run_url(), ["reward"])
    assert all("login" in request.path for request in server.seen if API_KEY in str(request))


@pytest.mark.parametrize("call", ["login", "runs/main1234", "scalar/keys", "scalar/export"])
def test_a_redirect_takes_no_secret_along(server: FakeSwanLab, call: str) -> None:
    server.fail(call, f"redirect:{server.store_url}/elsewhere")
    code, out, err = fetch([server.run_url(), "--keys", "reward,critic/*", "--retries", "0"])
    assert code in (1, 3), out + err
    assert not any(secret in str(request) for request in server.calls("", host="store") for secret in SECRETS[:3])


def test_what_other_threads_print_passes_while_the_sdk_is_silenced(capsys: pytest.CaptureFixture[str]) -> None:
    ready, done = threading.Event(), threading.Event()

    def print_meanwhile() -> None:
        ready.wait(10)
        print("from another thread")
        done.set()

    thread = threading.Thread(target=print_meanwhile)
    thread.start()
    with sdk_silenced() as said:
        print("of the sdk")
        sys.stdout.writelines(["of the sdk too\n"])
        ready.set()
        assert done.wait(10)
        assert sys.stdout.encoding
    thread.join()
    assert said.getvalue() == "of the sdk\nof the sdk too\n"
    assert capsys.readouterr().out == "from another thread\n"


def test_the_process_list_shows_no_key(server: FakeSwanLab, tmp_path: Path) -> None:
    server.fail(r"\.csv", "slow")
    command = [sys.executable, str(SCRIPT), server.run_url(), "--keys", "reward"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        shown = set()
        while process.poll() is None:
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    shown.add((folder / "cmdline").read_bytes())
                except OSError:
                    continue
        assert process.stdout is not None
        output = process.stdout.read()
    assert process.returncode == 0, output
    assert any(str(SCRIPT).encode() in line for line in shown)
    assert not any(API_KEY.encode() in line for line in shown)


def test_there_is_no_option_for_a_key() -> None:
    _, out, _ = fetch(["--help"])
    assert "--key " not in out.replace("--keys ", "")
    assert "SWANLAB_API_KEY" in out


def test_the_environment_is_as_before(server: FakeSwanLab) -> None:
    before = dict(os.environ)
    fetch_run(server.run_url(), ["reward"])
    assert dict(os.environ) == before


def test_nothing_is_written_to_home(server: FakeSwanLab, home: Path) -> None:
    fetch_run(server.run_url(), ["reward"])
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("env", "api", "found"),
    [
        ({"SWANLAB_API_KEY": "k"}, CLOUD_API, True),
        ({"SWANLAB_API_KEY": '"k"'}, CLOUD_API, True),
        ({"SWANLAB_API_KEY": "k"}, "https://lab.example.com", False),
        ({"SWANLAB_API_KEY": "k"}, "http://127.0.0.1:8000", True),
        ({"SWANLAB_API_KEY": "k", "SWANLAB_API_HOST": "https://lab.example.com/api"}, "https://lab.example.com", True),
        ({"SWANLAB_API_KEY": "k", "SWANLAB_API_HOST": "lab.example.com"}, "https://lab.example.com", True),
        ({"SWANLAB_API_KEY": "k", "SWANLAB_API_HOST": "lab.example.com"}, "http://lab.example.com", False),
        ({"SWANLAB_API_KEY": "k", "SWANLAB_API_HOST": "lab.example.com"}, "https://lab.example.com:444", False),
        ({"SWANLAB_API_KEY": "k", "SWANLAB_API_HOST": "lab.example.com"}, CLOUD_API, False),
        ({"SWANLAB_API_KEY": "k", "SWANLAB_WEB_HOST": "https://swanlab.cn"}, CLOUD_API, True),
        ({"SWANLAB_API_KEY": "k", "SWANLAB_API_HOST": "http://127.0.0.1:1"}, "http://127.0.0.1:2", False),
        ({}, CLOUD_API, False),
    ],
)
def test_whose_the_environment_s_key_is(home: Path, env: dict[str, str], api: str, found: bool) -> None:
    environ = {"HOME": str(home), **env}
    if found:
        assert find_key(api, environ).value == "k"
    else:
        with pytest.raises(Unavailable):
            find_key(api, environ)


@pytest.mark.parametrize(
    ("machine", "api", "found"),
    [
        ("https://api.swanlab.cn", CLOUD_API, True),
        ("https://api.swanlab.cn/api", CLOUD_API, True),
        ("api.swanlab.cn", CLOUD_API, True),
        ("swanlab.cn", CLOUD_API, True),
        ("http://10.0.0.5:8000", "http://10.0.0.5:8000", True),
        ("http://10.0.0.5:8000", "http://10.0.0.5:8001", False),
        ("https://lab.example.com", "http://lab.example.com", False),
        ("lab.example.com", "http://lab.example.com", False),
        ("example.com", "https://lab.example.com", False),
        ("127.0.0.1", "http://127.0.0.1:5000", True),
        ("default", CLOUD_API, False),
    ],
)
def test_whose_a_netrc_entry_is(home: Path, machine: str, api: str, found: bool) -> None:
    netrc(home / ".swanlab" / ".netrc", (machine, "k"))
    if machine == "default":
        (home / ".swanlab" / ".netrc").write_text("default login x password k\n")
    if found:
        assert find_key(api, {"HOME": str(home)}).source == str(home / ".swanlab" / ".netrc")
    else:
        with pytest.raises(Unavailable):
            find_key(api, {"HOME": str(home)})


def test_a_broken_netrc_is_named_but_not_quoted(home: Path) -> None:
    (home / ".netrc").write_text(f"machine api.swanlab.cn passwort {API_KEY}\n")
    with pytest.raises(Unavailable) as error:
        find_key(CLOUD_API, {"HOME": str(home)})
    assert str(home / ".netrc") in error.value.message
    assert API_KEY not in error.value.message


def test_the_user_s_netrc_does_not_replace_the_key_at_login(server: FakeSwanLab, home: Path) -> None:
    netrc(home / ".netrc", ("127.0.0.1", "another"))
    assert fetch_run(server.run_url(), ["reward"]).ok
    assert not any("Basic" in str(request.headers) for request in server.seen)


def test_redaction() -> None:
    text = f"GET https://cos.example.com/a/b.csv?X-Amz-Signature=abc&x=1 sid={SID}; key {API_KEY}"
    clean = redact(text, API_KEY)
    assert clean == "GET https://cos.example.com/a/b.csv sid=[hidden]; key [hidden]"


def test_secrets_in_a_configuration_are_hidden() -> None:
    config = {"judge": {"api_key": "sk-1", "max_tokens": 8}, "HF_TOKEN": "hf_1", "tokenizer": "qwen", "secrets": [1]}
    assert without_secrets(config) == {
        "judge": {"api_key": "[hidden]", "max_tokens": 8}, "HF_TOKEN": "[hidden]", "tokenizer": "qwen", "secrets": [1],
    }  # fmt: skip
