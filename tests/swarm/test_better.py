"""Faults that released servers and clients have, and what happens here instead.

The docstring of each test says the fault. Those that other files test are listed in docs/engine.md.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import SwarmClient, SwarmServerError, SwarmThrottlePolicy
from ajet.tuner_lib.experimental.swarm_http import SwarmHttp
from tests.swarm.conftest import job
from tests.swarm.released_server import ReleasedServer


def poll(satisfied, seconds: float = 10.0) -> None:
    """Wait for something that only shows by asking."""
    deadline = time.monotonic() + seconds
    while not satisfied():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_snapshot_is_whole_while_thousands_of_episodes_end(start_engine):
    """A poll that raced with changes answered 200 with an all-default body."""
    engine = start_engine(job(batch=1000, repeat=2, workers=64))
    stop = threading.Event()

    def work(client: str) -> None:
        while not stop.is_set():
            claim = engine.claim(client)
            engine.post(
                "/abort_episode",
                {"client_uuid": client, "episode_uuid": claim["episode_uuid"], "workflow_output": {}, "task_id": ""},
            )

    with ThreadPoolExecutor(4) as pool:
        for number in range(4):
            pool.submit(work, f"c{number}")
        with httpx.Client(base_url=engine.url) as client:
            for _ in range(200):
                body = client.get("/get_current_batch_rollout_pool_information").json()
                assert body["engine_status"] == "ENGINE.ROLLING"
                assert body["capacity"]["cap"] == 64
        stop.set()


def test_stopping_does_not_hold_up_other_clients(start_engine):
    """stop_engine blocked the event loop for up to 19 s."""
    engine = start_engine(job())
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(engine.post, "/stop_engine")
        assert engine.get("/health")["status"] == "ok"
        assert stopping.result(10).json()["success"]


def test_a_failing_run_says_why_and_can_be_started_again(start_engine, tmp_path):
    """A failed start left BOOTING for ever; the reason never reached clients."""
    engine = start_engine(job("fails"))
    engine.post("/stop_engine")
    state = tmp_path / "saved_experiments" / "fails" / "state.json"
    state.write_text(json.dumps({"step": 1, "policy": {"policy": "another"}}))
    assert engine.post("/start_engine").json()["success"]
    status = engine.wait_for(lambda status: status["engine_status"] == "ENGINE.OFFLINE")
    assert "another" in status["engine_status_detail"]
    state.unlink()
    assert engine.post("/start_engine").json()["success"]
    status = engine.wait_for(lambda status: status["engine_status"] == "ENGINE.ROLLING")
    assert status["engine_status_detail"] is None, "an old reason does not stick"


def test_start_engine_of_the_client_tells_the_servers_reason(start_engine):
    """The client said "Failed to start training engine" and nothing else."""
    engine = start_engine()
    with SwarmClient(engine.url, verbose=False) as client, pytest.raises(RuntimeError, match="No training config"):
        client.start_engine()


def test_an_existing_experiment_is_not_deleted(start_engine, tmp_path):
    """``ajet-swarm start --conf`` removed saved_experiments/<experiment_name>."""
    folder = tmp_path / "saved_experiments" / "precious"
    folder.mkdir(parents=True)
    (folder / "results.txt").write_text("weeks of work")
    start_engine(job("precious"))
    assert (folder / "results.txt").read_text() == "weeks of work"


def test_an_experiment_folder_is_told_from_another_with_a_longer_name(start_engine, tmp_path):
    """Name and folder were compared as substrings: folder /d/foo_v2 and name foo became /d/foo."""
    engine = start_engine(job("foo", experiment_dir=str(tmp_path / "foo_v2")))
    assert engine.get("/get_server_experiment_dir")["server_experiment_dir"] == str(tmp_path / "foo_v2" / "foo")


def test_key_order_of_a_config_does_not_matter(start_engine):
    """A synced YAML with sorted keys was refused."""
    import yaml

    engine = start_engine()
    text = yaml.safe_dump(yaml.safe_load(job()), sort_keys=True)
    assert engine.post("/sync_train_config", {"yaml_as_string": text}).json() == {"success": True}


def test_a_batch_of_more_than_1000_tasks_starts(start_engine):
    """train_batch_size above 1000 gave an empty loader."""
    engine = start_engine(job(batch=5000))
    assert engine.pool()["completed_task_target"] == 5000


def test_calls_of_one_episode_are_served_side_by_side(start_engine):
    """Calls of one episode were served one at a time."""
    engine = start_engine(job(), "--latency", "3", "--policy", "echo")
    key = engine.claim()["openai_api_key"]

    def on_the_way() -> str:
        (episode,) = engine.pool()["running_episode_details"].values()
        return episode["llm_call_count"]

    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(engine.chat, key) for _ in range(8)]
        poll(lambda: on_the_way() == "8")
        assert {call.result(20).status_code for call in calls} == {200}


def test_turns_in_rolling_post_are_trained_on(start_engine):
    """In ROLLING_POST further turns were answered but not recorded."""
    engine = start_engine(job(batch=1, repeat=1, workers=2, steps=2))
    late = engine.claim("late")
    engine.chat(late["openai_api_key"])
    engine.run_episode(task="t1")
    engine.wait_for(lambda status: status["engine_status"] == "ENGINE.ROLLING_POST")
    assert engine.chat(late["openai_api_key"]).status_code == 200
    assert engine.end(late["episode_uuid"], 0.0, "late", "t2").status_code == 200
    engine.wait_for(lambda status: status["global_step"] == 2)
    assert engine.metrics()[0]["metrics"]["critic/llm_call_cnt"] == 1.5


def test_eval_runs_at_its_own_temperature_and_train_at_its_own(start_engine):
    """Nobody read preserve_sampling_params: eval ran at the training temperature."""
    engine = start_engine(job())

    def replies(kind: str, **options: float) -> set[str]:
        key = engine.claim(episode_type=kind)["openai_api_key"]
        answer = engine.chat(key, "Add 3 and 4.", n=30, **options).json()
        return {choice["message"]["content"] for choice in answer["choices"]}

    assert len(replies("eval")) == 1, "the default of validation is temperature 0"
    assert len(replies("train")) > 1
    assert len(replies("train", temperature=0)) == 1, "what a request asks for is honoured"
    assert len(replies("eval", temperature=1)) > 1


def test_a_client_that_only_aborts_does_not_hold_up_an_agreement(start_engine):
    """An abort made a client active, and all-clients mode then waited for it for ten minutes."""
    engine = start_engine(job(swarm_mode_sample_collection_method="rollout_until_all_clients_agree_sync_weight"))
    claim = engine.claim("visitor")
    body = {"client_uuid": "visitor", "episode_uuid": claim["episode_uuid"], "workflow_output": {}, "task_id": ""}
    engine.post("/abort_episode", body)
    engine.run_episode(client="worker")
    assert engine.post("/agree_sync_weight", {"client_uuid": "worker"}).json()["success"]
    engine.wait_for(lambda status: status["global_step"] == 2)


def test_an_agreement_takes_effect_at_once_and_for_one_step(start_engine):
    """Agreement reached the engine with the next pool push, up to 16 s later, and was not tied to a step."""
    engine = start_engine(job(swarm_mode_sample_collection_method="rollout_until_any_client_agree_sync_weight"))
    engine.run_episode()
    engine.post("/agree_sync_weight", {"client_uuid": "c1"})
    engine.wait_for(lambda status: status["global_step"] == 2)
    assert engine.pool()["swarm_client_instruction"]["active_clients"] == []
    assert engine.post("/agree_sync_weight", {"client_uuid": "c1"}).json()["success"] is False


def test_a_client_without_a_job_can_agree(start_engine):
    """agree_sync_weight asserted a job: clients that only join got an AssertionError."""
    engine = start_engine(job(swarm_mode_sample_collection_method="rollout_until_any_client_agree_sync_weight"))
    with SwarmClient(engine.url, verbose=False) as client:
        episode_uuid, model = client.begin_episode()
        engine.chat(model.api_key)
        client.end_episode(Task(task_id="t"), episode_uuid, WorkflowOutput(reward=1.0))
        assert client.agree_sync_weight() is True, "a sync that is over before it is looked for is not missed"


def test_agreeing_in_another_method_is_refused_with_its_name(start_engine):
    """An assertion: 500 and a dropped connection."""
    engine = start_engine(job())
    answer = engine.post("/agree_sync_weight", {"client_uuid": "c1"})
    assert answer.status_code == 400
    assert "rollout_until_finish_enough_tasks" in answer.json()["detail"]


def test_finished_tasks_are_forgotten_with_their_step(start_engine):
    """completed_tasks_client_uuids survived weight sync and stop_engine."""
    engine = start_engine(job(batch=1, repeat=1))
    policy = {"expected_batch_size": 1, "expected_num_repeat": 1, "current_task_id": "t1"}
    claim = engine.claim(throttle_policy=policy)
    engine.chat(claim["openai_api_key"])
    engine.end(claim["episode_uuid"])
    engine.wait_for(lambda status: status["global_step"] == 2)
    assert engine.pool()["completed_tasks_client_uuids"] == {}


def test_keys_and_prompts_are_not_handed_to_everybody(start_engine):
    """get_episode_buffer gave every episode's key to anyone."""
    engine = start_engine(job())
    key = engine.claim()["openai_api_key"]
    assert key not in engine.post("/get_episode_buffer").text


