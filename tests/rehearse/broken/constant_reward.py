"""Gives every episode the reward 1."""

from common import NUM_REPEAT, ask, start, task

from ajet.schema.task import WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import run_episodes_until_all_complete

swarm = start()


def rollout(one):
    episode_uuid, model = swarm.begin_episode()
    ask(model, one.main_query)
    swarm.end_episode(one, episode_uuid, WorkflowOutput(reward=1.0))


for number in range(1000):
    run_episodes_until_all_complete([task(number)] * NUM_REPEAT, rollout)
