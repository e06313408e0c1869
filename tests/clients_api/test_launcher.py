"""Classic runs: ``python -m ajet.launcher --conf x.yaml --backbone debug``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ajet.utils.files import lock_file

WORKFLOWS = """
import asyncio
from ajet import AjetTuner, Workflow, WorkflowOutput, WorkflowTask
from ajet.task_judge.base_judge import BaseJudge


async def ask(tuner, task, target="default_target_tag"):
    client = tuner.as_raw_openai_sdk_client(target_tag=target)
    answer = await client.chat.completions.create(
        model="x", messages=[{"role": "user", "content": task.main_query}]
    )
    return answer.choices[0].message.content


class Sum(Workflow):
    async def execute(self, workflow_task: WorkflowTask, tuner: AjetTuner) -> WorkflowOutput:
        task = workflow_task.task
        right = await ask(tuner, task) == task.metadata["answer"]
        return WorkflowOutput(reward=float(right), is_success=right)


class ByUrl(Workflow):
    async def execute(self, workflow_task, tuner):
        model = tuner.as_oai_baseurl_apikey()
        assert model.api_key.startswith("sk-ajet-") and model.base_url.endswith("/v1")
        return WorkflowOutput(reward=float(len(await ask(tuner, workflow_task.task))))


class TwoAgents(Workflow):
    trainable_targets: list[str] | None = ["good"]

    async def execute(self, workflow_task, tuner):
        await ask(tuner, workflow_task.task, "bad")
        answer = await ask(tuner, workflow_task.task, "good")
        return WorkflowOutput(reward=float(answer == workflow_task.task.metadata["answer"]))


class Judged(Workflow):
    async def execute(self, workflow_task, tuner):
        return WorkflowOutput(metadata={"answer": await ask(tuner, workflow_task.task)})


class LengthJudge(BaseJudge):
    def compute_reward(self, workflow_task, workflow_output):
        return float(len(workflow_output.metadata["answer"]) < 4), True


class Broken(Workflow):
    async def execute(self, workflow_task, tuner):
        raise KeyError("the tool is gone")


class Silent(Workflow):
    async def execute(self, workflow_task, tuner):
        return WorkflowOutput(reward=1.0)


class Slow(Workflow):
    async def execute(self, workflow_task, tuner):
        await ask(tuner, workflow_task.task)
        print("in an episode", flush=True)
        await asyncio.sleep(600)