def test_a_server_listens_on_loopback_unless_it_is_told_to(start_engine):
    """The server bound 0.0.0.0."""
    engine = start_engine()
    inode = {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines() if " 0A " in line}
    port = int(engine.url.rsplit(":", 1)[1])
    lines = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    assert f"0100007F:{port:04X}" in lines
    assert f"00000000:{port:04X}" not in lines
    assert inode


def test_a_server_url_may_end_in_a_slash(start_engine):
    """A trailing slash gave //path and 404s."""
    engine = start_engine(job())
    with SwarmClient(engine.url + "/", verbose=False) as client:
        assert client.begin_episode()[1].base_url == f"{engine.url}/v1"


@pytest.mark.parametrize("url", ["localhost:10086", "", "ftp://x", "http://"])
def test_a_server_url_that_is_none_is_refused_at_once(url):
    """It failed later, somewhere in httpx."""
    with pytest.raises(ValueError, match="http://127"):
        SwarmClient(url)


def test_a_client_can_be_closed_and_leaves_no_thread(start_engine):
    """The polling thread could not be stopped."""
    engine = start_engine()
    before = threading.active_count()
    with SwarmClient(engine.url, verbose=False) as client:
        client.get_engine_status()
    engine.post("/sync_train_config", {"yaml_as_string": job()})
    engine.post("/start_engine")  # the change ends the long poll that may be open
    poll(lambda: threading.active_count() <= before)


