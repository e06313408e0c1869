"""``skills rehearse``: good clients are called good, and broken ones are told what is wrong."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from pathlib import Path

import pytest

from skillpack.rehearse.session import Plan
from skillpack.rehearse.session import rehearse as rehearse_plan
from skillpack.runs.engine import ask_engine
from tests.ports import free_port
from tests.rehearse.conftest import HERE, SKILLS

GOOD = sorted(path.name for path in (HERE / "clients").glob("*.py"))

DIAGNOSES = {
    "never_ends": "episodes_never_ended",
    "constant_reward": "constant_reward",
    "wrong_task_id": "wrong_task_id",
    "one_task_id": "wrong_task_id",
    "fewer_repeats": "fewer_repeats_than_num_repeat",
    "timeout_too_short": "timeout_too_short",
    "cap_below_batch": "cap_below_batch",
    "raises_every_10th": "client_raises",
    "blocks_forever": "client_blocks",
}
PLACES = {
    "raises_every_10th": "raises_every_10th.py:19 in rollout",
    "blocks_forever": "blocks_forever.py:15 in run_tool",
}


@pytest.mark.parametrize("client", GOOD)
def test_tutorial_shaped_clients_would_train(rehearse, client):
    source = (HERE / "clients" / client).read_text().replace("CRITIC_PORT", str(free_port()))
    done = rehearse(source, "--dummy-data")
    assert done.code == 0, done.output + done.errors
    report = done.report
    assert report["ok"]
    assert all(engine["steps"] >= 2 for engine in report["engines"])
    assert len(report["engines"]) == (2 if client == "multi_model.py" else 1)
    for engine in report["engines"]:
        assert engine["running"]["peak"] <= engine["running"]["cap"]
        assert engine["groups"]["full"] >= 2
        assert len(engine["curves"]["critic/rewards/mean"]) == engine["steps"]
        assert engine["projection"]["step_seconds_by_reply_seconds"]["20"] > 0
    if client == "two_clients_throttled.py":
        assert report["engines"][0]["clients"] == 2
    if client == "eval_every_k_steps.py":
        assert report["engines"][0]["episodes"]["ended_eval"] >= 4
    if client == "react_with_tools.py":
        assert report["engines"][0]["calls_per_episode"]["max"] > 1


@pytest.mark.parametrize("client", DIAGNOSES)
def test_broken_clients_are_diagnosed_by_name(rehearse, client):
    done = rehearse(f"broken/{client}.py")
    assert done.code == 1, done.output + done.errors
    first = done.report["problems"][0]
    assert (first["name"], first["severity"]) == (DIAGNOSES[client], "error")
    assert first["fix"]
    assert first["evidence"]
    if client in PLACES:
        assert first["where"].endswith(PLACES[client])
    errors = [name for name, severity in done.problems.items() if severity == "error"]
    assert errors == [DIAGNOSES[client]], "one cause, no consequences"


HEAD = """
import os
from openai import OpenAI
from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import SwarmClient
swarm = SwarmClient(os.environ["AJET_SWARM_URL"])
job = AgentJetJob(experiment_name="x", batch_size=2, num_repeat=2, max_env_worker=4, logging="console")
"""
START = HEAD + "swarm.auto_sync_train_config_and_start_engine(job)\n"


@pytest.mark.parametrize(
    ("source", "name", "says"),
    [
        ("print('hello')\n", "engine_not_started", ""),
        (START + "swarm.close()\n", "no_episode_claimed", ""),
        (START + "raise SystemExit('I give up')\n", "no_episode_claimed", ""),
        (HEAD + "import no_such_module\n", "client_failed", "no_such_module"),
        (
            START + "for n in range(40):\n    uuid, _ = swarm.begin_episode()\n"
            "    swarm.end_episode(Task(task_id=f't{n // 2}'), uuid, WorkflowOutput(reward=n % 2))\n",
            "no_chat_call",
            "without a chat call",
        ),
        (
            "from ajet.tuner_lib.experimental.swarm_client import SwarmClient\n"
            "SwarmClient('http://gpu-server.invalid:10086').auto_sync_train_config_and_start_engine(object())\n",
            "unreachable_server",
            "gpu-server.invalid",
        ),
        (
            HEAD + "job.config.ajet.rollout.num_repeat = 'many'\nswarm.auto_sync_train_config_and_start_engine(job)\n",
            "config_rejected",
            "num_repeat",
        ),
    ],
)
def test_clients_that_never_get_to_train_are_told_why(rehearse, source, name, says):
    done = rehearse(source, "--timeout", "30", "--patience", "20")
    assert done.code == 1, done.output + done.errors
    problems = done.report["problems"]
    assert name in [one["name"] for one in problems if one["severity"] == "error"]
    assert any(says in one["evidence"] for one in problems)


def test_a_client_that_would_train_somebody_elses_engine_is_refused(rehearse, foreign_engine):
    source = (
        "from ajet.copilot.job import AgentJetJob\n"
        "from ajet.tuner_lib.experimental.swarm_client import SwarmClient\n"
        f"swarm = SwarmClient('{foreign_engine}')\n"
        "swarm.auto_sync_train_config_and_start_engine(AgentJetJob(batch_size=2, num_repeat=2))\n"
    )
    done = rehearse(source)
    assert (done.code, foreign_engine in done.errors) == (2, True), done.output + done.errors
    assert ask_engine(foreign_engine).status == "ENGINE.OFFLINE"


def test_a_client_that_stops_too_early_is_told_how_many_episodes_were_missing(rehearse):
    source = START + (
        "uuid, model = swarm.begin_episode()\n"
        "client = OpenAI(base_url=model.base_url, api_key=model.api_key)\n"
        "client.chat.completions.create(model='m', messages=[{'role': 'user', 'content': 'x'}])\n"
        "swarm.end_episode(Task(task_id='t'), uuid, WorkflowOutput(reward=1))\n"
    )
    done = rehearse(source)
    assert done.problems["stopped_early"] == "error"
    assert "1 of 4 episodes" in json.dumps(done.report)


def test_a_client_is_run_with_its_arguments_and_finds_its_neighbours(rehearse, tmp_path):
    (tmp_path / "helper.py").write_text("WORD = 'helped'\n")
    source = "import sys\nfrom helper import WORD\nimport ajet\nprint(WORD, sys.argv[1:], __name__, ajet.__version__)\n"
    rehearse(source, "--", "--lr", "3")
    assert (tmp_path / "out" / "client.log").read_text().startswith("helped ['--lr', '3'] __main__ ")


def test_a_folder_named_ajet_beside_the_client_is_not_taken_for_the_reference(rehearse, tmp_path):
    (tmp_path / "ajet").mkdir()
    (tmp_path / "ajet" / "__init__.py").write_text("raise ImportError('the real AgentJet')\n")
    rehearse("import ajet\nprint('got', ajet.__version__)\n")
    assert (tmp_path / "out" / "client.log").read_text().startswith("got ")


def test_a_proxy_of_this_machine_is_not_asked_for_loopback(rehearse):
    done = rehearse("clients/agree_sync_weight.py", HTTP_PROXY="http://127.0.0.1:9", http_proxy="http://127.0.0.1:9")
    assert done.code == 0, done.output


def test_a_module_is_run_as_python_m_runs_it(rehearse, tmp_path):
    package = tmp_path / "tutorial"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text("from . import __name__ as name\nprint('in', name)\n")
    command = [SKILLS, "rehearse", "-m", "tutorial.train", "--timeout", "20"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert (tmp_path / "rehearsals" / "train" / "client.log").read_text() == "in tutorial\n"


def test_a_smaller_batch_is_rehearsed_and_the_real_one_projected(rehearse):
    source = (HERE / "clients" / "single_agent.py").read_text().replace("BATCH_SIZE = 4", "BATCH_SIZE = 64")
    done = rehearse(source, "--dummy-data", "--batch-size", "2", "--steps", "1")
    assert done.code == 0, done.output
    (engine,) = done.report["engines"]
    assert engine["config"]["ajet.data.train_batch_size"] == 64
    assert engine["projection"]["episodes_per_step"] == 256
    assert engine["episodes"]["ended"] < 256


def test_chaos_does_not_make_a_robust_client_fail(rehearse):
    done = rehearse("clients/single_agent.py", "--dummy-data", "--chaos", "--seed", "4", "--steps", "3")
    (engine,) = done.report["engines"]
    assert sum(engine["chaos"].values()) > 0
    assert engine["steps"] >= 3
    assert engine["running"]["peak"] <= engine["running"]["cap"]


def test_the_text_names_verdict_and_files_and_the_page_stands_alone(rehearse, tmp_path):
    done = rehearse("broken/constant_reward.py", json_=False)
    assert done.output.splitlines()[0].endswith("would not train")
    assert "constant_reward" in done.output
    assert len(done.output) < 10_000
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<svg" in page
    assert 'id="constant_reward"' in page
    assert "http://www" not in page
    assert "<script" not in page
    assert json.loads((tmp_path / "out" / "report.json").read_text())["ok"] is False


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["no_such_file.py"], 2, "no such file"),
        ([__file__, "--policy", "nosuch"], 2, "policy"),
        ([__file__, "--policy", "script missing.yaml"], 2, "missing.yaml"),
        ([__file__, "--latency", "fast"], 2, "latency"),
        ([__file__, "--python", "/no/such/python"], 3, "/no/such/python"),
    ],
)
def test_bad_usage_is_told(tmp_path, arguments, code, says):
    command = [SKILLS, "rehearse", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_of_the_client_outlives_the_rehearsal(rehearse, tmp_path):
    source = (
        "import subprocess, sys, pathlib, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "pathlib.Path('pids').write_text(f'{child.pid}')\n"
        "child.wait()\n"
    )
    rehearse(source, "--patience", "1")
    child = int((tmp_path / "pids").read_text())
    deadline = time.monotonic() + 10
    while runs(child):
        assert time.monotonic() < deadline


def test_the_clients_group_is_ended_while_its_number_is_its_own(tmp_path, monkeypatch):
    (tmp_path / "client.py").write_text("print('done')\n")
    told = []

    def killpg(group: int, number: int) -> None:
        told.append(Path(f"/proc/{group}/stat").exists())

    monkeypatch.setattr("skillpack.rehearse.session.os.killpg", killpg)
    outcome = asyncio.run(rehearse_plan(Plan(str(tmp_path / "client.py")), tmp_path / "client.log"))
    assert (outcome.stopped_because, outcome.exit_code) == ("exit", 0)
    assert told
    assert all(told)


def runs(pid: int) -> bool:
    """Tell whether a process is there; one that only waits to be reaped is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
