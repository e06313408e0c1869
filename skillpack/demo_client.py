"""The demo's swarm client: asks the model for sums, differences and products and rewards right answers.

Written as a user would write one: everything it needs is public AgentJet. Run it as
``python -m skillpack.demo_client URL CLIENT_NUMBER``; it ends when the engine goes offline.
"""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from openai import OpenAI

from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.as_oai_baseurl_apikey import OpenaiBaseUrlAndApiKey
from ajet.tuner_lib.experimental.swarm_client import SwarmClient, SwarmServerOfflineError

BATCH_SIZE = 8
NUM_REPEAT = 8
STEPS = 24
THREADS = 8


def demo_job() -> AgentJetJob:
    """Return the job that both clients train; its folders lie below the server's working directory."""
    job = AgentJetJob(
        project_name="agentjet_skills",
        experiment_name="demo",
        logging="console",
        batch_size=BATCH_SIZE,
        num_repeat=NUM_REPEAT,
        max_env_worker=2 * THREADS,
        total_training_steps=STEPS,
    )
    job.config.ajet.trainer_common.save_freq = STEPS
    return job


def make_task(number: int, rng: random.Random) -> Task:
    """Return an arithmetic task; the right answer stands in its metadata."""
    a, b = rng.randint(2, 60), rng.randint(2, 60)
    query, answer = rng.choice(
        [(f"Add {a} and {b}.", a + b), (f"Subtract {b} from {a}.", a - b), (f"Multiply {a} by {b}.", a * b)]
    )
    return Task(main_query=query, task_id=f"arithmetic-{number}", metadata={"answer": str(answer)})


def run_episode(task: Task, model: OpenaiBaseUrlAndApiKey, llm: OpenAI) -> WorkflowOutput:
    """Ask the model once and reward the right answer with 1, any other with 0."""
    # a copy of the SDK's client shares its connections; a new one would cost 30 ms of set-up
    chat = llm.with_options(base_url=model.base_url, api_key=model.api_key).chat
    answer = chat.completions.create(
        model=model.model, messages=[{"role": "user", "content": f"{task.main_query} Reply with the number only."}]
    )
    right = answer.choices[0].message.content == task.metadata["answer"]
    return WorkflowOutput(reward=float(right), is_success=right)


def main() -> None:
    """Work on tasks of this client's own until the engine goes offline."""
    server_url, number = sys.argv[1], int(sys.argv[2])
    rng = random.Random(number)
    with SwarmClient(server_url) as client, OpenAI(base_url=server_url, api_key="per episode") as llm:
        client.auto_sync_train_config_and_start_engine(demo_job())

        def work(task: Task) -> None:
            uuid, model = client.begin_episode(discard_episode_timeout=30)
            client.end_episode(task, uuid, run_episode(task, model, llm))

        tasks = (make_task(2 * index + number, rng) for index in count())
        with ThreadPoolExecutor(THREADS) as pool:
            try:
                for task in tasks:
                    for future in [pool.submit(work, task) for _ in range(NUM_REPEAT)]:
                        future.result()
            except SwarmServerOfflineError:
                return


if __name__ == "__main__":
    main()
