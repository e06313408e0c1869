"""An agent written for the Anthropic SDK."""

import os

from anthropic import Anthropic

from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import SwarmClient, auto_train_with_dataset

AJET_SWARM_URL = os.getenv("AJET_SWARM_URL", "http://localhost:10086")
NUM_REPEAT, BATCH_SIZE = 4, 3


class Tasks:
    def generate_training_tasks(self):
        for number in range(100000):
            yield Task(main_query=f"Add {number} and 4.", task_id=str(number), metadata={"answer": str(number + 4)})


def execute_agent(task: Task, model) -> WorkflowOutput:
    with Anthropic(base_url=model.base_url, api_key=model.api_key) as client:
        message = client.messages.create(
            model="claude", max_tokens=200, messages=[{"role": "user", "content": task.main_query}]
        )
    text = "".join(block.text for block in message.content if block.type == "text")
    return WorkflowOutput(reward=float(text == task.metadata["answer"]) + 0.01 * len(text))


if __name__ == "__main__":
    swarm = SwarmClient(AJET_SWARM_URL)
    swarm.auto_sync_train_config_and_start_engine(
        AgentJetJob(
            experiment_name="claude", batch_size=BATCH_SIZE, num_repeat=NUM_REPEAT, max_env_worker=12, logging="console"
        )
    )
    auto_train_with_dataset(Tasks(), swarm, execute_agent, local_grpo_n=NUM_REPEAT, remote_batch_size=BATCH_SIZE)
