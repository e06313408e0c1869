"""Gives each repeat of a task an id of its own."""

import uuid

from common import NUM_REPEAT, ask, reward, start, task

from ajet.schema.task import WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import run_episodes_until_all_complete

swarm = start()


def rollout(one):
    one = one.model_copy(update={"task_id": str(uuid.uuid4())})
    episode_uuid, model = swarm.begin_episode()
    swarm.end_episode(one, episode_uuid, WorkflowOutput(reward=reward(ask(model, one.main_query), one)))


for number in range(1000):
    run_episodes_until_all_complete([task(number)] * NUM_REPEAT, rollout)
