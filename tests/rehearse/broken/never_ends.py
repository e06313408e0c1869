"""Begins episodes and talks, but never ends one."""

from concurrent.futures import ThreadPoolExecutor

from common import ask, start, task

swarm = start()


def rollout(number):
    _, model = swarm.begin_episode()
    ask(model, task(number).main_query)


with ThreadPoolExecutor(8) as pool:
    list(pool.map(rollout, range(1000)))
