"""A ReAct loop: the model may call a calculator before it answers."""

import json
import os

from openai import OpenAI

from ajet.copilot.job import AgentJetJob
from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.experimental.swarm_client import SwarmClient, run_episodes_until_all_complete
from ajet.utils.message_utils import is_token_overflow_message

AJET_SWARM_URL = os.getenv("AJET_SWARM_URL", "http://localhost:10086")
NUM_REPEAT, BATCH_SIZE, MAX_TURNS = 4, 3, 4
NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "multiply",
            "description": "Multiply two whole numbers.",
            "parameters": {"type": "object", "properties": NUMBERS, "required": ["a", "b"]},
        },
    }
]


def run_agent(task: Task, model) -> WorkflowOutput:
    messages = [{"role": "user", "content": task.main_query}]
    calls, text = 0, ""
    with OpenAI(base_url=model.base_url, api_key=model.api_key) as client:
        for _ in range(MAX_TURNS):
            choice = "auto" if calls else "required"
            answer = client.chat.completions.create(model="m", messages=messages, tools=TOOLS, tool_choice=choice)
            reply = answer.choices[0].message
            if is_token_overflow_message(reply.content):
                break
            messages.append(reply.model_dump(exclude_none=True))
            if not reply.tool_calls:
                text = reply.content or ""
                break
            for call in reply.tool_calls:
                calls += 1
                arguments = json.loads(call.function.arguments)
                result = str(arguments["a"] * arguments["b"])
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    correct = text == task.metadata["answer"]
    stats = {"tool_stats": {"total_calls": calls, "success_calls": calls, "total_errors": 0}}
    return WorkflowOutput(reward=float(correct) + 0.1 * bool(calls), is_success=correct, log_metrics=stats)


def main() -> None:
    swarm = SwarmClient(AJET_SWARM_URL)
    swarm.auto_sync_train_config_and_start_engine(
        AgentJetJob(
            experiment_name="react", batch_size=BATCH_SIZE, num_repeat=NUM_REPEAT, max_env_worker=12, logging="console"
        )
    )

    def rollout(task: Task) -> float:
        episode_uuid, model = swarm.begin_episode(discard_episode_timeout=120)
        output = run_agent(task, model)
        swarm.end_episode(task, episode_uuid, output)
        return output.reward

    for number in range(2, 100000):
        tasks = [
            Task(
                main_query=f"How much is {number} times {n}?",
                task_id=f"{number}x{n}",
                metadata={"answer": str(number * n)},
            )
            for n in range(2, 2 + BATCH_SIZE)
        ]
        run_episodes_until_all_complete([task for task in tasks for _ in range(NUM_REPEAT)], rollout, max_workers=12)


if __name__ == "__main__":
    main()
