"""The policy learns from rewards, and only from rewards."""

from __future__ import annotations

import asyncio
import json
import random
from statistics import fmean

import pytest

from ajet.backbone.policies.base import ChatRequest, tokenize
from ajet.backbone.policies.candidates import candidates
from ajet.backbone.policies.learn import LearningPolicy, group_advantages
from ajet.tuner_lib.experimental.episode import Call, CompletedEpisode


def ask(text: str, **more: object) -> ChatRequest:
    return ChatRequest.model_validate({"messages": [{"role": "user", "content": text}], **more})


def train(policy: LearningPolicy, seed: int, steps: int = 25, reward_is_right: bool = True) -> list[float]:
    """Train on sums, differences and products; return the mean reward of each step."""
    rng, means = random.Random(seed), []
    for step in range(steps):
        batch = []
        for task in range(8):
            a, b = rng.randint(2, 60), rng.randint(2, 60)
            question, right = rng.choice(
                [(f"Add {a} and {b}.", a + b), (f"Subtract {b} from {a}.", a - b), (f"Multiply {a} by {b}.", a * b)]
            )
            for _ in range(8):
                reply = asyncio.run(policy.reply(ask(question), 0.9, 1.0))
                reward = float(reply.content == str(right)) if reward_is_right else 1.0
                call = Call(5, 1, logprob=reply.logprob, entropy=reply.entropy, trace=reply.trace)
                batch.append(CompletedEpisode("e", f"{step}-{task}", "c", reward, calls=[call]))
        policy.update(batch, 0.002)
        means.append(fmean(one.reward for one in batch))
    return means


@pytest.mark.parametrize("seed", range(10))
def test_the_mean_reward_rises(seed):
    means = train(LearningPolicy(seed), seed)
    assert fmean(means[-5:]) > fmean(means[:5]) + 0.4


@pytest.mark.parametrize("question", ["Add 1 and " + "9" * 400, f"Multiply {'9' * 200} by {'9' * 200}."])
def test_numbers_beyond_a_float_are_left_out(question):
    assert not {"inf", "nan"} & {one.content for one in candidates(ask(question))}


@pytest.mark.parametrize("word", ["nan", "infinity"])
def test_words_that_python_reads_as_numbers_stay_words_in_json_mode(word):
    offered = candidates(ask(f"Converges or goes to {word}?", response_format={"type": "json_object"}))
    assert json.dumps({"answer": word}) in [one.content for one in offered]


def test_equal_rewards_teach_nothing():
    policy = LearningPolicy(0)
    train(policy, 0, steps=5, reward_is_right=False)
    assert all(abs(weight) < 1e-2 for table in policy.state()["weights"].values() for weight in table.values())


def test_what_was_learned_survives_a_checkpoint():
    policy, restored = LearningPolicy(0), LearningPolicy(0)
    train(policy, 0)
    restored.load(policy.state())
    assert asyncio.run(restored.reply(ask("Add 31 and 11."), 0.0, 1.0)).content == "42"
    with pytest.raises(ValueError, match="'echo', not 'learn'"):
        restored.load({"policy": "echo"})


def test_advantages_are_relative_to_the_group():
    def episode(task: str, reward: float) -> CompletedEpisode:
        return CompletedEpisode("e", task, "c", reward)

    batch = [episode("a", 1.0), episode("a", 0.0), episode("b", 5.0), episode("b", 5.0), episode("c", 9.0)]
    assert group_advantages(batch) == pytest.approx([0.70710578, -0.70710578, 0, 0, 0], abs=1e-6)


def test_a_seed_makes_a_reply_repeatable_and_temperature_0_makes_it_certain():
    policy = LearningPolicy(0)
    replies = {asyncio.run(policy.reply(ask("Add 2 and 5.", seed=7), 1.0, 1.0)).content for _ in range(20)}
    assert len(replies) == 1
    certain = asyncio.run(policy.reply(ask("Add 2 and 5."), 0.0, 1.0))
    assert (certain.logprob, certain.entropy) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (ask("What is 12 + 30?"), "42"),
        (ask("Pick.\nA) red\nB) blue"), "B"),
        (ask("Answer with one of: cat, dog or bird."), "bird"),
        (ask("What is 4 * 5? Put it in \\boxed{}."), "\\boxed{20}"),
        (ask("What is 4 * 5? End with #### and the number."), "#### 20"),
        (ask("What is 4 * 5?", response_format={"type": "json_object"}), '{"answer": 20}'),
        (ask("Say `hello` back."), "hello"),
        (ask("你好"), "你好"),
        (ask(""), "yes"),
    ],
)
def test_the_right_reply_is_among_the_candidates(request_, expected):
    assert expected in [one.content for one in candidates(request_)]


def test_tool_choice_decides_whether_tools_are_called():
    parameters = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    }
    tools = [{"type": "function", "function": {"name": "add", "parameters": parameters}}]
    offered = candidates(ask("Add 3 and 4.", tools=tools))
    assert ("add", '{"a": 3, "b": 4}') in [(one.tool, one.arguments) for one in offered]
    assert any(one.content for one in offered)
    assert all(one.tool for one in candidates(ask("Add 3 and 4.", tools=tools, tool_choice="required")))
    assert not any(one.tool for one in candidates(ask("Add 3 and 4.", tools=tools, tool_choice="none")))


@pytest.mark.parametrize("text", ["", " ", "one two  three ", "价格是 30 元。", "a\n\nb", "x" * 9])
def test_tokens_make_up_the_text_again(text):
    assert "".join(tokenize(text)) == text
