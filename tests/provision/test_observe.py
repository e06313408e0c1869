"""Commands that are missing, forbidden, slow or noisy; addresses asked without curl; what a recording keeps."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillpack.engine import process_start
from skillpack.provision import observe
from skillpack.provision.observe import Answer, Observation, ask, head
from tests.provision.machines import until


def test_exit_codes_are_a_shells(tmp_path: Path) -> None:
    (tmp_path / "forbidden").write_text("#!/bin/sh\n")
    assert ask(["no-such-program-at-all"]).rc == 127
    assert ask([str(tmp_path / "forbidden")]).rc == 126
    assert ask(["sh", "-c", "echo out; echo err >&2; exit 7"]) == Answer(7, "out\n", "err\n")
    assert ask(["sh", "-c", "printf '\\377'"]).out == "\ufffd"


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    answer = ask(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; wait"], timeout=1)
    assert answer.rc == 124
    assert "no answer" in answer.err
    until(lambda: process_start(int((tmp_path / "pid").read_text())) == 0)


def test_a_command_that_asks_gets_no_terminal() -> None:
    assert ask(["sh", "-c", "read answer && echo $answer"]).rc != 0
    assert ask(["sh", "-c", "exec 3</dev/tty"]).rc != 0


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A web server on loopback, on a machine that has no curl."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(401 if "v2" in self.path else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PATH", str(tmp_path))
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_addresses_are_asked_without_curl(address: str) -> None:
    assert head(address).out.startswith("200 ")
    assert head(f"{address}/v2/").out.startswith("401 ")
    refused = head("http://127.0.0.1:9/")
    assert (refused.rc, refused.out) == (7, "000 0")
    assert refused.err


def test_a_recording_keeps_no_password() -> None:
    seen = Observation({"pip": Answer(0, "https://me:secret@index.example/simple\n")}, {})
    data = seen.to_dict()
    assert "secret" not in str(data)
    assert Observation.from_dict(data).commands["pip"].out == "https://***@index.example/simple\n"


def test_the_environment_is_recorded_without_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://me:secret@proxy.example:3128")
    monkeypatch.setattr(observe, "probe_commands", lambda recipe, context: {})
    assert observe.look("client", {}, []).environment["https_proxy"] == "http://***@proxy.example:3128"
