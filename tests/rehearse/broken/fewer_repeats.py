"""Runs each task twice where num_repeat is 4."""

from common import ask, reward, start, task

from ajet.schema.task import WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import run_episodes_until_all_complete

swarm = start()


def rollout(one):
    episode_uuid, model = swarm.begin_episode()
    swarm.end_episode(one, episode_uuid, WorkflowOutput(reward=reward(ask(model, one.main_query), one)))


for number in range(1000):
    run_episodes_until_all_complete([task(number)] * 2, rollout)
