"""Waits in the third episode for something that never comes."""

import threading

from common import NUM_REPEAT, ask, reward, start, task

from ajet.schema.task import WorkflowOutput

swarm = start()
never = threading.Event()


def run_tool(number: int) -> None:
    if number == 2:
        never.wait()


for number in range(1000):
    for _ in range(NUM_REPEAT):
        one = task(number)
        episode_uuid, model = swarm.begin_episode()
        text = ask(model, one.main_query)
        run_tool(number)
        swarm.end_episode(one, episode_uuid, WorkflowOutput(reward=reward(text, one)))
