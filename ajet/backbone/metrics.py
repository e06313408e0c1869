"""The metrics of a training step, with the names and in the order of a real run.

What only GPUs have (memory, MFU, reference log-probabilities) is left out, not imitated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from ajet.backbone.policies.learn import group_advantages
from ajet.tuner_lib.experimental.episode import CompletedEpisode

LOG_PREFIX = "train_"

_NOT_IN_A_KEY = re.compile(r"[^\w./@%()+-]+")
"""What would break the console line of a step apart; clients choose the keys of their log metrics."""


def step_metrics(
    collected: list[CompletedEpisode],
    batch: list[CompletedEpisode],
    *,
    update: dict[str, float],
    timing: dict[str, float],
    step: int,
    epoch: int,
    max_response_length: int,
) -> dict[str, float]:
    """Return the metrics of a step.

    ``collected`` are all completed episodes, ``batch`` those trained on; ``update`` comes from the
    policy; ``timing`` is in seconds by phase, with ``step`` for the whole.
    """
    rewards = [one.reward for one in batch]
    advantages = group_advantages(batch)
    responses = [sum(call.response_tokens for call in one.calls) for one in batch]
    prompts = [one.calls[0].prompt_tokens for one in batch if one.calls]
    tokens = sum(responses) + sum(prompts)
    clipped = [any(call.finish_reason == "length" for call in one.calls) for one in batch]
    metrics: dict[str, float] = {
        "critic/llm_call_cnt": _mean(len(one.calls) for one in batch),
        "critic/success_rate": _mean(bool(one.is_success) for one in batch),
        "critic/real_success_rate": _mean(bool(one.is_success) for one in collected),
        "critic/real_reward": _mean(one.reward for one in collected),
        **log_metrics(batch, LOG_PREFIX),
        **update,
        "training/global_step": step,
        "training/epoch": epoch,
        **_spread("critic/score", rewards),
        **_spread("critic/rewards", rewards),
        **_spread("critic/advantages", advantages),
        **_spread("critic/returns", advantages),
        **_spread("response_length", responses),
        "response_length/clip_ratio": _mean(
            is_clipped or length >= max_response_length for is_clipped, length in zip(clipped, responses, strict=True)
        ),
        **_spread("prompt_length", prompts),
        **{f"timing_s/{phase}": seconds for phase, seconds in timing.items()},
        "perf/total_num_tokens": tokens,
        "perf/time_per_step": timing["step"],
        "perf/throughput": tokens / timing["step"] if timing["step"] > 0 else 0.0,
    }
    return metrics


def log_metrics(episodes: Iterable[CompletedEpisode], prefix: str) -> dict[str, float]:
    """Return what episodes report in ``log_metrics``: means of numbers, and the tool statistics.

    Real runs know ``tool_stats`` and ``reward_stats`` (which appear here by the same names) and
    ignore other keys; here a plain number under any key is averaged too. What is no finite number
    is passed over: one client's odd report must not end the run of all.
    """
    episodes = list(episodes)
    metrics: dict[str, float] = {}
    for key in dict.fromkeys(key for one in episodes for key in one.log_metrics):
        values = [one.log_metrics[key] for one in episodes if key in one.log_metrics]
        numbers = [value for value in values if isinstance(value, (int, float)) and math.isfinite(value)]
        if numbers:
            metrics[prefix + _NOT_IN_A_KEY.sub("_", key)] = _mean(numbers)
    tools = [one.log_metrics["tool_stats"] for one in episodes if isinstance(one.log_metrics.get("tool_stats"), dict)]
    if tools:
        metrics |= _tool_metrics(tools, f"{prefix}tool_stats/")
    stats = [
        one.log_metrics["reward_stats"] for one in episodes if isinstance(one.log_metrics.get("reward_stats"), dict)
    ]
    if stats:
        for key in ("final_reward", "fused_reward", "penalty", "step_reward"):
            metrics[f"{prefix}rewards/{key}_mean"] = _mean(_number(one.get(key)) for one in stats)
        penalties = [_number(one.get("penalty")) != 0 for one in stats]
        metrics[f"{prefix}rewards/penalty_count"] = sum(penalties)
        metrics[f"{prefix}rewards/penalty_rate"] = 100 * _mean(penalties)
    return metrics


def _tool_metrics(stats: list[dict[str, Any]], prefix: str) -> dict[str, float]:
    def total(key: str) -> float:
        return sum(_number(one.get(key)) for one in stats)

    def percent(part: float, whole: float) -> float:
        return 100 * part / whole if whole else 0.0

    hits, misses = total("cache_hits"), total("cache_misses")
    return {
        f"{prefix}tool_success_rate": percent(total("success_calls"), total("total_calls")),
        f"{prefix}tool_total_calls": total("total_calls"),
        f"{prefix}tool_success_calls": total("success_calls"),
        f"{prefix}tool_error_calls": total("total_errors"),
        f"{prefix}tool_cache_hit_rate": percent(hits, hits + misses),
        f"{prefix}tool_cache_hits": hits,
        f"{prefix}tool_cache_misses": misses,
    }


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return float(np.mean(listed)) if listed else 0.0


def _spread(name: str, values: list[float] | list[int]) -> dict[str, float]:
    if not values:
        return {}
    return {
        f"{name}/mean": float(np.mean(values)),
        f"{name}/max": float(max(values)),
        f"{name}/min": float(min(values)),
    }
