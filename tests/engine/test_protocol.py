"""The swarm protocol on the wire: what a client may do, and what it is told otherwise."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

from tests.engine.conftest import job

STEP = [
    "ENGINE.OFFLINE",
    "ENGINE.BOOTING",
    "ENGINE.ROLLING",
    "ENGINE.ROLLING_POST",
    "ENGINE.WEIGHT_SYNCING",
    "ENGINE.ROLLING",
]


def test_a_client_starts_the_engine_and_sees_every_status_of_a_step(start_engine):
    engine = start_engine()
    status = engine.get("/get_engine_status")
    seen, ready = [status["engine_status"]], threading.Event()

    def watch(revision: int) -> None:
        while len(seen) < len(STEP):
            ready.set()
            now = engine.get("/get_engine_status", revision=revision, wait_seconds=20)
            # a poll may come back after two changes: the revisions between tell how many were missed
            seen.append(now["engine_status"]) if now["revision"] == revision + 1 else seen.extend(
                STEP[len(seen) : len(seen) + now["revision"] - revision]
            )
            revision = now["revision"]

    watcher = threading.Thread(target=watch, args=[status["revision"]])
    watcher.start()
    ready.wait()
    assert engine.post("/start_engine").json() == {"success": False, "error": "No training config found"}
    assert engine.post("/sync_train_config", {"yaml_as_string": job()}).json() == {"success": True}
    started = engine.post("/start_engine").json()
    assert started["success"]
    for index in range(4):
        engine.run_episode(task=f"t{index // 2}", reward=float(index % 2))
    watcher.join(30)
    assert seen == STEP
    assert engine.get("/get_engine_status")["global_step"] == 2
    assert engine.post("/start_engine").status_code == 400
    assert engine.post("/stop_engine").json() == {"success": True, "failure_reason": ""}
    assert engine.get("/get_engine_status")["engine_status"] == "ENGINE.OFFLINE"


def test_health_says_that_this_is_the_reference_and_what_its_policy_is(start_engine):
    health = start_engine().get("/health")
    assert health["status"] == "ok"
    assert health["engine"] == "reference"
    assert "not a language model" in health["policy_is"]


@pytest.mark.parametrize(
    ("reward", "named"), [(None, "None"), (float("nan"), "nan"), (float("inf"), "inf"), ([1.0, 0.0], "[1.0, 0.0]")]
)
def test_a_reward_that_cannot_be_trained_on_is_refused_and_the_episode_kept(start_engine, reward, named):
    engine = start_engine(job())
    claim = engine.claim()
    engine.chat(claim["openai_api_key"])
    refused = engine.end(claim["episode_uuid"], reward)
    assert refused.status_code == 400
    assert f"reward is {named}" in refused.json()["detail"]
    assert engine.end(claim["episode_uuid"], 1.0).json()["success"]
    assert engine.pool()["completed_episodes"] == 1


def test_ends_that_do_not_fit_a_claim_are_told_why(start_engine):
    engine = start_engine(job())
    unknown = engine.end("no-such-uuid")
    assert (unknown.status_code, unknown.json()["detail"]) == (400, "Episode no-such-uuid not found.")
    registered = engine.post("/get_episode_buffer").json()["buffer"][0]["episode_uuid"]
    unclaimed = engine.end(registered)
    assert unclaimed.status_code == 400
    assert "is not in claimed status" in unclaimed.json()["detail"]
    claim = engine.claim("c1")
    stranger = engine.end(claim["episode_uuid"], client="c2")
    assert stranger.status_code == 404
    assert "is claimed by different client: c1" in stranger.json()["detail"]
    body = {
        "client_uuid": "c1",
        "episode_uuid": claim["episode_uuid"],
        "workflow_output": {"reward": 1},
        "task_id": "t",
    }
    nameless = engine.post("/end_episode", body)
    assert nameless.status_code == 400
    assert "metadata['task_id'] is None" in nameless.json()["detail"]


def test_an_episode_ended_twice_is_counted_once(start_engine):
    engine = start_engine(job(batch=4))
    uuid = engine.run_episode()
    again = engine.end(uuid)
    assert again.json()["success"]
    assert engine.pool()["completed_episodes"] == 1


def test_an_episode_without_a_chat_call_is_accepted_with_a_warning_and_not_counted(start_engine):
    engine = start_engine(job())
    answer = engine.end(engine.claim()["episode_uuid"]).json()
    assert answer["success"]
    assert "no chat call" in answer["warning"]
    assert engine.pool()["completed_episodes"] == 0


def test_the_episode_of_a_client_that_vanished_goes_to_another_and_its_key_is_void(start_engine):
    engine = start_engine(job(batch=1, repeat=1, workers=1))
    lost = engine.claim("vanished", timeout=0.3)
    found = engine.claim("c2", wait_seconds=20)
    assert found["episode_uuid"] == lost["episode_uuid"]
    assert found["openai_api_key"] != lost["openai_api_key"]
    late = engine.chat(lost["openai_api_key"])
    assert late.status_code == 404
    assert "given to another client" in late.json()["error"]["message"]
    assert engine.chat(found["openai_api_key"]).status_code == 200


def test_an_aborted_episode_can_be_claimed_again_but_only_its_holder_may_abort(start_engine):
    engine = start_engine(job(batch=1, repeat=1, workers=1))
    claim = engine.claim("c1")
    body = {"client_uuid": "c2", "episode_uuid": claim["episode_uuid"], "workflow_output": {}, "task_id": ""}
    assert engine.post("/abort_episode", body).status_code == 404
    assert engine.post("/abort_episode", {**body, "client_uuid": "c1"}).json()["success"]
    assert engine.claim("c2")["episode_uuid"] == claim["episode_uuid"]


def test_an_eval_episode_is_not_trained_on(start_engine):
    engine = start_engine(job())
    claim = engine.claim(episode_type="eval")
    engine.chat(claim["openai_api_key"])
    assert engine.end(claim["episode_uuid"]).json()["success"]
    assert engine.pool()["completed_episodes"] == 0


def test_waiting_clients_are_served_in_the_order_in_which_they_came(start_engine):
    engine = start_engine(job(batch=1, repeat=1, workers=1))
    holder = engine.claim("holder")
    order: list[str] = []

    def wait(name: str) -> None:
        claim = engine.claim(name, wait_seconds=30)
        order.append(name)
        body = {"client_uuid": name, "episode_uuid": claim["episode_uuid"], "workflow_output": {}, "task_id": ""}
        engine.post("/abort_episode", body)

    waiters = []
    for number in range(4):
        waiters.append(threading.Thread(target=wait, args=[f"c{number}"]))
        waiters[-1].start()
        deadline = time.monotonic() + 20
        while engine.pool()["capacity"]["waiting_claims"] <= number:
            assert time.monotonic() < deadline
    body = {"client_uuid": "holder", "episode_uuid": holder["episode_uuid"], "workflow_output": {}, "task_id": ""}
    engine.post("/abort_episode", body)
    for waiter in waiters:
        waiter.join(30)
    assert order == ["c0", "c1", "c2", "c3"]


def test_an_episode_is_not_given_to_a_waiting_client_that_hung_up(start_engine):
    engine = start_engine(job(batch=1, repeat=1, workers=1))
    holder = engine.claim("holder")
    body = {"client_uuid": "gone", "episode_type": "train", "discard_episode_timeout": 60, "wait_seconds": 30}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(engine.url + "/claim_episode", json=body, timeout=0.5)
    body = {"client_uuid": "holder", "episode_uuid": holder["episode_uuid"], "workflow_output": {}, "task_id": ""}
    engine.post("/abort_episode", body)
    assert engine.claim("next")["client_uuid"] == "next"


def test_a_claim_is_refused_with_the_phrase_that_released_clients_look_for(start_engine):
    engine = start_engine()
    body = {"client_uuid": "c", "episode_type": "train", "discard_episode_timeout": 5}
    assert (
        engine.post("/claim_episode", body)
        .json()["fail_cause"]
        .startswith("Engine not ready. Current status: [ENGINE.OFFLINE]. Please start the engine first.")
    )
    for status, phrase in [
        ("ENGINE.WEIGHT_SYNCING", "Engine is syncing weights"),
        ("ENGINE.ROLLING_POST", "Engine is in post-rolling phase"),
        ("ENGINE.ROLLING", "No available episodes to claim."),
    ]:
        engine.post("/update_engine_status", {"engine_status": status})
        assert phrase in engine.post("/claim_episode", body).json()["fail_cause"]
    assert engine.post("/claim_episode", {**body, "episode_type": "test"}).status_code == 400


def test_what_does_not_belong_here_gets_a_clear_answer(start_engine):
    engine = start_engine()
    assert engine.post("/claim_episode", {"client_uuid": "c"}).status_code == 422
    wrong = httpx.post(engine.url + "/claim_episode", content=b"{not json")
    assert wrong.status_code == 422
    assert "Invalid JSON" in wrong.json()["detail"][0]["msg"]
    assert httpx.get(engine.url + "/claim_episode").status_code == 405
    assert httpx.request("BREW", engine.url + "/health").status_code in (400, 405)
    assert "openapi" in httpx.get(engine.url + "/nothing").json()["detail"]
    for key in ["x", "nonsense", "sk-ajet-!!!", "sk-ajet-e30="]:
        answer = engine.chat(key)
        assert answer.status_code == 401
        assert answer.json()["error"]["message"] == answer.json()["detail"]


def test_pages_of_other_sites_cannot_use_the_server_through_a_browser(start_engine):
    engine = start_engine()
    config = {"yaml_as_string": job()}
    foreign = engine.post("/sync_train_config", config, headers={"origin": "http://evil.example"})
    assert foreign.status_code == 403
    assert "a page of http://evil.example may not call this server" in foreign.json()["detail"]
    rebound = engine.post("/sync_train_config", config, headers={"host": "evil.example:10086"})
    assert rebound.status_code == 403
    assert "call it as 127.0.0.1 or localhost" in rebound.json()["detail"]
    own = engine.post("/sync_train_config", config, headers={"origin": engine.url})
    assert own.status_code == 200
    by_name = httpx.get(engine.url.replace("127.0.0.1", "localhost") + "/health")
    assert by_name.status_code == 200


def test_odd_reports_of_one_client_do_not_end_the_run_of_all(start_engine):
    engine = start_engine(job(batch=1, repeat=2, steps=2))
    reports = [
        {"tool_stats": {"total_calls": "many", "success_calls": 2}, "reward_stats": {"penalty": "x"}, "big": 1e308},
        {"a\nstep:99 - critic/rewards/mean:9.0": 1, "big": 1e308},
    ]
    for reward, report in enumerate(reports):
        claim = engine.claim()
        engine.chat(claim["openai_api_key"])
        output = {"reward": reward, "metadata": {"task_id": "t"}, "log_metrics": report}
        body = {"client_uuid": "c1", "episode_uuid": claim["episode_uuid"], "workflow_output": output, "task_id": "t"}
        assert engine.post("/end_episode", body).status_code == 200
    engine.wait_for(lambda status: status["global_step"] == 2)
    (metrics,) = [line["metrics"] for line in engine.metrics()]
    assert metrics["train_tool_stats/tool_success_calls"] == 2
    assert metrics["train_big"] is None
    assert "train_a_step_99_-_critic/rewards/mean_9.0" in metrics


def test_tools_that_are_none_and_waits_that_are_none_are_refused(start_engine):
    engine = start_engine(job())
    key = engine.claim()["openai_api_key"]
    for tools in [[{"function": 5}], [{"function": {"name": "f", "parameters": {"properties": 5}}}]]:
        answer = engine.chat(key, tools=tools)
        assert answer.status_code == 400
        assert "a tool is" in answer.json()["error"]["message"]
    assert httpx.get(engine.url + "/get_engine_status?revision=1&wait_seconds=nan").status_code == 422


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"properties": {"a": {"enum": []}}}, "a tool is"),
        ({"properties": {"a": {"enum": 5}}}, "a tool is"),
        ({"properties": {}, "required": [[]]}, "required"),
        ({"properties": {}, "required": 5}, "required"),
    ],
)
def test_tools_whose_parameters_are_no_schema_are_refused(start_engine, parameters, said):
    engine = start_engine(job())
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    answer = engine.chat(engine.claim()["openai_api_key"], tools=[tool])
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


NO_SCHEMA = {"type": "object", "properties": 5}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"messages": [], "tools": [{"name": "f", "input_schema": NO_SCHEMA}]}),
        ("/v1/messages/count_tokens", {"messages": [], "tools": [{"name": "f", "input_schema": NO_SCHEMA}]}),
        ("/v1/responses", {"input": "x", "tools": [{"type": "function", "name": "f", "parameters": NO_SCHEMA}]}),
    ],
)
def test_every_api_refuses_a_bad_tool_in_its_own_words(start_engine, path, body):
    engine = start_engine(job())
    answer = engine.post(path, body, headers={"authorization": f"Bearer {engine.claim()['openai_api_key']}"})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert "a tool is" in answer.json()["error"]["message"]
    assert answer.json().get("type") == ("error" if "messages" in path else None)


def test_a_named_tool_that_is_no_object_is_refused(start_engine):
    engine = start_engine(job())
    answer = engine.chat(engine.claim()["openai_api_key"], tool_choice={"type": "function", "function": 5})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"messages": [{"role": "user", "content": [5]}]}),
        ("/v1/messages", {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": [5]}]}]}),
        ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": [5]}]}),
        ("/v1/responses", {"input": [{"type": "message", "role": "user", "content": [5]}]}),
    ],
)
def test_content_whose_parts_are_no_objects_is_refused(start_engine, path, body):
    engine = start_engine(job())
    bearer = {"authorization": f"Bearer {engine.claim()['openai_api_key']}"}
    answer = engine.post(path, body, headers=bearer)
    assert answer.status_code == 400
    assert "object" in answer.json()["error"]["message"]


def test_a_patience_without_end_is_cut_to_a_week(start_engine):
    engine = start_engine(job())
    engine.claim(timeout=1e308)
    (episode,) = [one for one in engine.post("/get_episode_buffer").json()["buffer"] if one["client_uuid"]]
    assert episode["discard_episode_timeout"] == 7 * 24 * 3600


def test_sigterm_answers_those_who_wait_on_an_engine_that_is_offline(start_engine):
    engine = start_engine()
    status = engine.get("/get_engine_status")
    answers = []

    def wait() -> None:
        with (
            httpx.Client(base_url=engine.url, timeout=60) as http,
            http.stream(
                "GET", "/get_engine_status", params={"revision": status["revision"], "wait_seconds": 50}
            ) as answer,
        ):
            answers.append(answer.read())

    waiter = threading.Thread(target=wait)
    waiter.start()
    engine.post("/push_verbose_log", {"message": "a round trip, so that the poll is on its way"})
    engine.process.send_signal(signal.SIGTERM)
    waiter.join(30)
    assert engine.process.wait(30) == 0


def test_a_body_of_50_mb_is_refused_and_the_server_lives_on(start_engine):
    engine = start_engine(job())
    body = b'{"client_uuid": "' + b"x" * 50_000_000 + b'"}'
    answer = httpx.post(engine.url + "/end_episode", content=body, timeout=60)
    assert answer.status_code == 413
    assert "at most 33,554,432" in answer.json()["detail"]
    engine.run_episode()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("ajet: {rollout: [", "malformed YAML"),
        ("just text", "ajet"),
        ("/etc/passwd", "ajet"),
        ("ajet: {rollout: {num_repeat: 0}}", "ajet.rollout.num_repeat is 0"),
        ("ajet: {data: {train_batch_size: many}}", "ajet.data.train_batch_size is 'many'"),
        ("ajet: {data: {train_batch_size: .inf}}", "must be a whole number"),
        ("ajet: {rollout: {num_repeat: 2.5}}", "must be a whole number"),
    ],
)
def test_a_config_that_cannot_be_used_is_refused_when_it_is_sent(start_engine, text, named):
    engine = start_engine()
    answer = engine.post("/sync_train_config", {"yaml_as_string": text})
    assert answer.status_code == 400
    assert named in answer.json()["detail"]
    assert engine.get("/get_engine_status")["engine_status"] == "ENGINE.OFFLINE"


def test_strangers_cannot_set_the_status_or_add_episodes_while_the_engine_runs(start_engine):
    engine = start_engine(job(workers=1, repeat=1))
    assert not engine.post("/update_engine_status", {"engine_status": "ENGINE.OFFLINE"}).json()["success"]
    assert not engine.post("/register_episode", {"episode_uuid": "extra"}).json()["success"]
    assert len(engine.post("/get_episode_buffer").json()["buffer"]) == 1
    assert all(one["openai_api_key"] == "" for one in engine.post("/get_episode_buffer").json()["buffer"])


def test_a_port_in_use_is_named_with_what_to_try(start_engine, tmp_path):
    port = start_engine().url.rsplit(":", 1)[1]
    second = subprocess.run(
        [sys.executable, "-m", "ajet.swarm_cli", "start", "--swarm-port", port],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert second.returncode == 3
    assert f"port {port}" in second.stderr
    assert "try: --swarm-port 0" in second.stderr
    assert "Traceback" not in second.stderr


def test_sigterm_in_a_step_keeps_its_completed_episodes_for_the_next_start(start_engine, tmp_path):
    config = job(batch=2, repeat=2, steps=5)
    engine = start_engine(config)
    for index in range(4):
        engine.run_episode(task=f"t{index // 2}", reward=float(index % 2))
    engine.wait_for(lambda status: status["global_step"] == 2)
    kept = [engine.run_episode(task="a", reward=1.0), engine.run_episode(task="a", reward=0.0)]
    engine.process.send_signal(signal.SIGTERM)
    assert engine.process.wait(15) == 0
    again = start_engine(config)
    assert again.get("/get_engine_status")["global_step"] == 2
    assert again.pool()["completed_tasks_details"] == {"a": kept}
    for index in range(2):
        again.run_episode(task="b", reward=float(index % 2))
    again.wait_for(lambda status: status["global_step"] == 3)
    assert [line["step"] for line in again.metrics()] == [1, 2]


def test_two_engines_do_not_share_an_experiment_folder(start_engine):
    start_engine(job(name="same"))
    second = start_engine()
    second.post("/sync_train_config", {"yaml_as_string": job(name="same")})
    answer = second.post("/start_engine").json()
    assert not answer["success"]
    assert "Another engine trains in" in answer["error"]


def test_a_finished_run_says_so(start_engine):
    engine = start_engine(job(batch=1, repeat=2, steps=1))
    engine.run_episode(reward=0.0)
    engine.run_episode(reward=1.0)
    status = engine.wait_for(lambda status: status["engine_status"] == "ENGINE.OFFLINE")
    assert status["engine_status_detail"] == "finished after step 1"
