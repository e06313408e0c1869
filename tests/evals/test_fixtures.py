"""Programs that run beside a case."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from skillpack.validate.evals import CaseResult, fixtures, run_scripts

Try = Callable[..., CaseResult]

SERVER = """
import http.server
import sys

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"hello from the fixture" * int(sys.argv[1])
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
print("starting")
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
print("noise " * 100_000, flush=True)  # more than a pipe holds
server.serve_forever()
"""


def test_a_program_of_the_skill_runs_beside_the_case(try_case: Try, skill: Path) -> None:
    (skill / "evals" / "server.py").write_text(SERVER)
    fixture = {"run": ["evals/server.py", 2], "ready": "listening on (http\\S+)"}
    do = "import urllib.request; print(urllib.request.urlopen('{fixture_url}').read().decode())"
    result = try_case(do, fixture=fixture, expect=["hello from the fixturehello from the fixture"])
    assert result.why == ""


def test_a_program_that_ends_before_it_is_ready_is_told(try_case: Try, skill: Path) -> None:
    (skill / "evals" / "server.py").write_text("import sys; sys.exit('port in use')")
    result = try_case("", fixture={"run": ["evals/server.py"], "ready": "listening on (http\\S+)"})
    assert not result.ok
    assert "evals/server.py` ended with exit code 1; expected a line that matches" in result.why
    assert result.why.endswith("stderr: port in use")


def test_a_program_that_is_never_ready_is_told_and_ended(
    try_case: Try, skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixtures, "START_LIMIT", 0.5)
    (skill / "evals" / "server.py").write_text("import time; time.sleep(60)")
    result = try_case("", fixture={"run": ["evals/server.py"], "ready": "listening on (http\\S+)"})
    assert "has not said so within 0.5 s" in result.why


def test_an_engine_that_does_not_start_is_told(try_case: Try, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["python3", "-c", "import sys; sys.exit('no module named uvicorn')"]
    monkeypatch.setattr(fixtures, "engine_command", lambda *_: command)
    result = try_case("", fixture="engine")
    assert not result.ok
    assert result.why.endswith("stderr: no module named uvicorn")


def test_an_engine_is_rolling_and_shared_by_the_cases(skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # of no concern on loopback
    do = (
        "import urllib.request; print(urllib.request.urlopen('{engine_url}/get_engine_status').read().decode());"
        "print('at {engine_url}.')"
    )
    case = {"script": "number.py", "args": ["--do", do], "fixture": "engine", "expect": ["ENGINE.ROLLING"]}
    cases = [{"name": f"ask {number}", **case} for number in range(3)]
    (skill / "evals" / "scripts.yaml").write_text(yaml.safe_dump({"cases": cases}))
    results = run_scripts([skill])[skill]
    assert [result.why for result in results] == [""] * 5


def test_an_engine_leaves_with_the_run(skill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "engine.yaml"  # its path marks the process
    config.write_text(fixtures.ENGINE_CONFIG.read_text())
    monkeypatch.setattr(fixtures, "ENGINE_CONFIG", config)
    (skill / "evals" / "scripts.yaml").write_text("cases: [{name: a, script: number.py, fixture: engine}]")
    assert run_scripts([skill])[skill][-1].ok
    listing = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True).stdout
    assert str(config) not in listing
