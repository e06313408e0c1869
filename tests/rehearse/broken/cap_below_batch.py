"""Begins a whole batch of episodes before it ends the first; the cap is smaller than the batch."""

from concurrent.futures import ThreadPoolExecutor

from common import BATCH_SIZE, NUM_REPEAT, ask, reward, start, task

from ajet.schema.task import WorkflowOutput

swarm = start(max_env_worker=8)

for step in range(1000):
    tasks = [task(BATCH_SIZE * step + n) for n in range(BATCH_SIZE) for _ in range(NUM_REPEAT)]
    with ThreadPoolExecutor(len(tasks)) as pool:
        begun = list(pool.map(lambda _: swarm.begin_episode(), tasks))
        for one, (episode_uuid, model) in zip(tasks, begun, strict=True):
            swarm.end_episode(one, episode_uuid, WorkflowOutput(reward=reward(ask(model, one.main_query), one)))
