"""What a prediction needs beside the configuration, and where each number can be measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from skillpack.capacity.inputs import ASSUMED, UNKNOWN, Inputs
from skillpack.script import BadInput


@dataclass(frozen=True)
class Parameter:
    """One number of a workload. ``default`` is what is assumed where nobody gives it (None: unknown)."""

    kind: type
    default: Any
    help: str
    measure: str
    least: float = 0


EPISODE_SECONDS, EPISODE_P95, DURATIONS = "episode_seconds", "episode_p95", "durations"
UPDATE, RESUME, OVERHEAD = "update_seconds", "resume_seconds", "overhead_seconds"
LLM_SHARE, DUMMY_SHARE, VANISH, TIMEOUT = "llm_share", "dummy_share", "vanish_share", "discard_episode_timeout"
THROTTLE_RATIO, AGREE_AFTER = "throttle_ratio", "agree_after"

CLIENT_LOOP, TASK_ORDER = "client_loop", "task_order"
STREAM, BATCH = "stream", "batch"
TASK_FIRST, CLAIM_FIRST = "task-first", "claim-first"

CHOICES = {
    CLIENT_LOOP: (
        (STREAM, BATCH),
        "A batch loop waits for its own batch before it goes on; a stream never waits.",
    ),
    TASK_ORDER: (
        (CLAIM_FIRST, TASK_FIRST),
        "Whether a thread takes its task when it has an episode, or before it waits for one.",
    ),
}
"""How clients work, by name: the choices (the first is assumed) and what they mean."""

PARAMETERS: dict[str, Parameter] = {
    EPISODE_SECONDS: Parameter(
        float, None, "Mean seconds of one episode.", "capacity.py live --url URL --for 5m", 1e-6
    ),
    EPISODE_P95: Parameter(
        float, None, "Seconds that 95 % of the episodes take at most.", "capacity.py live --url URL --for 5m", 1e-6
    ),
    UPDATE: Parameter(
        float, 0.0, "Seconds from the end of the rollout to the next (update, sync).", "timing_s/step - timing_s/gen"
    ),
    RESUME: Parameter(
        float,
        0.0,
        "Seconds until clients claim after ROLLING begins.",
        "released clients poll: 4.9 s were measured; the pack's own wait for the event",
    ),
    OVERHEAD: Parameter(
        float, 0.0, "Seconds a slot loses between two episodes.", "released engines register for 1 s or more"
    ),
    LLM_SHARE: Parameter(
        float, 0.0, "Share of an episode that is LLM time, from 0 to 1.", "time chat calls in the client's workflow"
    ),
    DUMMY_SHARE: Parameter(
        float, 0.0, "Share of tasks whose rewards are all equal.", "completed_tasks_rewards of the pool information"
    ),
    VANISH: Parameter(
        float, 0.0, "Share of episodes whose client disappears.", "stale episodes that capacity.py live counts"
    ),
    TIMEOUT: Parameter(
        float, 240.0, "discard_episode_timeout of begin_episode.", "the client's begin_episode call", 1e-6
    ),
    THROTTLE_RATIO: Parameter(float, None, "SwarmThrottlePolicy.ratio, if a policy is used.", "the client", 1e-6),
    AGREE_AFTER: Parameter(int, None, "Episodes after which a client agrees to sync.", "the client's script", 1),
}
"""Workload parameters by name; their flags are the names with dashes."""

SHARES = (LLM_SHARE, DUMMY_SHARE, VANISH)


def check_parameters(inputs: Inputs) -> None:
    """Raise BadInput if a workload parameter is no number of its range, or no choice."""
    for name, parameter in PARAMETERS.items():
        value = inputs.value(name)
        if value is None:
            continue
        good = isinstance(value, int if parameter.kind is int else int | float) and not isinstance(value, bool)
        most = 1.0 if name in SHARES else math.inf
        if not good or not parameter.least <= value <= most or not math.isfinite(value):
            raise BadInput(
                f"{name} is {value!r} ({inputs[name].source})",
                expected=f"a number from {parameter.least:g}" + (f" to {most:g}" if name in SHARES else ""),
                hint=flag(name),
            )
    for name, (choices, _) in CHOICES.items():
        if inputs.value(name) not in (None, *choices):
            raise BadInput(f"{name} is {inputs.value(name)!r}", expected=" or ".join(choices), hint=flag(name))


def assumptions(inputs: Inputs, needed: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return what is assumed because nobody gave it, each with how to replace it by a measurement."""
    found = []
    for name in needed:
        parameter = PARAMETERS[name]
        if inputs[name].known == UNKNOWN and parameter.default is not None:
            found.append(assumption(name, parameter.default, f"{parameter.measure}; {flag(name)}"))
    return found


def choices_assumed(inputs: Inputs) -> list[dict[str, Any]]:
    """Return what is assumed of how clients work."""
    return [
        assumption(name, choices[0], f"the client's script; {flag(name)}")
        for name, (choices, _) in CHOICES.items()
        if inputs.value(name) is None
    ]


def assumption(name: str, value: Any, replace_by: str) -> dict[str, Any]:
    """Return one assumption as a JSON object."""
    return {"name": name, "value": value, "known": ASSUMED, "replace_by": replace_by}


def flag(name: str) -> str:
    """Return the command line flag of a parameter."""
    return "--" + name.replace("_", "-")


def number(inputs: Inputs, name: str) -> Any:
    """Return the value of a parameter: given, else assumed, else None."""
    value = inputs.value(name)
    return PARAMETERS[name].default if value is None else value
