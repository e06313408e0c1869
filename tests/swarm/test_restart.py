"""An engine that is killed in the middle of a step, and started again."""

from __future__ import annotations

import asyncio
import shutil
import signal
import threading
from pathlib import Path

import httpx
import psutil
import pytest

from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.engine import Engine, EngineOptions
from ajet.tuner_lib.experimental.engine_status import BOOTING, OFFLINE
from ajet.tuner_lib.experimental.episode_pool import EpisodePool, Refused
from ajet.tuner_lib.experimental.swarm_client import SwarmClient
from tests.swarm.conftest import job


def kill(engine) -> None:
    engine.process.send_signal(signal.SIGKILL)
    engine.process.wait()


def port_of(engine) -> str:
    return engine.url.rsplit(":", 1)[1]


@pytest.mark.parametrize("way", ["resume", "conf"])
def test_kill_9_loses_no_completed_episode_and_no_step(start_engine, tmp_path, way):
    config = job("killed", batch=2, repeat=2, steps=9)
    engine = start_engine(config)
    for number in range(4):
        engine.run_episode(reward=number % 2, task=f"a{number // 2}")
    engine.wait_for(lambda status: status["global_step"] == 2)
    kept = [engine.run_episode(reward=1.0, task="b0"), engine.run_episode(reward=0.0, task="b0")]
    kill(engine)
    folder = tmp_path / "saved_experiments" / "killed"
    again = start_engine(None, "--resume", str(folder)) if way == "resume" else start_engine(config)
    status = again.wait_for(lambda status: status["engine_status"] == "ENGINE.ROLLING")
    assert status["global_step"] == 2
    assert again.pool()["completed_tasks_details"] == {"b0": kept}
    assert again.end(kept[0]).json() == {"success": True, "warning": ""}, "who ends it again is told yes"
    for number in range(2):
        again.run_episode(reward=number, task="b1")
    again.wait_for(lambda status: status["global_step"] == 3)
    assert [one["step"] for one in again.metrics()] == [1, 2]
    assert again.metrics()[1]["metrics"]["critic/rewards/mean"] == 0.5


def test_a_line_that_a_kill_cut_off_spoils_no_other(start_engine, tmp_path):
    folder = tmp_path / "saved_experiments" / "torn"
    engine = start_engine(job("torn", batch=2, repeat=2))
    kept = [engine.run_episode(task="a")]
    kill(engine)
    with (folder / "journal.jsonl").open("a") as journal:
        journal.write('{"step": 1, "episode": {"episode_uu')
    engine = start_engine(None, "--resume", str(folder))
    engine.wait_for(lambda status: status["engine_status"] == "ENGINE.ROLLING")
    kept.append(engine.run_episode(task="a"))
    kill(engine)
    engine = start_engine(None, "--resume", str(folder))
    engine.wait_for(lambda status: status["engine_status"] == "ENGINE.ROLLING")
    assert engine.pool()["completed_tasks_details"] == {"a": kept}


def run_product(http: httpx.Client, **options: object) -> str:
    """Run an episode that rewards the product, which an untaught policy does not choose first; return its answer."""
    ask = {"client_uuid": "c1", "episode_type": "train", "discard_episode_timeout": 60, "wait_seconds": 10}
    claim = http.post("/claim_episode", json=ask).json()
    answer = http.post(
        "/v1/chat/completions",
        json={"model": "x", "messages": [{"role": "user", "content": "Use 3 and 4."}], **options},
        headers={"authorization": f"Bearer {claim['openai_api_key']}"},
    ).json()["choices"][0]["message"]["content"]
    output = {"reward": float(answer == "12"), "metadata": {"task_id": "t1"}}
    ended = {"client_uuid": "c1", "episode_uuid": claim["episode_uuid"], "task_id": "t1", "workflow_output": output}
    assert http.post("/end_episode", json=ended).json()["success"]
    return answer


def test_the_policy_that_answers_is_the_one_that_learns(start_engine, tmp_path):
    engine = start_engine(job("learns", batch=1, repeat=16, workers=16, steps=99))
    with httpx.Client(base_url=engine.url, timeout=30) as http:
        assert run_product(http, temperature=0) != "12"
        for _ in range(16 * 8):
            run_product(http)
        assert run_product(http, temperature=0) == "12"
    kill(engine)
    resumed = start_engine(None, "--resume", str(tmp_path / "saved_experiments" / "learns"))
    resumed.wait_for(lambda status: status["engine_status"] == "ENGINE.ROLLING")
    with httpx.Client(base_url=resumed.url, timeout=30) as http:
        assert run_product(http, temperature=0) == "12"


def test_a_run_that_cannot_begin_again_is_told_in_the_status(tmp_path):
    async def restart_without_folder() -> Engine:
        engine = Engine(EpisodePool(), EngineOptions(base_dir=tmp_path))
        engine.sync_config(job("lost"))
        engine.start()
        shutil.rmtree(tmp_path / "saved_experiments")
        (tmp_path / "saved_experiments").write_text("in the way")
        await engine.restart()
        return engine

    engine = asyncio.run(restart_without_folder())
    assert engine.pool.status.current == OFFLINE
    assert "saved_experiments" in str(engine.pool.status.detail)


