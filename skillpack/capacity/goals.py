"""The smallest change that reaches a goal: a step time, a throughput or a slot utilisation."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skillpack.capacity import inputs as keys
from skillpack.capacity.bottleneck import gains
from skillpack.capacity.inputs import UNKNOWN, Inputs
from skillpack.capacity.plan import change, target_changes
from skillpack.capacity.predict import STEPS, Prediction, default_engine, predict
from skillpack.capacity.what_if import assumption_lines, comparison, restarts, table_lines
from skillpack.script import BadInput

STEP_TIME, UTILISATION, THROUGHPUT = "step-time", "utilisation", "episodes-per-hour"
SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
SPELLINGS = {"utilization": UTILISATION}
NOTICEABLE = 0.02
"""Share of the throughput whose loss is told."""
GROUPS_AT_MOST = 1 << 14
"""Groups of num_repeat slots up to which a plan looks."""

EXAMPLES = "step-time=10min, utilisation=90%, episodes-per-hour=5000"


@dataclass(frozen=True)
class Goal:
    """What is to be reached: seconds, a share, or episodes per hour."""

    name: str
    value: float

    def is_met(self, prediction: Prediction) -> bool:
        """Tell whether the predicted mean reaches the goal."""
        simulation = prediction.simulation
        if simulation is None:
            return False
        if self.name == STEP_TIME:
            return simulation.step.mean <= self.value
        if self.name == UTILISATION:
            return simulation.utilisation >= self.value
        return simulation.episodes_per_hour.mean >= self.value


def parse_goal(text: str) -> Goal:
    """Read ``step-time=10min``, ``utilisation=90%`` or ``episodes-per-hour=5000``. Raises BadInput."""
    name, _, value = text.partition("=")
    name = SPELLINGS.get(name.strip(), name.strip())
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z%]*)", value.strip())
    factor = None
    if found is not None:
        unit = found[2]
        if name == STEP_TIME:
            factor = SECONDS.get(unit)
        elif name == UTILISATION:
            factor = {"%": 0.01, "": 1.0}.get(unit)
        elif name == THROUGHPUT and not unit:
            factor = 1.0
    if found is None or factor is None or float(found[1]) <= 0:
        raise BadInput(f"goal {text!r} is not understood", expected=EXAMPLES, hint=f"--goal {STEP_TIME}=10min")
    goal = Goal(name, float(found[1]) * factor)
    if name == UTILISATION and goal.value > 1:
        raise BadInput(f"a utilisation of {goal.value:g} is more than 100 %", expected=EXAMPLES)
    return goal


def parse_seconds(text: str) -> float:
    """Read a time such as ``30s``, ``5m`` or ``90`` as seconds. Raises BadInput."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)", text.strip())
    if found is None or found[2] not in SECONDS or float(found[1]) <= 0:
        raise BadInput(f"{text!r} is not a time", expected="a number with s, m or h", hint="--for 5m")
    return float(found[1]) * SECONDS[found[2]]


def goal_report(
    inputs: Inputs, goal: Goal, engine: str | None = None, steps: int = STEPS, seed: int = 0
) -> dict[str, Any]:
    """Return the JSON document of ``capacity.py plan --goal``; ``reached`` is false if no change is enough."""
    engine = engine or default_engine(inputs)

    def predicted(changes: dict[str, Any]) -> Prediction:
        return predict(inputs.replace(changes, "plan"), engine, steps, seed)

    before = predicted({})
    changes = _smallest_change(inputs, goal, engine, before, predicted)
    after = before if not changes else predicted(changes)
    return {
        "question": "plan-goal",
        "goal": {"name": goal.name, "value": goal.value},
        "reached": changes is not None,
        "changes": [change(inputs, key, value) for key, value in (changes or {}).items()],
        "restart": restarts(changes or {}),
        "table": comparison(before, after),
        "before": before.as_json(),
        "after": after.as_json(),
        "assumptions": after.assumptions,
        "gains": gains(after, seed=seed) if changes is None else [],
        "advice": [*_price(goal, before, after), *_advice(goal, changes, before, inputs)],
    }


