"""Two models train side by side on two servers: a writer, and a critic that is asked about the writer's answer."""

import os
from concurrent.futures import ThreadPoolExecutor

from openai import OpenAI

from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import SwarmClient

WRITER_URL = os.getenv("AJET_SWARM_URL", "http://localhost:10086")
CRITIC_URL = "http://localhost:CRITIC_PORT"
NUM_REPEAT = 2


def ask(model, text: str) -> str:
    with OpenAI(base_url=model.base_url, api_key=model.api_key) as client:
        answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
        return answer.choices[0].message.content or ""


def job(name: str) -> AgentJetJob:
    return AgentJetJob(
        experiment_name=name, batch_size=2, num_repeat=NUM_REPEAT, max_env_worker=8, logging="console", model="/m/qwen"
    )


def main() -> None:
    writer, critic = SwarmClient(WRITER_URL), SwarmClient(CRITIC_URL)
    SwarmClient.async_and_start_multi_engine([(writer, job("writer")), (critic, job("critic"))])

    def episode(task: Task) -> None:
        writer_uuid, writer_model = writer.begin_episode()
        critic_uuid, critic_model = critic.begin_episode()
        draft = ask(writer_model, task.main_query)
        right = draft == task.metadata["answer"]
        opinion = ask(critic_model, f"{task.main_query} Somebody says {draft}. Right? Answer yes or no.")
        writer.end_episode(task, writer_uuid, WorkflowOutput(reward=float(right) + 0.01 * len(draft)))
        agrees = opinion == ("yes" if right else "no")
        critic.end_episode(task, critic_uuid, WorkflowOutput(reward=float(agrees) + 0.01 * len(opinion)))

    with ThreadPoolExecutor(4) as pool:
        for number in range(1000):
            task = Task(main_query=f"Add {number} and 4.", task_id=f"t{number}", metadata={"answer": str(number + 4)})
            for future in [pool.submit(episode, task) for _ in range(NUM_REPEAT)]:
                future.result()


if __name__ == "__main__":
    main()
