"""The client itself says when a batch is enough."""

import os

from openai import OpenAI

from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import SwarmClient, run_episodes_until_all_complete

AJET_SWARM_URL = os.getenv("AJET_SWARM_URL", "http://localhost:10086")
NUM_REPEAT, TASKS_PER_STEP = 3, 3


def main() -> None:
    job = AgentJetJob(
        experiment_name="agree",
        batch_size=TASKS_PER_STEP,
        num_repeat=NUM_REPEAT,
        max_env_worker=12,
        swarm_mode_sample_collection_method="rollout_until_any_client_agree_sync_weight",
        logging="console",
    )
    swarm = SwarmClient(AJET_SWARM_URL)
    swarm.auto_sync_train_config_and_start_engine(job)

    def rollout(task: Task) -> float:
        episode_uuid, model = swarm.begin_episode()
        with OpenAI(base_url=model.base_url, api_key=model.api_key) as client:
            answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": task.main_query}])
        text = answer.choices[0].message.content or ""
        output = WorkflowOutput(reward=float(text == task.metadata["answer"]) + 0.01 * len(text))
        swarm.end_episode(task, episode_uuid, output)
        return output.reward

    for step in range(1000):
        tasks = [
            Task(main_query=f"Add {step} and {n}.", task_id=f"s{step}-{n}", metadata={"answer": str(step + n)})
            for n in range(TASKS_PER_STEP)
        ]
        run_episodes_until_all_complete([task for task in tasks for _ in range(NUM_REPEAT)], rollout)
        swarm.agree_sync_weight()


if __name__ == "__main__":
    main()