def _smallest_change(
    inputs: Inputs,
    goal: Goal,
    engine: str,
    before: Prediction,
    predicted: Callable[[dict[str, Any]], Prediction],
) -> dict[str, Any] | None:
    """Return the change of slots (and of what goes with them) nearest to what is set; None if none is enough."""
    if goal.is_met(before):
        return {}
    repeat = inputs.value(keys.NUM_REPEAT)
    now = max(1, before.workload.concurrency // repeat)

    def changes_of(groups: int) -> dict[str, Any]:
        return _changes(inputs, groups * repeat, engine, keep_batch=goal.name == STEP_TIME)

    def reached(groups: int) -> bool:
        return goal.is_met(predicted(changes_of(groups)))

    if goal.name == UTILISATION:
        # fewer slots are used better
        if not reached(1):
            return None
        low, high = 1, now
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if reached(middle) else (low, middle - 1)
        return changes_of(low)
    low, high = now, now
    while not reached(high):
        if high >= GROUPS_AT_MOST:
            return None
        low, high = high, min(2 * high, GROUPS_AT_MOST)
        if high * repeat >= 4 * before.workload.episodes and not reached(high):
            return None  # a step has not work enough for more slots
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return changes_of(high)


def _changes(inputs: Inputs, target: int, engine: str, keep_batch: bool) -> dict[str, Any]:
    """Return what lets ``target`` episodes run: the engine's keys, and the clients' pools where they are known."""
    changes: dict[str, Any] = dict(target_changes(inputs, target, (engine,)))
    if keep_batch:
        changes.pop(keys.TRAIN_BATCH_SIZE, None)
    clients = inputs.value(keys.CLIENTS) or 1
    pool = inputs.value(keys.CLIENT_POOL)
    if inputs[keys.CLIENT_POOL].known != UNKNOWN and clients * pool < target:
        changes[keys.CLIENT_POOL] = -(-target // clients)
    return changes


def _price(goal: Goal, before: Prediction, after: Prediction) -> list[str]:
    """Return what the plan costs in throughput: slots are used better by taking the others away."""
    first, second = before.simulation, after.simulation
    if goal.name != UTILISATION or first is None or second is None:
        return []
    kept = second.episodes_per_hour.mean / first.episodes_per_hour.mean
    if kept > 1 - NOTICEABLE:
        return []
    return [
        f"This buys utilisation with throughput: episodes per hour x {kept:.2f}, a step takes"
        f" {second.step.mean / first.step.mean:.1f} times as long. Apply it only if idle slots cost more than that;"
        " to use the slots that there are, collect more episodes in a step (train_batch_size) or shorten the longest."
    ]


def _advice(goal: Goal, changes: dict[str, Any] | None, before: Prediction, inputs: Inputs) -> list[str]:
    if changes is None:
        return [
            f"No number of slots reaches {goal.name} {goal.value:g}: {before.bottleneck} binds;"
            " gains says what would help."
        ]
    if not changes:
        return ["The goal is met as it is."]
    advice = []
    if keys.TRAIN_BATCH_SIZE in changes:
        advice.append("A larger train_batch_size also makes each step collect more episodes.")
    if inputs[keys.KV_SEQUENCES].known == UNKNOWN:
        advice.append("Whether the KV cache holds so many sequences is unknown: ask capacity.py fit.")
    return advice


def goal_text(report: dict[str, Any]) -> str:
    """Return a plan for a goal as text for people."""
    goal = report["goal"]
    lines = [f"goal {goal['name']} {goal['value']:g}: {'reached' if report['reached'] else 'not reached'}"]
    lines += [f"set {item['key']}: {item['from']} -> {item['to']}    {item['set']}" for item in report["changes"]]
    if report["restart"]:
        lines.append(f"restart: {', '.join(report['restart'])}")
    lines += ["", *table_lines(report["table"]), ""]
    lines += [
        f"{gain['change']}: step time x {gain['step_time_factor']:g},"
        f" episodes per hour x {gain['episodes_per_hour_factor']:g}"
        for gain in report["gains"]
    ]
    return "\n".join([*lines, *(f"- {text}" for text in report["advice"]), *assumption_lines(report)])
