"""What must hold whatever clients do, in whatever order: checked by hypothesis over the protocol.

Running Episodes never pass the cap, and each ended train episode counts exactly once.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from tests.swarm.conftest import job

BATCH, REPEAT, WORKERS = 3, 2, 5
CAP = 6
CLIENTS = st.sampled_from(["ann", "bob", "eve"])
TASKS = st.sampled_from(["t0", "t1", "t2", "t3"])


class Server:
    """An engine process that all examples share; each example is a run of its own in it."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        command = [sys.executable, "-m", "ajet.swarm_cli", "start", "--swarm-port", "0"]
        self.process = subprocess.Popen(
            command, cwd=self.folder.name, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout
        port = int(json.loads(self.process.stdout.readline())["url"].rsplit(":", 1)[1])
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        self.runs = 0

    def ask(self, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def new_run(self) -> None:
        self.ask("POST", "/stop_engine", {})
        self.runs += 1
        config = job(f"run{self.runs}", batch=BATCH, repeat=REPEAT, workers=WORKERS, steps=1000)
        assert self.ask("POST", "/sync_train_config", {"yaml_as_string": config})[0] == 200
        assert self.ask("POST", "/start_engine", {})[1]["success"]
        status = self.ask("GET", "/get_engine_status")[1]
        while status["engine_status"] != "ENGINE.ROLLING":
            query = f"/get_engine_status?revision={status['revision']}&wait_seconds=10"
            status = self.ask("GET", query)[1]

    def close(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()
        self.folder.cleanup()


server: Server | None = None


class Swarm(RuleBasedStateMachine):
    """Three clients do whatever the protocol lets them, rightly and wrongly."""

    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        assert server is not None
        self.server = server
        self.server.new_run()
        self.accepted: set[str] = set()
        self.holders: dict[str, str] = {}  # an eval episode that ended, or one given back, may get another
        self.last_step = 1

    @rule(target=claims, client=CLIENTS, kind=st.sampled_from(["train", "train", "train", "eval"]))
    def claim(self, client: str, kind: str) -> Any:
        body = {"client_uuid": client, "episode_type": kind, "discard_episode_timeout": 60}
        status, answer = self.server.ask("POST", "/claim_episode", body)
        assert status == 200
        if not answer["success"]:
            return multiple()
        assert answer["episode_uuid"] not in self.accepted, "an episode that ended is claimed again"
        self.holders[answer["episode_uuid"]] = client
        return {"client": client, "kind": kind, "uuid": answer["episode_uuid"], "key": answer["openai_api_key"]}

    @rule(target=claims, client=CLIENTS)
    def claim_all(self, client: str) -> Any:
        claims = []
        while isinstance(claim := self.claim(client, "train"), dict):
            claims.append(claim)
            self.never_above_the_cap()
        return multiple(*claims)

    @rule(claim=claims)
    def chat(self, claim: dict[str, str]) -> None:
        body = {"messages": [{"role": "user", "content": "Add 3 and 4."}]}
        status, _ = self.server.ask("POST", "/v1/chat/completions", body, claim["key"])
        assert status in (200, 404)

    @rule(claim=claims, client=CLIENTS, task=TASKS, reward=st.sampled_from([0.0, 1.0, None, "nan"]))
    def end(self, claim: dict[str, str], client: str, task: str, reward: Any) -> None:
        self.send_end(claim, client, task, float("nan") if reward == "nan" else reward)

    @rule(claim=claims, task=TASKS, reward=st.sampled_from([0.0, 1.0]))
    def end_rightly(self, claim: dict[str, str], task: str, reward: float) -> None:
        self.chat(claim)
        self.send_end(claim, claim["client"], task, reward)

    @rule(claim=claims, task=TASKS)
    def end_twice(self, claim: dict[str, str], task: str) -> None:
        self.chat(claim)
        first = self.send_end(claim, claim["client"], task, 1.0)
        second = self.send_end(claim, claim["client"], task, 1.0)
        if first == 200 and claim["kind"] == "train" and claim["uuid"] in self.accepted:
            assert second in (200, 400)

    def send_end(self, claim: dict[str, str], client: str, task: str, reward: Any) -> int:
        before = self.state()
        body = {
            "client_uuid": client,
            "episode_uuid": claim["uuid"],
            "workflow_output": {"reward": reward, "metadata": {"task_id": task}},
            "task_id": task,
        }
        status, answer = self.server.ask("POST", "/end_episode", body)
        after = self.state()
        if status == 200 and not answer["warning"] and after != before:
            assert claim["uuid"] not in self.accepted, "an episode counted twice"
            assert client == self.holders[claim["uuid"]], "a stranger ended an episode"
            assert reward in (0.0, 1.0), "a reward that is none was taken"
            self.accepted.add(claim["uuid"])
        return status

    @rule(claim=consumes(claims), client=CLIENTS)
    def abort(self, claim: dict[str, str], client: str) -> None:
        before = self.state()
        status, _ = self.server.ask(
            "POST",
            "/abort_episode",
            {"client_uuid": client, "episode_uuid": claim["uuid"], "workflow_output": {}, "task_id": ""},
        )
        assert status in (200, 404)
        assert self.state() == before, "an abort counts nothing"

    def pool(self) -> dict[str, Any]:
        return self.server.ask("GET", "/get_current_batch_rollout_pool_information")[1]

    def state(self) -> tuple[int | None, int]:
        """The step, and how many episodes it has collected: this pair only ever grows."""
        pool = self.pool()
        return pool["global_step"], pool["completed_episodes"]

    @invariant()
    def never_above_the_cap(self) -> None:
        pool = self.pool()
        assert pool["capacity"] is None or pool["capacity"]["cap"] == CAP
        assert len(pool["running_episode_details"] or {}) <= CAP

    @invariant()
    def the_step_never_goes_back(self) -> None:
        step = self.pool()["global_step"]
        assert step >= self.last_step
        self.last_step = step

    @invariant()
    def what_is_collected_was_accepted_once(self) -> None:
        details = self.pool()["completed_tasks_details"]
        uuids = [uuid for group in details.values() for uuid in group]
        assert len(uuids) == len(set(uuids))
        assert set(uuids) <= self.accepted


@pytest.fixture(autouse=True)
def _one_server():
    global server
    server = Server()
    yield
    server.close()
    server = None


def test_cap_and_exactly_once_hold_for_every_history():
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        Swarm,
        settings=settings(
            max_examples=25,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
