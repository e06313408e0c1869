"""A policy small enough for a laptop that really learns from rewards.

A softmax over the candidate replies of a prompt. The score of a candidate is the sum of three
learned weights for its kind: one over all prompts, one over prompts of the same template, one for
this very prompt. The update is the policy gradient with group-relative advantages (GRPO: Shao et
al. 2024, arXiv:2402.03300, without the clipping that one on-policy step never needs), and an
optional penalty on the KL divergence from the untrained policy, which is uniform.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from ajet.backbone.policies.base import ChatRequest, Reply
from ajet.backbone.policies.candidates import Candidate, candidates, template
from ajet.tuner_lib.experimental.episode import CompletedEpisode

STEP_SIZE = 1.0
"""What a batch of advantage 1 adds to a weight. ``optim.lr`` is made for billions of weights and is not used."""

MAX_CONTEXTS = 50_000
"""Contexts (templates and prompts) whose weights are kept; the oldest are forgotten first."""

Choice = tuple[tuple[Candidate, ...], tuple[str, str, str]]


class LearningPolicy:
    """Chooses among candidate replies and learns which kinds are rewarded."""

    name = "learn"
    learns = True

    def __init__(self, seed: int = 0) -> None:
        self._weights: dict[str, dict[str, float]] = {"": {}}
        self._random = random.Random(seed)
        self._choice = lru_cache(maxsize=4096)(_choice)

    def describe(self) -> str:
        """Say what this policy is."""
        return (
            "a CPU softmax over candidate replies read off the prompt (numbers, options, quotes, tool calls), "
            "trained by group-relative advantages; it is not a language model"
        )

    async def reply(self, request: ChatRequest, temperature: float, top_p: float) -> Reply:
        """Sample a candidate at this temperature from the smallest set that holds ``top_p`` of the probability."""
        options, contexts = self._choice(
            request.model_dump_json(include={"messages", "tools", "tool_choice", "response_format"})
        )
        probabilities = self._probabilities([one.kind for one in options], contexts, temperature, top_p)
        draw = (random.Random(request.seed) if request.seed is not None else self._random).random()
        index = min(int(np.searchsorted(np.cumsum(probabilities), draw, side="right")), len(options) - 1)
        chosen = options[index]
        return Reply(
            content=chosen.content,
            tool_calls=[(chosen.tool, chosen.arguments)] if chosen.tool else [],
            finish_reason="tool_calls" if chosen.tool else "stop",
            logprob=float(np.log(probabilities[index])),
            entropy=_entropy(probabilities),
            trace={"kinds": [one.kind for one in options], "chosen": index, "contexts": list(contexts)},
        )

    def _probabilities(
        self, kinds: list[str], contexts: Iterable[str], temperature: float = 1.0, top_p: float = 1.0
    ) -> np.ndarray:
        tables = [self._weights.get(context, {}) for context in contexts]
        scores = np.array([sum(table.get(kind, 0.0) for table in tables) for kind in kinds])
        if temperature <= 0:
            best = np.zeros(len(kinds))
            best[int(scores.argmax())] = 1.0
            return best
        powers = np.exp((scores - scores.max()) / temperature)
        probabilities = powers / powers.sum()
        if top_p < 1:
            order = np.argsort(-probabilities)
            kept = order[: int(np.searchsorted(np.cumsum(probabilities[order]), top_p)) + 1]
            inside = np.zeros(len(kinds))
            inside[kept] = probabilities[kept]
            probabilities = inside / inside.sum()
        return probabilities

    def update(self, episodes: Iterable[CompletedEpisode], kl_coef: float = 0.0) -> dict[str, float]:
        """Take one gradient step from a batch of episodes.

        The gradient of a context's weights is averaged over the calls that used it. Returns
        actor/entropy (nats), actor/pg_loss, actor/kl_loss (nats), actor/grad_norm, actor/lr.
        """
        episodes = list(episodes)
        gradients: dict[str, dict[str, float]] = {}
        uses: dict[str, int] = {}
        losses, divergences, entropies = [], [], []
        for episode, advantage in zip(episodes, group_advantages(episodes), strict=True):
            for call in episode.calls:
                kinds, chosen = call.trace["kinds"], call.trace["chosen"]
                probabilities = self._probabilities(kinds, call.trace["contexts"])
                entropy = _entropy(probabilities)
                divergence = math.log(len(kinds)) - entropy
                slope = -advantage * probabilities
                slope[chosen] += advantage
                # d KL(p || uniform) / d score_j = p_j (log p_j + entropy)
                slope -= kl_coef * probabilities * (np.log(np.maximum(probabilities, 1e-300)) + entropy)
                for context in call.trace["contexts"]:
                    table = gradients.setdefault(context, {})
                    uses[context] = uses.get(context, 0) + 1
                    for kind, part in zip(kinds, slope.tolist(), strict=True):
                        table[kind] = table.get(kind, 0.0) + part
                losses.append(-advantage)
                divergences.append(divergence)
                entropies.append(entropy)
        square = 0.0
        for context, table in gradients.items():
            weights = self._weights.pop(context, {})
            for kind, part in table.items():
                part /= uses[context]
                weights[kind] = weights.get(kind, 0.0) + STEP_SIZE * part
                square += part * part
            self._weights[context] = weights
        for context in list(self._weights)[: max(0, len(self._weights) - MAX_CONTEXTS)]:
            del self._weights[context]
        return {
            "actor/entropy": _mean(entropies),
            "actor/pg_loss": _mean(losses),
            "actor/kl_loss": _mean(divergences),
            "actor/kl_coef": kl_coef,
            "actor/grad_norm": math.sqrt(square),
            "actor/lr": STEP_SIZE,
        }

    def state(self) -> dict[str, Any]:
        """Return the weights by context and kind."""
        return {"policy": self.name, "weights": self._weights}

    def load(self, state: dict[str, Any]) -> None:
        """Take over saved weights. Raises ValueError if they are another policy's."""
        if state.get("policy") != self.name or not isinstance(state.get("weights"), dict):
            raise ValueError(f"the checkpoint is of policy {state.get('policy')!r}, not {self.name!r}")
        self._weights = {context: dict(table) for context, table in state["weights"].items()}

    async def close(self) -> None:
        """Close nothing: this policy holds no connections."""


def group_advantages(episodes: list[CompletedEpisode], epsilon: float = 1e-6) -> list[float]:
    """Return each episode's ``(reward - group mean) / (group std + epsilon)``; 0 in a group of one.

    A group is the episodes of one ``task_id``; the standard deviation is the sample's (n - 1), as
    in verl's ``compute_grpo_outcome_advantage``.
    """
    groups: dict[str, list[float]] = {}
    for episode in episodes:
        groups.setdefault(episode.task_id, []).append(episode.reward)
    means = {task: float(np.mean(rewards)) for task, rewards in groups.items()}
    spreads = {task: float(np.std(rewards, ddof=1)) if len(rewards) > 1 else 0.0 for task, rewards in groups.items()}
    return [
        (one.reward - means[one.task_id]) / (spreads[one.task_id] + epsilon) if len(groups[one.task_id]) > 1 else 0.0
        for one in episodes
    ]


def _choice(request: str) -> Choice:
    parsed = ChatRequest.model_validate_json(request)
    prompt = hashlib.blake2b(parsed.prompt_text().encode(), digest_size=8).hexdigest()
    return tuple(candidates(parsed)), ("", template(parsed), prompt)


def _entropy(probabilities: np.ndarray) -> float:
    positive = probabilities[probabilities > 0]
    return float(-(positive * np.log(positive)).sum()) + 0.0


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0
