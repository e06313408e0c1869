"""Overwatch in a terminal, and the page in a browser."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.swarm.browser import CHROMIUM, Browser
from tests.swarm.conftest import job

PICTURE = os.environ.get("AJET_DOCS_PICTURE")
"""Where to write the page's picture for the documentation, if that is wanted."""


def busy(engine) -> None:
    """Bring an engine into the middle of a step: two steps made, some tasks done, some episodes open."""
    for step in range(2):
        for number in range(8):
            engine.run_episode(reward=step + number % 3, task=f"algebra-{step}-{number // 2}")
        engine.wait_for(lambda status, step=step: status["global_step"] == step + 2)
    for number in range(4):
        engine.run_episode(reward=number % 2, task=f"algebra-2-{number // 2}", client="5b1c9a52-client")
    for client in ("5b1c9a52-client", "e07f66d1-client"):
        for number in range(3):
            claim = engine.claim(
                client,
                throttle_policy={
                    "expected_batch_size": 4,
                    "expected_num_repeat": 2,
                    "current_task_id": f"geometry-{number}",
                },
            )
            engine.chat(claim["openai_api_key"])


@pytest.fixture
def browser():
    if not CHROMIUM:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    browser = Browser()
    yield browser
    browser.close()


def test_the_page_shows_a_running_step_and_follows_it(start_engine, browser, tmp_path):
    engine = start_engine(job(batch=4, repeat=2, workers=8, steps=50))
    busy(engine)
    browser.open(engine.url + "/")
    text = browser.wait_for(lambda text: "ENGINE.ROLLING" in text and "6 of cap 8" in text)
    assert "step 3" in text
    assert "geometry-2" in text
    assert "algebra-2-1" in text
    assert "5b1c9a52" in text
    assert "held back by clients: 2 slots stand idle" in text
    assert len(browser.value("document.getElementById('curve').getAttribute('points')").split()) == 2
    for _ in range(2):
        engine.claim("e07f66d1-client")
    browser.wait_for(lambda text: "8 of cap 8" in text and "held back by cap" in text)
    browser.screenshot(Path(PICTURE) if PICTURE else tmp_path / "page.png")
    assert browser.complaints() == []
    assert {url for url in browser.requests() if not url.startswith(engine.url)} <= {"about:blank"}
    assert browser.value("document.querySelectorAll('form, button, input, a').length") == 0
    engine.post("/stop_engine")
    browser.wait_for(lambda text: "ENGINE.OFFLINE" in text)


def test_the_page_says_when_the_server_is_gone(start_engine, browser):
    engine = start_engine(job())
    browser.open(engine.url + "/")
    browser.wait_for(lambda text: "ENGINE.ROLLING" in text)
    engine.process.kill()
    browser.wait_for(lambda text: "does not answer" in text)


def test_names_of_clients_and_tasks_are_text_and_nothing_else(start_engine, browser):
    engine = start_engine(job(batch=4))
    evil = "<img src=x onerror=document.title='pwned'>"
    engine.run_episode(task=evil, client=evil)
    browser.open(engine.url + "/")
    browser.wait_for(lambda text: evil in text)
    assert browser.value("document.title") != "pwned"
    assert browser.value("document.images.length") == 0


def test_the_page_can_only_be_read_and_names_no_other_host(start_engine):
    engine = start_engine()
    page = httpx.get(engine.url + "/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert re.findall(r"https?://[^\s\"']+", page.text) == []
    assert httpx.post(engine.url + "/").status_code == 405


def test_events_are_frames_and_end_with_the_reader(start_engine):
    engine = start_engine(job())
    engine.claim()
    with httpx.stream("GET", engine.url + "/events", timeout=10) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        data = (line.removeprefix("data: ") for line in response.iter_lines() if line)
        frames = [json.loads(next(data)) for _ in range(2)]
    assert frames[-1]["running_episodes"] == 1
    assert frames[-1]["cap"] == 8
    assert engine.get("/health")["status"] == "ok"


def overwatch(url: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ajet.swarm_cli", "overwatch", "--swarm-url", url, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_once_json_names_cap_and_binding_limit(start_engine):
    engine = start_engine(job(batch=4, repeat=2, workers=8, steps=50))
    busy(engine)
    frame = json.loads(overwatch(engine.url, "--once", "--json").stdout)
    assert (frame["running_episodes"], frame["cap"], frame["binding"]["name"]) == (6, 8, "clients")
    assert [row["name"] for row in frame["progress"]] == ["episodes", "tasks", "non-dummy tasks"]
    assert [row["decides"] for row in frame["progress"]] == [False, True, False]
    assert len(frame["episodes"]) == 6
    text = overwatch(engine.url, "--once").stdout
    assert "6" in text
    assert "cap" in text
    assert "held back by clients" in text


def test_agree_methods_have_a_row_of_their_own(start_engine):
    method = "rollout_until_all_clients_agree_sync_weight"
    engine = start_engine(job(swarm_mode_sample_collection_method=method))
    for client in ("c1", "c2"):
        engine.run_episode(client=client)
    engine.post("/agree_sync_weight", {"client_uuid": "c1"})
    frame = json.loads(overwatch(engine.url, "--once", "--json").stdout)
    assert frame["progress"][-1] == {"name": "clients that agree", "completed": 1, "target": 2, "decides": True}


def test_the_terminal_is_live_and_obeys_its_keys(start_engine):
    engine = start_engine(job())
    claim = engine.claim()
    engine.chat(claim["openai_api_key"], "Add 3 and 4, please.")
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "ajet.swarm_cli", "top", "--swarm-url", engine.url, "--refresh-interval", "0.2"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "50"}
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    seen = ""

    def read_until(word: str) -> None:
        nonlocal seen
        deadline = time.monotonic() + 20
        while word not in seen:
            assert time.monotonic() < deadline, seen[-2000:]
            if select.select([controller], [], [], 0.5)[0]:
                seen += os.read(controller, 1 << 16).decode(errors="replace")

    try:
        read_until("ROLLING")
        read_until("running episodes")
        os.write(controller, b"t")
        read_until("Add 3 and 4, please.")
        seen = ""
        os.write(controller, b"t")
        read_until("running episodes")
        os.write(controller, b"q")
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        os.close(controller)