def test_a_request_that_is_under_way_outlives_the_closing(monkeypatch):
    """A socket was closed under the thread that read from it, which then read from the next with its number."""
    server = ReleasedServer().start()
    handle, may_answer, answers = server.handle, threading.Event(), []

    def slowly(*request):
        assert may_answer.wait(20)
        return handle(*request)

    monkeypatch.setattr(server, "handle", slowly)
    try:
        http = SwarmHttp(server.url)
        thread = threading.Thread(target=lambda: answers.append(http.get("/get_engine_status")))
        thread.start()
        poll(lambda: server.requests)
        http.close()
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))):  # it gets a free number
            may_answer.set()
            thread.join(20)
        assert [answer["engine_status"] for answer in answers] == ["ENGINE.OFFLINE"]
        with pytest.raises(RuntimeError, match="closed"):
            http.get("/get_engine_status")
    finally:
        server.stop()


def test_64_threads_of_one_client_lose_nothing(start_engine):
    """Shared dicts without a lock orphaned claims; a refreshed connection failed under other threads."""
    engine = start_engine(job(batch=1000, repeat=4, workers=64))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with SwarmClient(engine.url, verbose=False) as client, ThreadPoolExecutor(64) as pool:

            def cycle(number: int) -> str:
                episode_uuid, _ = client.begin_episode()
                client.end_episode(Task(task_id=f"t{number}"), episode_uuid, WorkflowOutput(reward=1.0))
                return episode_uuid

            uuids = list(pool.map(cycle, range(600)))
            assert len(set(uuids)) == 600
            assert client._claims == {}
            assert client.get_rollout_stat().running_episode_details is None
    finally:
        sys.setswitchinterval(interval)


