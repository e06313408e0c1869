"""A swarm client as people write them: claim an episode, ask the model, send the reward."""

import os
import sys

import httpx

from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import SwarmClient

STEPS, REPEATS = int(sys.argv[1]), 2

client = SwarmClient(os.environ["AJET_SWARM_URL"])
client.auto_sync_train_config_and_start_engine(AgentJetJob(base_yaml_config="swarm.yaml"))
number = 0
while (client.get_global_step() or 0) < STEPS:
    task = Task(main_query=f"Add {number} and 3.", task_id=str(number // REPEATS))
    episode, api = client.begin_episode()
    httpx.post(
        f"{api.base_url}/chat/completions",
        headers={"authorization": f"Bearer {api.api_key}"},
        json={"model": "any", "messages": [{"role": "user", "content": task.main_query}]},
        timeout=30,
    ).raise_for_status()
    client.end_episode(task, episode, WorkflowOutput(reward=float(number % REPEATS), metadata={}))
    number += 1
print("the client is done", flush=True)
if "--leave" not in sys.argv:
    client.stop_engine()