"""


FEW_VALIDATIONS = {"test_freq": -1, "val_max_num_task_each_validation": 2}


def configuration(folder: Path, workflow: str = "Sum", **common: Any) -> Path:
    """Write the workflows and a configuration that trains one of them."""
    (folder / "flows.py").write_text(WORKFLOWS)
    ajet: dict[str, Any] = {
        "project_name": "tests",
        "data": {"train_batch_size": 4},
        "rollout": {"user_workflow": f"flows->{workflow}", "num_repeat": 4, "max_env_worker": 8},
        "task_reader": {"type": "random_dummy"},
        "trainer_common": {"logger": "console", "total_training_steps": 3, **FEW_VALIDATIONS, **common},
    }
    for key in ("enable_interchange_server", "enable_swarm_mode", "task_judge", "data"):
        if key in common:
            ajet[key] = ajet["trainer_common"].pop(key)
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump({"ajet": ajet}))
    return path


def launch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ajet.launcher", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)


def train(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return launch(path.parent, "--conf", "job.yaml", "--backbone", "debug", *arguments)


def metrics(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("saved_experiments/job_*/metrics.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_classic_run_trains_validates_and_logs(tmp_path):
    path = configuration(
        tmp_path,
        total_training_steps=10,
        test_freq=5,
        val_before_train=True,
        val_max_num_task_each_validation=6,
        val_pass_n=2,
        val_print_to_markdown_file_path="val.txt",
        train_print_to_markdown_file_path="out/train.txt",
    )
    done = train(path)
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert json.loads(first)["engine"] == "reference"
    assert [line.split(" - ")[0] for line in lines] == [f"step:{step}" for step in range(11)]
    logged = metrics(tmp_path)
    assert [one["step"] for one in logged] == list(range(11))
    validated = [one["step"] for one in logged if "task_pass_rate@1" in one["metrics"]]
    assert validated == [0, 5, 10]
    before, after = (logged[step]["metrics"] for step in (0, 10))
    assert before["total_tasks"] == after["total_tasks"] == 6
    assert before["pass_n"] == 2
    assert after["mean_reward"] > before["mean_reward"], "it learns to add"
    assert all(one["metrics"]["critic/llm_call_cnt"] == 1 for one in logged[1:])
    assert len((tmp_path / "val.txt").read_text().splitlines()) == 3
    assert "main_val_dataset" in (tmp_path / "val.txt").read_text()
    assert len((tmp_path / "out" / "train.txt").read_text().splitlines()) == 11
    (experiment,) = tmp_path.glob("saved_experiments/job_*")
    assert yaml.safe_load((experiment / "yaml_backup.yaml").read_text())["ajet"]["backbone"] == "debug"
    assert (tmp_path / f"saved_checkpoints/tests/{experiment.name}/latest_checkpointed_iteration.txt").exists()


@pytest.mark.parametrize(
    ("workflow", "calls", "more"),
    [
        ("ByUrl", 1, {"enable_interchange_server": True}),
        ("TwoAgents", 1, {}),
        ("Judged", 1, {"task_judge": {"judge_protocol": "flows->LengthJudge"}}),
    ],
)
def test_workflows_of_every_shape_train(tmp_path, workflow, calls, more):
    done = train(configuration(tmp_path, workflow, total_training_steps=1, **more))
    assert done.returncode == 0, done.stderr
    (step,) = metrics(tmp_path)
    assert step["metrics"]["critic/llm_call_cnt"] == calls, "only calls of trained targets count"


def test_validation_only_trains_nothing(tmp_path):
    done = train(configuration(tmp_path, val_only=True))
    assert done.returncode == 0, done.stderr
    assert [one["step"] for one in metrics(tmp_path)] == [0]


def test_the_same_seed_takes_the_same_tasks_in_the_same_order(tmp_path):
    rewards = []
    for name in "ab":
        folder = tmp_path / name
        folder.mkdir()
        configuration(folder, "Silent", total_training_steps=1)
        config = yaml.safe_load((folder / "job.yaml").read_text())
        config["ajet"]["rollout"] |= {"user_workflow": "flows->Sum", "max_env_worker": 1}
        (folder / "job.yaml").write_text(yaml.safe_dump(config))
        assert train(folder / "job.yaml", "--seed", "3").returncode == 0
        rewards.append([one["metrics"]["critic/rewards/mean"] for one in metrics(folder)])
    assert rewards[0] == rewards[1]


@pytest.mark.parametrize(
    ("workflow", "more", "says"),
    [
        ("Broken", {}, "the tool is gone"),
        ("Silent", {}, "none made a chat call"),
        ("ByUrl", {}, "enable_interchange_server"),
        ("Judged", {}, "judge"),
        ("Nobody", {}, "Nobody"),
        ("Sum", {"enable_swarm_mode": True}, "swarm configuration"),
        ("Sum", {"data": {"train_batch_size": 1001}}, "only 1000 training tasks"),
        ("Sum", {"data": {"train_batch_size": 0}}, "train_batch_size"),
    ],
)
def test_what_keeps_a_run_from_training_is_said_and_exits_1(tmp_path, workflow, more, says):
    done = train(configuration(tmp_path, workflow, **more))
    assert done.returncode == 1, done.stderr
    assert says in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "--conf is missing"),
        (("--no-such-option",), 2, "No such option"),
        (("--conf", "job.yaml"), 1, "--backbone debug"),
        (("--conf", "missing.yaml", "--backbone", "debug"), 1, "missing.yaml"),
        (("--conf", "job.txt", "--backbone", "debug"), 1, ".yaml"),
        (("--conf", "job.yaml", "--backbone", "debug", "--policy", "script"), 2, "'script' is not one of"),
    ],
)
def test_exit_codes_of_the_command_line(tmp_path, arguments, code, says):
    configuration(tmp_path)
    done = launch(tmp_path, *arguments)
    assert (done.returncode, says in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr


def test_a_run_whose_folder_another_engine_holds_is_refused(tmp_path):
    path = configuration(tmp_path)
    path.write_text(path.read_text() + "  experiment_name: held\n")
    with lock_file(tmp_path / "saved_experiments" / "held" / "engine.lock"):
        done = train(path)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert "Another engine trains in" in done.stderr


def test_switches_for_services_are_accepted(tmp_path):
    path = configuration(tmp_path, total_training_steps=1)
    assert train(path, "--with-ray", "--skip-check-avail-gpu").returncode == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_whose_workflow_sits_in_a_call(tmp_path, number, code):
    path = configuration(tmp_path, "Slow")
    command = [sys.executable, "-m", "ajet.launcher", "--conf", path.name, "--backbone", "debug"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
    )
    assert process.stdout
    while "in an episode" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(number)
    assert process.wait(30) == code
    process.stdout.close()