def test_an_episode_that_appears_is_claimed_and_rolling_is_noticed_without_a_fixed_delay(start_engine):
    """Fixed delays of 2, 5 and 15 s: an episode in an empty pool was claimed after 1.9 s."""
    engine = start_engine(job(batch=1, repeat=1, workers=1, steps=50))
    with SwarmClient(engine.url, verbose=False) as client:
        episode_uuid, model = client.begin_episode()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.begin_episode)
            engine.chat(model.api_key)
            asked = client._http.requests
            client.end_episode(Task(task_id="t"), episode_uuid, WorkflowOutput(reward=1.0))
            assert waiting.result(10)[0] != episode_uuid
            assert client._http.requests - asked <= 8, "it waited through the weight sync and did not poll"


def test_a_throttle_policy_that_cannot_work_is_told_at_once(start_engine):
    """It was logged every 15 s for ever."""
    engine = start_engine(job())
    policy = SwarmThrottlePolicy(expected_batch_size=1, expected_num_repeat=1, current_task_id="")
    with SwarmClient(engine.url, verbose=False) as client, pytest.raises(ValueError, match="current_task_id"):
        client.begin_episode(throttle_policy=policy)


def test_a_request_that_can_never_succeed_is_not_repeated(start_engine):
    """An unknown episode type was tried again every 15 s."""
    engine = start_engine(job())
    with SwarmClient(engine.url, verbose=False) as client, pytest.raises(SwarmServerError, match="episode_type"):
        client.begin_episode(episode_type="trian")


def test_no_server_is_an_error_soon(tmp_path):
    """auto_sync slept 16 s; a lost server kept its last good status."""
    with SwarmClient("http://127.0.0.1:9", verbose=False) as client:
        assert client.get_engine_status() == ("ENGINE.CANNOT_CONNECT", {})


def test_a_lost_server_is_not_shown_as_it_was(start_engine):
    """After a lost server the last good status was kept."""
    engine = start_engine(job())
    with SwarmClient(engine.url, verbose=False) as client:
        assert client.get_engine_status()[0] == "ENGINE.ROLLING"
        engine.process.kill()
        poll(lambda: client.get_engine_status()[0] == "ENGINE.CANNOT_CONNECT", 20)


