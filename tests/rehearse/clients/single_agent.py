"""A math agent: one chat call per episode, tasks from a data set, batches drained periodically."""

import asyncio
import os
import re

from ajet.copilot.job import AgentJetJob
from ajet.default_config.ajet_config_schema import AjetTaskReader, HuggingfaceDatRepo
from ajet.schema.task import Task, WorkflowOutput
from ajet.task_reader import RouterTaskReader
from ajet.tuner_lib.as_oai_baseurl_apikey import OpenaiBaseUrlAndApiKey
from ajet.tuner_lib.experimental.swarm_client import SwarmClient
from ajet.utils.thread_executors import PeriodicDrainThreadPoolExecutor

GRPO_N = 4
BATCH_SIZE = 4
NUM_EPOCH = 100
AJET_SWARM_URL = os.getenv("AJET_SWARM_URL", "http://localhost:10086")
REMOTE_MODEL_PATH = os.getenv("REMOTE_MODEL_PATH", "/models/Qwen2.5-7B-Instruct")


async def solve(model: OpenaiBaseUrlAndApiKey, question: str) -> str:
    async with model.as_raw_openai_sdk_client() as client:
        messages = [{"role": "user", "content": f"{question} Write the number behind ####."}]
        answer = await client.chat.completions.create(model="agentjet", messages=messages)
        return answer.choices[0].message.content or ""


def run_agent(task: Task, model: OpenaiBaseUrlAndApiKey) -> WorkflowOutput:
    text = asyncio.run(solve(model, task.main_query))
    wanted = task.metadata["answer"].rpartition("#### ")[2]
    found = re.search(r"####\s*(-?\d+)", text)
    correct = bool(found) and found.group(1) == wanted
    return WorkflowOutput(reward=1.0 if correct else 0.1 * bool(found), is_success=correct, metadata={"text": text})


def main() -> None:
    reader = AjetTaskReader(huggingface_dat_repo=HuggingfaceDatRepo(dataset_path="openai/gsm8k", dataset_name="main"))
    dataset = RouterTaskReader("huggingface_dat_repo", reader)
    swarm = SwarmClient(AJET_SWARM_URL)
    job = AgentJetJob(
        experiment_name="single_agent",
        algorithm="grpo",
        n_gpu=4,
        model=REMOTE_MODEL_PATH,
        batch_size=BATCH_SIZE,
        num_repeat=GRPO_N,
        max_env_worker=16,
        logging="console",
    )
    swarm.auto_sync_train_config_and_start_engine(job)

    def rollout(task: Task):
        episode_uuid, model = swarm.begin_episode(discard_episode_timeout=60)
        try:
            output = run_agent(task, model)
            swarm.end_episode(task, episode_uuid, output)
            return output.reward
        except Exception:
            swarm.abort_episode(episode_uuid)
            raise

    executor = PeriodicDrainThreadPoolExecutor(workers=GRPO_N * BATCH_SIZE, max_parallel=16, auto_retry=True)
    for _ in range(NUM_EPOCH):
        for task in dataset.generate_training_tasks():
            for _ in range(GRPO_N):
                executor.submit_with_periodic_drain(rollout, task)


if __name__ == "__main__":
    main()
