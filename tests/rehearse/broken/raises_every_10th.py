"""Every tenth episode fails on a tool that is not there."""

import itertools

from common import BATCH_SIZE, NUM_REPEAT, ask, reward, start, task

from ajet.schema.task import WorkflowOutput
from ajet.utils.thread_executors import PeriodicDrainThreadPoolExecutor

swarm = start()
count = itertools.count(1)


def rollout(one):
    episode_uuid, model = swarm.begin_episode()
    try:
        text = ask(model, one.main_query)
        if next(count) % 10 == 0:
            raise FileNotFoundError("no tool named 'calculator'")
        swarm.end_episode(one, episode_uuid, WorkflowOutput(reward=reward(text, one)))
    except Exception:
        swarm.abort_episode(episode_uuid)
        raise


executor = PeriodicDrainThreadPoolExecutor(workers=BATCH_SIZE * NUM_REPEAT, max_parallel=12, auto_retry=True)
for number in range(1000):
    for _ in range(NUM_REPEAT):
        executor.submit_with_periodic_drain(rollout, task(number))