def test_a_start_that_fails_leaves_the_folder_free(tmp_path):
    script = tmp_path / "replies.yaml"
    script.write_text("default: yes\n")
    backup = tmp_path / "saved_experiments" / "held" / "yaml_backup.yaml"
    backup.mkdir(parents=True)

    async def start_thrice() -> None:
        engine = Engine(EpisodePool(), EngineOptions(policy=f"script {script}", base_dir=tmp_path))
        engine.sync_config(job("held"))
        with pytest.raises(OSError, match="yaml_backup") as _unwritable:  # its frames keep what they have not closed
            engine.start()
        backup.rmdir()
        script.unlink()
        with pytest.raises(Refused, match=r"replies\.yaml") as _without_policy:
            engine.start()
        assert engine.pool.status.current == OFFLINE
        script.write_text("default: yes\n")
        engine.start()
        await engine.restart()
        assert engine.pool.status.current == BOOTING
        await engine.stop()

    asyncio.run(start_thrice())


def test_a_run_whose_metrics_cannot_be_written_closes_its_journal(tmp_path):
    (tmp_path / "saved_experiments" / "closed" / "metrics.jsonl").mkdir(parents=True)

    async def run_to_its_failure() -> Engine:
        engine = Engine(EpisodePool(), EngineOptions(base_dir=tmp_path))
        engine.sync_config(job("closed"))
        engine.start()
        await engine.wait()
        return engine

    engine = asyncio.run(run_to_its_failure())
    assert isinstance(engine.failure, IsADirectoryError)
    opened = [Path(one.path).name for one in psutil.Process().open_files()]
    assert not {"journal.jsonl", "engine.lock"} & set(opened)


def test_an_end_that_nobody_answered_may_be_sent_again(start_engine, monkeypatch):
    engine = start_engine(job("unanswered"))

    def no_answer(*_: object, **__: object) -> None:
        raise RuntimeError("the server does not answer")

    with SwarmClient(engine.url, verbose=False) as client:
        episode_uuid, model = client.begin_episode()
        engine.chat(model.api_key)
        with monkeypatch.context() as patch:
            patch.setattr("ajet.tuner_lib.experimental.swarm_client.deliver", no_answer)
            with pytest.raises(RuntimeError, match="does not answer"):
                client.end_episode(Task(task_id="t"), episode_uuid, WorkflowOutput(reward=1.0))
        client.end_episode(Task(task_id="t"), episode_uuid, WorkflowOutput(reward=1.0))
        assert engine.pool()["completed_tasks_details"] == {"t": [episode_uuid]}


def test_clients_reconnect_by_themselves(start_engine, tmp_path):
    engine = start_engine(job("reconnect", batch=4, repeat=2, workers=8, steps=9))
    stop, ended = threading.Event(), []
    with SwarmClient(engine.url, verbose=False) as client:

        def loop(number: int) -> None:
            count = 0
            while not stop.is_set():
                episode_uuid, model = client.begin_episode()
                try:
                    ask = {"model": "m", "messages": [{"role": "user", "content": "Add 3 and 4."}]}
                    headers = {"authorization": f"Bearer {model.api_key}"}
                    httpx.post(f"{model.base_url}/chat/completions", json=ask, headers=headers).raise_for_status()
                except httpx.HTTPError:
                    client.abort_episode(episode_uuid)
                    continue
                count += 1
                task = Task(task_id=f"{number}-{count // 2}")
                client.end_episode(task, episode_uuid, WorkflowOutput(reward=count % 2))
                ended.append(episode_uuid)

        threads = [threading.Thread(target=loop, args=[number], daemon=True) for number in range(6)]
        for thread in threads:
            thread.start()
        engine.wait_for(lambda status: (status["global_step"] or 0) >= 3)
        kill(engine)
        before = len(ended)
        folder = tmp_path / "saved_experiments" / "reconnect"
        again = start_engine(None, "--resume", str(folder), "--swarm-port", port_of(engine))
        first = again.wait_for(lambda status: status["engine_status"] == "ENGINE.ROLLING")
        assert first["global_step"] >= 3
        again.wait_for(lambda status: status["global_step"] >= first["global_step"] + 2)
        stop.set()
        for thread in threads:
            thread.join(20)
        assert not any(thread.is_alive() for thread in threads)
        assert len(ended) > before
    steps = [one["step"] for one in again.metrics()]
    assert steps == sorted(set(steps)), "no step twice, none back"


def test_an_end_of_a_claim_that_died_with_the_engine_is_a_warning(start_engine, tmp_path, caplog):
    engine = start_engine(job("lost"))
    with SwarmClient(engine.url, verbose=False) as client:
        episode_uuid, _ = client.begin_episode()
        kill(engine)
        folder = tmp_path / "saved_experiments" / "lost"
        start_engine(None, "--resume", str(folder), "--swarm-port", port_of(engine))
        client.end_episode(Task(task_id="t"), episode_uuid, WorkflowOutput(reward=1.0))
        assert "restarted since" in caplog.text
        assert client.begin_episode()[0] != episode_uuid


@pytest.mark.parametrize(
    ("content", "arguments", "says"),
    [
        (None, (), "yaml_backup.yaml"),
        ("[]", (), "no configuration"),
        ("ajet: {}", ("--conf", "x.yaml"), "leave --conf"),
    ],
)
def test_a_folder_that_cannot_be_resumed_is_told(tmp_path, content, arguments, says):
    import subprocess
    import sys

    if content is not None:
        (tmp_path / "yaml_backup.yaml").write_text(content)
    command = [sys.executable, "-m", "ajet.swarm_cli", "start", "--resume", str(tmp_path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