def test_a_restart_does_not_sleep_and_leaves_no_temporary_files(start_engine, monkeypatch, tmp_path):
    """force_restart slept 8 s; temporary YAML files were left behind."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    engine = start_engine()
    with SwarmClient(engine.url, verbose=False) as client:
        wanted = AgentJetJob(experiment_name="r", batch_size=2, num_repeat=2, logging="console")
        client.auto_sync_train_config_and_start_engine(wanted)
        first = client.get_engine_status()[1]["run"]
        client.auto_sync_train_config_and_start_engine(wanted, force_restart=True)
        assert client.get_engine_status()[1]["run"] != first
        assert client.get_engine_status()[0] == "ENGINE.ROLLING"
    assert list(scratch.iterdir()) == []


def test_a_reward_of_any_number_type_is_taken(start_engine):
    """Numpy scalars were not coerced."""
    import numpy as np

    engine = start_engine(job(batch=8))
    with SwarmClient(engine.url, verbose=False) as client:
        for number, reward in enumerate([np.float32(0.5), np.int64(1), True, 2]):
            episode_uuid, model = client.begin_episode()
            engine.chat(model.api_key)
            client.end_episode(Task(task_id=f"t{number}"), episode_uuid, WorkflowOutput(reward=reward))
    rewards = engine.pool()["completed_tasks_rewards"]
    assert [values[0] for values in rewards.values()] == [0.5, 1.0, 1.0, 2.0]


def test_help_prints_nothing_but_help():
    """``ajet-swarm`` printed a stray "test" line on every invocation."""
    done = subprocess.run(
        [sys.executable, "-m", "ajet.swarm_cli", "--help"], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.startswith("Usage:")
    assert done.stderr == ""


def test_importing_the_wire_models_touches_nothing(tmp_path):
    """Importing interchange_utils made /tmp/agentjet and an HTTP client."""
    code = (
        "import ajet.tuner_lib.experimental.interchange_utils, os, sys; print(os.listdir('.'), 'httpx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] False"


def test_verbose_lines_and_code_sync_and_replay_are_there(start_engine, tmp_path):
    """The rest of the endpoints, as the facts have them."""
    import io
    import zipfile

    engine = start_engine()
    engine.post("/push_verbose_log", {"message": "hello", "tag": "t"})
    assert engine.get("/get_verbose_logs")["entries"][0]["message"] == "hello"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("ajet/x.py", "raise SystemExit('never run')")
    answer = httpx.post(engine.url + "/sync_train_code", content=buffer.getvalue()).json()
    assert Path(answer["temp_ajet_code_path"], "x.py").exists()
    for body in (b"", b"no zip", b"PK\x05\x06" + b"\0" * 18):
        assert httpx.post(engine.url + "/sync_train_code", content=body).status_code == 400
    assert engine.post("/replay_latest_llm_call").status_code == 404
    engine.post("/sync_train_config", {"yaml_as_string": job()})
    engine.post("/start_engine")
    engine.chat(engine.claim()["openai_api_key"], "Add 3 and 4.")
    replay = engine.post("/replay_latest_llm_call").json()
    assert replay["input"]["messages"][-1]["content"] == "Add 3 and 4."
    assert replay["output"]["object"] == "chat.completion"
    assert httpx.post(engine.url + "/sync_train_code", content=buffer.getvalue()).status_code == 400


def test_an_engine_outside_may_use_the_server_with_every_status(start_engine):
    """ENGINE.WEIGHT_EXPORTING is accepted though nobody sets it; an unknown status is not."""
    engine = start_engine()
    for status in ("ENGINE.WEIGHT_EXPORTING", "ENGINE.ROLLING"):
        body = {"engine_status": status, "global_step": 3}
        assert engine.post("/update_engine_status", body).json()["success"]
        assert engine.get("/get_engine_status")["engine_status"] == status
    assert (
        engine.post("/update_engine_status", {"engine_status": "x"}).json()["failure_reason"] == "Invalid engine status"
    )
    registered = {"episode_uuid": "e1", "openai_base_url": "http://x/v1", "openai_api_key": "sk-ajet-x"}
    assert engine.post("/register_episode", registered).json()["success"]
    assert engine.post("/register_episode", registered).json()["success"]
    claim = engine.claim()
    assert (claim["episode_uuid"], claim["openai_api_key"]) == ("e1", "sk-ajet-x")
    again = engine.post(
        "/claim_episode", {"client_uuid": "c", "episode_type": "train", "discard_episode_timeout": 1}
    ).json()
    assert not again["success"], "an episode that was registered twice is there once"
    engine.post("/update_engine_status", {"engine_status": "ENGINE.WEIGHT_SYNCING"})
    assert engine.post("/get_episode_buffer").json() == {"buffer": []}


def test_the_log_of_a_server_that_a_client_starts_follows_no_link_that_was_laid_for_it(tmp_path, monkeypatch):
    """It had the same name in /tmp for everybody."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        (tmp_path / "precious").write_text("weeks of work")
        (tmp_path / f"ajet_swarm_{port}.log").symlink_to("precious")
        with pytest.raises(RuntimeError, match="did not start") as refused:
            SwarmClient(f"http://127.0.0.1:{port}", auto_start_swarm_server=True)
    assert (tmp_path / "precious").read_text() == "weeks of work"
    log = Path(str(refused.value).rpartition("see ")[2])
    assert str(port) in log.read_text()
