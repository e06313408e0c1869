"""Thinks longer between two model calls than the server waits for it."""

import time

from common import NUM_REPEAT, ask, reward, start, task

from ajet.schema.task import WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import run_episodes_until_all_complete

swarm = start()


def rollout(one):
    episode_uuid, model = swarm.begin_episode(discard_episode_timeout=0.3)
    ask(model, one.main_query)
    time.sleep(0.8)  # a slow judge
    output = WorkflowOutput(reward=reward(ask(model, one.main_query), one))
    swarm.end_episode(one, episode_uuid, output)


for number in range(1000):
    run_episodes_until_all_complete([task(number)] * NUM_REPEAT, rollout)
