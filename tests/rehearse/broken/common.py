"""What all broken clients share: a job, tasks, and one chat call."""

import os

from openai import OpenAI

from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task
from ajet.tuner_lib.experimental.swarm_client import SwarmClient

NUM_REPEAT, BATCH_SIZE = 4, 3


def start(**options) -> SwarmClient:
    settings = {"batch_size": BATCH_SIZE, "num_repeat": NUM_REPEAT, "max_env_worker": 12, "logging": "console"}
    swarm = SwarmClient(os.environ["AJET_SWARM_URL"])
    swarm.auto_sync_train_config_and_start_engine(AgentJetJob(experiment_name="broken", **{**settings, **options}))
    return swarm


def task(number: int) -> Task:
    return Task(main_query=f"Add {number} and 4.", task_id=f"task {number}", metadata={"answer": str(number + 4)})


def ask(model, text: str) -> str:
    with OpenAI(base_url=model.base_url, api_key=model.api_key, max_retries=0) as client:
        answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
        return answer.choices[0].message.content or ""


def reward(text: str, of: Task) -> float:
    return float(text == of.metadata["answer"]) + 0.01 * len(text)
