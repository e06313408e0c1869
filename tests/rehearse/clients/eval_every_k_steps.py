"""Trains, and evaluates on tasks of its own after every second weight update."""

import os

from openai import OpenAI

from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.as_swarm_client import SwarmClient  # the module's name in earlier releases
from ajet.utils.thread_executors import BoundedThreadPoolExecutor

AJET_SWARM_URL = os.getenv("AJET_SWARM_URL", "http://localhost:10086")
NUM_REPEAT, BATCH_SIZE, EVAL_EVERY = 4, 2, 2


def main() -> None:
    swarm = SwarmClient(AJET_SWARM_URL)
    swarm.auto_sync_train_config_and_start_engine(
        AgentJetJob(
            experiment_name="with_eval",
            batch_size=BATCH_SIZE,
            num_repeat=NUM_REPEAT,
            max_env_worker=8,
            logging="console",
        )
    )

    def rollout(task: Task, episode_type: str) -> float:
        episode_uuid, model = swarm.begin_episode(discard_episode_timeout=60, episode_type=episode_type)
        with OpenAI(base_url=model.base_url, api_key=model.api_key) as client:
            answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": task.main_query}])
        text = answer.choices[0].message.content or ""
        reward = float(text == task.metadata["answer"])
        swarm.end_episode(task, episode_uuid, WorkflowOutput(reward=reward + 0.01 * len(text)))
        return reward

    evaluated = -1
    with BoundedThreadPoolExecutor(max_workers=8, max_queue_size=16) as executor:
        for number in range(100000):
            step = swarm.get_global_step() or 0
            if step % EVAL_EVERY == 0 and step != evaluated:
                evaluated = step
                held_out = [
                    Task(main_query=f"Add {n} and 1.", task_id=f"e{n}", metadata={"answer": str(n + 1)})
                    for n in range(4)
                ]
                scores = [executor.submit(rollout, task, "eval") for task in held_out]
                print("step", step, "score", sum(score.result() for score in scores) / len(scores))
            task = Task(main_query=f"Add {number} and 4.", task_id=str(number), metadata={"answer": str(number + 4)})
            futures = [executor.submit(rollout, task, "train") for _ in range(NUM_REPEAT)]
            for future in futures:
                future.result()


if __name__ == "__main__":
    main()
