"""Reads its answers as they stream, with asyncio instead of threads."""

import asyncio
import os

from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import SwarmClient

AJET_SWARM_URL = os.getenv("AJET_SWARM_URL", "http://localhost:10086")
NUM_REPEAT, BATCH_SIZE = 4, 3


async def main() -> None:
    swarm = SwarmClient(AJET_SWARM_URL)
    job = AgentJetJob(
        experiment_name="streaming", batch_size=BATCH_SIZE, num_repeat=NUM_REPEAT, max_env_worker=12, logging="console"
    )
    await asyncio.to_thread(swarm.auto_sync_train_config_and_start_engine, job)

    async def rollout(task: Task) -> None:
        episode_uuid, model = await asyncio.to_thread(swarm.begin_episode, 60)
        text = ""
        async with model.as_raw_openai_sdk_client() as client:
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": task.main_query}], stream=True
            )
            async for chunk in stream:
                text += chunk.choices[0].delta.content or ""
        output = WorkflowOutput(reward=float(text == task.metadata["answer"]) + 0.01 * len(text))
        await asyncio.to_thread(swarm.end_episode, task, episode_uuid, output)

    for number in range(100000):
        task = Task(main_query=f"Add {number} and 4.", task_id=str(number), metadata={"answer": str(number + 4)})
        await asyncio.gather(*(rollout(task) for _ in range(NUM_REPEAT)))


if __name__ == "__main__":
    asyncio.run(main())
