"""Gives all tasks the same id."""

from common import ask, reward, start, task

from ajet.schema.task import WorkflowOutput

swarm = start()

for number in range(1000):
    one = task(number)
    episode_uuid, model = swarm.begin_episode()
    output = WorkflowOutput(reward=reward(ask(model, one.main_query), one))
    swarm.end_episode(one.model_copy(update={"task_id": "the task"}), episode_uuid, output)
