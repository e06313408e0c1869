"""Running Episodes never pass the cap, whatever the clients do."""

from __future__ import annotations

import threading
from contextlib import suppress

import httpx
import pytest

from ajet.schema.task import Task, WorkflowOutput
from ajet.task_rollout.native_parallel_worker import count_slots
from ajet.tuner_lib.experimental.swarm_client import SwarmClient
from tests.engine.conftest import job


@pytest.mark.parametrize(
    ("max_env_worker", "num_repeat", "batch", "documented", "released"),
    [(128, 4, 32, 128, 128), (130, 8, 32, 136, 130), (512, 8, 16, 512, 128), (128, 5, 32, 130, 128), (3, 8, 1, 8, 3)],
)
def test_slots_by_both_countings(max_env_worker, num_repeat, batch, documented, released):
    assert count_slots(max_env_worker, num_repeat, batch) == documented
    assert count_slots(max_env_worker, num_repeat, batch, "released") == released


@pytest.mark.parametrize("arguments", [(0, 4, 4), (4, 0, 4), (4, 4, 0), (4, 4, 4, "guessed")])
def test_what_cannot_be_counted_is_refused(arguments):
    with pytest.raises(ValueError, match=r"must be at least 1|it is one of"):
        count_slots(*arguments)


def test_three_clients_of_20_threads_reach_a_cap_of_8_and_never_pass_it(start_engine):
    engine = start_engine(job(batch=4, repeat=4, workers=8, steps=100_000))
    stopping = threading.Event()

    def work(client: SwarmClient, number: int) -> None:
        # plain HTTP: to load this machine's certificates would take most of the test
        with httpx.Client(verify=False) as http:
            while not stopping.is_set():
                with suppress(RuntimeError, httpx.HTTPError):
                    uuid, model = client.begin_episode()
                    for turn in range(3):
                        ask = {"model": "m", "messages": [{"role": "user", "content": f"Add {number} and {turn}."}]}
                        headers = {"authorization": f"Bearer {model.api_key}"}
                        http.post(f"{model.base_url}/chat/completions", json=ask, headers=headers)
                    client.end_episode(Task(task_id=f"t{number % 5}"), uuid, WorkflowOutput(reward=float(number % 2)))

    clients = [SwarmClient(engine.url) for _ in range(3)]
    threads = [threading.Thread(target=work, args=(clients[number % 3], number), daemon=True) for number in range(60)]
    for thread in threads:
        thread.start()
    observed = []
    with httpx.Client(base_url=engine.url) as http:
        for _ in range(500):
            pool = http.get("/get_current_batch_rollout_pool_information").json()
            observed.append(len(pool["running_episode_details"] or {}))
    stopping.set()
    for client in clients:
        client.close()
    for thread in threads:
        thread.join(60)
    assert max(observed) == 8


def test_the_released_counting_can_be_chosen(start_engine):
    engine = start_engine(job(batch=2, repeat=3, workers=100), "--slots", "released")
    assert len(engine.post("/get_episode_buffer").json()["buffer"]) == 6
    capacity = engine.pool()["capacity"]
    assert (capacity["max_env_worker"], capacity["num_repeat"], capacity["train_batch_size"]) == (100, 3, 2)
    assert (capacity["cap"], capacity["slots"]) == (6, "released")
