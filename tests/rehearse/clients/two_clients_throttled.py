"""Two swarm clients feed one engine; a throttle policy keeps each from running ahead of the other."""

import os
import threading

from openai import OpenAI

from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import SwarmClient, SwarmThrottlePolicy

AJET_SWARM_URL = os.getenv("AJET_SWARM_URL", "http://localhost:10086")
BATCH_SIZE, NUM_REPEAT = 4, 2


def run(name: str, client: SwarmClient, first: int) -> None:
    for number in range(first, 100000, 2):
        task = Task(main_query=f"Add {number} and 4.", task_id=f"{name}-{number}")
        for _ in range(NUM_REPEAT):
            policy = SwarmThrottlePolicy(
                ratio=1.5, expected_batch_size=BATCH_SIZE, expected_num_repeat=NUM_REPEAT, current_task_id=task.task_id
            )
            episode_uuid, model = client.begin_episode(discard_episode_timeout=120, throttle_policy=policy)
            with OpenAI(base_url=model.base_url, api_key=model.api_key) as openai:
                answer = openai.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": task.main_query}]
                )
            text = answer.choices[0].message.content or ""
            reward = float(text == str(number + 4)) + 0.01 * len(text)
            client.end_episode(task, episode_uuid, WorkflowOutput(reward=reward))


def main() -> None:
    job = AgentJetJob(
        experiment_name="two_clients",
        batch_size=BATCH_SIZE,
        num_repeat=NUM_REPEAT,
        max_env_worker=16,
        logging="console",
    )
    starter = SwarmClient(AJET_SWARM_URL)
    starter.auto_sync_train_config_and_start_engine(job)
    joiner = SwarmClient(AJET_SWARM_URL, agentjet_job=job)
    threads = [
        threading.Thread(target=run, args=("a", starter, 0), daemon=True),
        threading.Thread(target=run, args=("b", joiner, 1), daemon=True),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
