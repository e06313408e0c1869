"""Who answers chat calls, and trouble on purpose."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import httpx
import psutil
import pytest

from ajet.backbone.policies import make_policy
from tests.swarm.conftest import job
from tests.swarm.released_server import ReleasedServer

SCRIPT = """
rules:
  - when: 'weather in (?P<city>\\w+)'
    in: user
    turn: 1
    tool: get_weather
    arguments: {city: "{city}", unit: "{2}"}
  - when: '(\\d+) degrees'
    in: tool
    reply: "It has {1} degrees."
  - when: coin
    replies: [heads, tails]
  - when: trouble
    status: 429
default: "I do not know."
"""


def test_a_script_answers_by_its_rules(start_engine, tmp_path):
    (tmp_path / "replies.yaml").write_text(SCRIPT)
    engine = start_engine(job(), "--policy", "script", "replies.yaml")
    assert engine.get("/health")["policy"] == "script"
    key = engine.claim()["openai_api_key"]
    ask = {"role": "user", "content": "What is the weather in Paris?"}
    first = engine.chat(key, messages=[ask], tools=[]).json()["choices"][0]
    assert first["finish_reason"] == "tool_calls"
    call = first["message"]["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("get_weather", {"city": "Paris", "unit": "{2}"})
    turn = [ask, first["message"], {"role": "tool", "content": "21 degrees, sunny"}]
    assert engine.chat(key, messages=turn).json()["choices"][0]["message"]["content"] == "It has 21 degrees."
    coins = [engine.chat(key, "Flip a COIN").json()["choices"][0]["message"]["content"] for _ in range(3)]
    assert coins == ["heads", "tails", "heads"]
    assert engine.chat(key, "trouble").status_code == 429
    assert engine.chat(key, "else").json()["choices"][0]["message"]["content"] == "I do not know."


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rules: [", "cannot be read"),
        ("- a", "must be a mapping"),
        ("rules: [{when: '(', reply: x}]", "rule 1: 'when' is no regular expression"),
        ("rules: [{reply: x}, {when: a}]", "rule 2 has no answer"),
        ("rules: [{reply: x, tool: y}]", "reply and tool"),
        ("rules: [{reply: x, whne: y}]", "whne"),
        ("rules: [{reply: x, in: nowhere}]", "nowhere"),
        ("rules: [{status: 200}]", "400 to 599"),
        ("rules: [{replies: []}]", "not empty"),
    ],
)
def test_a_script_that_cannot_be_used_is_named_by_its_rule(tmp_path, text, says):
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"s\.yaml") as caught:
        make_policy(f"script {path}")
    assert says in str(caught.value)


def test_proxy_passes_calls_on_and_says_that_nothing_is_learned(start_engine):
    behind = start_engine(job("behind"), "--policy", "echo")
    engine = start_engine(job("front"), "--policy", "proxy", behind.url)
    health = engine.get("/health")
    assert health["policy"] == "proxy"
    assert "nothing is learned" in health["policy_is"]
    key = engine.claim()["openai_api_key"]
    refused = engine.chat(key, "hello")
    assert refused.status_code == 401, "the other server's refusal is passed on"
    assert behind.url in refused.json()["error"]["message"]


def test_proxy_answers_with_the_other_models_words(start_engine, monkeypatch):
    other = ReleasedServer().start()
    try:
        other.set("ENGINE.ROLLING")
        monkeypatch.setenv("AJET_PROXY_API_KEY", next(iter(other.episodes.values()))["key"])
        monkeypatch.setenv("AJET_PROXY_MODEL", "some-model")
        engine = start_engine(job(batch=1), "--policy", "proxy", other.url + "/v1")
        for number in range(2):
            claim = engine.claim()
            answer = engine.chat(claim["openai_api_key"], "3+4?", n=2).json()
            assert [choice["message"]["content"] for choice in answer["choices"]] == ["7", "7"]
            engine.end(claim["episode_uuid"], number)
        engine.wait_for(lambda status: status["global_step"] == 2)
    finally:
        other.stop()


def test_a_proxy_closes_its_connections_with_the_run_and_opens_new_ones_for_the_next(start_engine, monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), KeptConnection) as other:
        threading.Thread(target=other.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setenv("AJET_PROXY_MODEL", "some-model")
        engine = start_engine(job("proxied"), "--policy", "proxy", f"http://127.0.0.1:{other.server_port}")

        def connections() -> list[str]:
            found = psutil.Process(engine.process.pid).net_connections()
            return [one.status for one in found if one.raddr and one.raddr.port == other.server_port]

        for _ in range(2):
            engine.wait_for(lambda status: status["engine_status"] == "ENGINE.ROLLING")
            assert engine.chat(engine.claim()["openai_api_key"]).status_code == 200
            assert connections() == ["ESTABLISHED"]
            engine.post("/stop_engine")
            assert "ESTABLISHED" not in connections()
            assert engine.post("/start_engine").json()["success"]
        other.shutdown()


def test_a_proxy_that_does_not_answer_is_a_502(start_engine):
    engine = start_engine(job(), "--policy", "proxy", "http://127.0.0.1:9")
    answer = engine.chat(engine.claim()["openai_api_key"])
    assert answer.status_code == 502
    assert "127.0.0.1:9" in answer.json()["error"]["message"]


class BrokenToolCall(BaseHTTPRequestHandler):
    """A model that calls a tool with half a JSON object."""

    arguments: ClassVar[object] = '{"a": 3, "b"'

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": self.arguments}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.mark.parametrize("stream", [False, True])
def test_a_broken_tool_call_of_a_real_model_is_told_and_does_not_hold_its_episode(start_engine, monkeypatch, stream):
    monkeypatch.setenv("AJET_PROXY_MODEL", "some-model")
    with ThreadingHTTPServer(("127.0.0.1", 0), BrokenToolCall) as other:
        threading.Thread(target=other.serve_forever, args=(0.05,), daemon=True).start()
        engine = start_engine(job(repeat=1, workers=1), "--policy", "proxy", f"http://127.0.0.1:{other.server_port}")
        claim = engine.claim(timeout=0.3)
        ask = {"messages": [{"role": "user", "content": "3+4?"}], "max_tokens": 9, "stream": stream}
        answer = engine.post("/v1/messages", ask, headers={"x-api-key": claim["openai_api_key"]})
        assert answer.status_code == 502
        assert "no JSON object" in answer.json()["error"]["message"]
        assert engine.claim()["episode_uuid"] == claim["episode_uuid"], "it is free when its timeout is over"
        other.shutdown()


class ObjectToolCall(BrokenToolCall):
    """A model whose server sends the arguments of a tool call as an object, not as text."""

    arguments: ClassVar[object] = {"a": 3}


class KeptConnection(ObjectToolCall):
    """A model whose server keeps connections open."""

    protocol_version = "HTTP/1.1"


def test_arguments_that_a_model_sends_as_an_object_become_text(start_engine, monkeypatch):
    monkeypatch.setenv("AJET_PROXY_MODEL", "some-model")
    with ThreadingHTTPServer(("127.0.0.1", 0), ObjectToolCall) as other:
        threading.Thread(target=other.serve_forever, args=(0.05,), daemon=True).start()
        engine = start_engine(job(), "--policy", "proxy", f"http://127.0.0.1:{other.server_port}")
        answer = engine.chat(engine.claim()["openai_api_key"]).json()
        assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"a": 3}'
        other.shutdown()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--policy", "script"],
        ["--policy", "script", "missing.yaml"],
        ["--policy", "echo", "surplus"],
        ["--policy", "proxy", "not a url"],
        ["--latency", "slow"],
        ["--latency", "3-1"],
        ["--fail-rate", "2"],
    ],
)
def test_bad_choices_are_told_before_anything_listens(tmp_path, arguments):
    command = [sys.executable, "-m", "ajet.swarm_cli", "start", "--swarm-port", "0", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_latency_is_kept_whole_and_streamed(start_engine):
    engine = start_engine(job(), "--latency", "0.3", "--policy", "echo")
    key = engine.claim()["openai_api_key"]
    began = time.monotonic()
    engine.chat(key, "one two three four five six")
    assert time.monotonic() - began >= 0.3
    body = {"messages": [{"role": "user", "content": "one two three four five six"}], "stream": True}
    times = []
    with httpx.stream(
        "POST", engine.url + "/v1/chat/completions", json=body, headers={"authorization": f"Bearer {key}"}
    ) as answer:
        times = [time.monotonic() for line in answer.iter_lines() if line]
    assert times[-1] - times[0] >= 0.2, "the pieces come one after another"
    assert engine.pool()["running_episode_details"]


def test_an_episode_is_not_recycled_while_a_slow_reply_streams(start_engine):
    engine = start_engine(job(), "--latency", "1.2", "--policy", "echo")
    claim = engine.claim(timeout=0.4)
    body = {"messages": [{"role": "user", "content": "one two three four"}], "stream": True}
    headers = {"authorization": f"Bearer {claim['openai_api_key']}"}
    text = httpx.post(engine.url + "/v1/chat/completions", json=body, headers=headers, timeout=10).text
    assert text.endswith("data: [DONE]\n\n")
    assert engine.end(claim["episode_uuid"]).json()["success"]


def test_the_fail_rate_is_kept_and_watching_is_spared(start_engine):
    engine = start_engine(job(), "--fail-rate", "0.5")
    body = {"client_uuid": "c", "episode_uuid": "e"}
    with httpx.Client(base_url=engine.url) as client:
        codes = Counter(client.post("/can_continue_episode", json=body).status_code for _ in range(200))
        assert {client.get("/health").status_code for _ in range(30)} == {200}
    assert set(codes) == {200, 500}
    assert 60 < codes[500] < 140
    assert engine.get("/health")["chaos"]["failure"] == codes[500]
