"""Our client against a server with a released server's manners."""

from __future__ import annotations

import threading

import pytest
from openai import OpenAI

from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import (
    SwarmClient,
    SwarmServerError,
    SwarmServerOfflineError,
    SwarmThrottlePolicy,
    run_episodes_until_all_complete,
)
from tests.swarm.released_server import ReleasedServer


@pytest.fixture
def server():
    server = ReleasedServer().start()
    yield server
    server.stop()


@pytest.fixture
def client(server):
    with SwarmClient(server.url, verbose=False) as client:
        yield client


def start(client: SwarmClient) -> None:
    client.auto_sync_train_config_and_start_engine(AgentJetJob(experiment_name="x", batch_size=2, num_repeat=2))


def rollout(client: SwarmClient, task: Task) -> None:
    episode_uuid, model = client.begin_episode(discard_episode_timeout=60)
    assert model.base_url == f"{client.server_url}/v1", "the server's own idea of its address does not matter"
    with OpenAI(base_url=model.base_url, api_key=model.api_key) as openai:
        answer = openai.chat.completions.create(model="m", messages=[{"role": "user", "content": task.main_query}])
    client.end_episode(task, episode_uuid, WorkflowOutput(reward=float(answer.choices[0].message.content == "7")))


def test_it_trains_for_several_steps(server, client):
    start(client)
    assert server.config
    assert "ajet:" in server.config
    for step in range(3):
        tasks = [Task(main_query="3+4?", task_id=f"{step}-{n // 2}") for n in range(4)]
        run_episodes_until_all_complete(tasks, lambda task: rollout(client, task), auto_retry=False)
    assert len(server.ended) == len(set(server.ended)) == 12
    assert server.statuses.count("ENGINE.WEIGHT_SYNCING") == 3
    assert client._watch.wait_until(lambda status, answer: answer.get("global_step") == 4, 10)
    assert client.get_global_step() == 4


def test_it_polls_without_hammering_the_server(server, client):
    start(client)
    taken = [client.begin_episode() for _ in range(4)]
    before = len(server.requests)
    waiting = threading.Thread(target=client.begin_episode, daemon=True)
    waiting.start()
    waiting.join(2.0)
    assert waiting.is_alive(), "there is no fifth episode"
    assert len(server.requests) - before < 20, "status three times and a claim twice a second"
    client.abort_episode(taken[0][0])
    waiting.join(5.0)
    assert not waiting.is_alive(), "the episode that was given back is claimed"


def test_an_end_whose_answer_was_lost_is_counted_once(server, client):
    start(client)
    server.lose_next_end_answer = True
    rollout(client, Task(main_query="3+4?", task_id="t"))
    assert len(server.ended) == 1


def test_an_end_that_comes_after_its_step_is_a_warning(server, client, caplog):
    start(client)
    episode_uuid, _ = client.begin_episode()
    server.sync_seconds = 60
    server.set("ENGINE.WEIGHT_SYNCING")
    client.end_episode(Task(task_id="t"), episode_uuid, WorkflowOutput(reward=1.0))
    assert "too late" in caplog.text


def test_an_end_that_is_refused_says_what_the_server_said(server, client):
    start(client)
    episode_uuid, _ = client.begin_episode()
    server.episodes.clear()
    with pytest.raises(SwarmServerError, match=r"SwarmClient error 400: Episode .* not found"):
        client.end_episode(Task(task_id="t"), episode_uuid, WorkflowOutput(reward=1.0))


def test_an_engine_that_goes_offline_ends_the_wait(server, client):
    start(client)
    for _ in range(4):
        client.begin_episode()
    failures: list[BaseException] = []

    def wait() -> None:
        try:
            client.begin_episode()
        except SwarmServerOfflineError as error:
            failures.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    server.set("ENGINE.OFFLINE")
    thread.join(10)
    assert len(failures) == 1


def test_a_throttle_policy_works_with_what_a_released_server_tells(server, client):
    start(client)
    policy = SwarmThrottlePolicy(expected_batch_size=2, expected_num_repeat=2, current_task_id="a")
    assert client.begin_episode(throttle_policy=policy)[0]


def test_what_only_our_server_has_is_not_asked_for(server, client):
    start(client)
    rollout(client, Task(main_query="3+4?", task_id="t"))
    assert client.get_rollout_stat().capacity is None
    assert client.server_experiment_dir() == "saved_experiments"
    assert client.get_episode_buffer() == []
    assert client.can_continue_episode("nobody") is False
    client.print_rollout_stat()
    client.stop_engine()
    assert client.get_engine_status()[0] == "ENGINE.OFFLINE"


@pytest.mark.parametrize("later", [{}, {"revision": 3}])
def test_a_server_that_takes_anothers_place_is_believed_at_once(server, client, monkeypatch, later):
    handle, extra = server.handle, {"revision": 7}

    def with_extra(path, body, authorization):
        code, answer = handle(path, body, authorization)
        return code, {**answer, **extra} if path == "/get_engine_status" else answer

    monkeypatch.setattr(server, "handle", with_extra)
    assert client._watch.wait_until(lambda _, answer: answer.get("revision") == 7, 10)
    extra.clear()
    extra.update(later)
    server.set("ENGINE.WEIGHT_SYNCING")
    assert client._watch.wait_until(lambda status, _: status == "ENGINE.WEIGHT_SYNCING", 10)
    assert client.get_engine_status()[1].get("revision") == later.get("revision")
