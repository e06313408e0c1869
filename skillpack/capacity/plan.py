"""What to set so that N episodes can run at once, and what must restart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ajet.default_config import DUMMY_TASKS
from skillpack.capacity import inputs as keys
from skillpack.capacity.cap import cap_report
from skillpack.capacity.inputs import Inputs
from skillpack.capacity.limits import CLASSIC, DOCUMENTED, RELEASED, documented_cap, engines_of
from skillpack.script import BadInput

KWARGS = {
    keys.MAX_ENV_WORKER: "max_env_worker",
    keys.NUM_REPEAT: "num_repeat",
    keys.TRAIN_BATCH_SIZE: "batch_size",
}
"""AgentJetJob kwargs of the keys that a plan changes."""


def target_changes(inputs: Inputs, target: int, engines: Sequence[str]) -> dict[str, int]:
    """Return the smallest changes (YAML key: value) that let ``target`` episodes run on these kinds of engine.

    max_env_worker becomes the next multiple of num_repeat; train_batch_size and the tracker
    threads are raised only where they are known to lie below it.
    """
    repeat = inputs.value(keys.NUM_REPEAT)
    if repeat is None:
        raise BadInput(
            "num_repeat is unknown",
            expected="--num-repeat N, or --from FILE",
            hint=f"capacity.py plan --target {target} --num-repeat 8",
        )
    workers = documented_cap(target, repeat)
    wanted = {keys.MAX_ENV_WORKER: workers}
    if tuple(engines) != (DOCUMENTED,):
        batch = inputs.value(keys.TRAIN_BATCH_SIZE)
        enough = batch_for(inputs, workers // repeat)
        if batch is not None and batch * repeat < workers and enough is not None:
            wanted[keys.TRAIN_BATCH_SIZE] = enough
    if RELEASED in engines:
        for key in (keys.TRACKER_THREADS, keys.FASTAPI_THREADS):
            threads = inputs.value(key)
            if threads is not None and threads < workers:
                wanted[key] = workers
    return {key: value for key, value in wanted.items() if inputs.value(key) != value}


def batch_for(inputs: Inputs, groups: int) -> int | None:
    """Return the smallest train_batch_size of at least ``groups`` that an engine accepts; None if there is none.

    Its episodes must divide evenly among the GPUs and fit into the cache of collected episodes, and
    swarm mode trains over a thousand placeholder tasks (the rules of ``config.py lint``).
    """
    repeat = inputs.value(keys.NUM_REPEAT)
    gpus = (inputs.value(keys.N_GPUS_PER_NODE) or 1) * (inputs.value(keys.NNODES) or 1)
    step = gpus // math.gcd(gpus, repeat)
    batch = -(-groups // step) * step
    cached = inputs.value(keys.MAX_CACHED_EPISODES)
    if inputs.value(keys.SWARM_MODE) is not False and batch > DUMMY_TASKS:
        return None
    return None if cached is not None and batch * repeat > cached else batch


def plan_report(inputs: Inputs, target: int, engine: str | None = None) -> dict[str, Any]:
    """Return the JSON document of ``capacity.py plan --target``. A cap that is high enough already is left alone."""
    engines = engines_of(inputs, engine)
    changes = target_changes(inputs, target, engines)
    workers = inputs.value(keys.MAX_ENV_WORKER)
    enough = workers is not None and workers >= target
    if enough:
        changes.pop(keys.MAX_ENV_WORKER, None)
    after = inputs.replace(changes, f"plan for {target}")
    report = cap_report(after, engine)
    pools = inputs.value(keys.CLIENT_POOLS)
    needs = [f"max_env_worker {workers} allows {target} already: it is not what holds them back."] if enough else []
    if CLASSIC not in engines and (pools is None or pools < target):
        needs.append(f"The clients' pools together must be at least {target}.")
    batch, repeat = after.value(keys.TRAIN_BATCH_SIZE), after.value(keys.NUM_REPEAT)
    if RELEASED in engines and batch is not None and batch * repeat < target:
        needs.append(
            f"No train_batch_size lets a released engine run {target} episodes: it may be {DUMMY_TASKS} at most,"
            f" and its episodes must fit into {keys.MAX_CACHED_EPISODES}."
        )
    if keys.TRAIN_BATCH_SIZE in changes:
        needs.append(
            "A larger train_batch_size means more episodes per step: it is needed only on a released engine,"
            " which runs no more than one batch at once."
        )
    if after.value(keys.TRAIN_BATCH_SIZE) is None and RELEASED in engines:
        groups = report["cap"] // after.value(keys.NUM_REPEAT)
        needs.append(f"A released engine also needs train_batch_size {groups} or more; it is unknown here.")
    return {
        **report,
        "question": "plan",
        "target": target,
        "changes": [change(inputs, key, value) for key, value in changes.items()],
        "restart": ["engine"] if changes else [],
        "advice": [*needs, *report["advice"]],
    }


def change(inputs: Inputs, key: str, value: Any) -> dict[str, Any]:
    """Return one change: from what to what, and where it is to be made."""
    if key.startswith("ajet.") and inputs.value(keys.SWARM_MODE) is False:
        where = f"{key}: {value} (YAML)"
    elif key in KWARGS:
        where = f"AgentJetJob({KWARGS[key]}={value})"
    elif key.startswith("ajet."):
        where = f"{key}: {value} (YAML, or job.config.{key} = {value})"
    else:
        where = f"{value} in the clients"
    return {"key": key, "from": inputs.value(key), "to": value, "source": inputs[key].source, "set": where}


def plan_text(report: dict[str, Any]) -> str:
    """Return a plan as text for people."""
    lines = [f"target {report['target']} running episodes: cap {report['cap']} = {report['formula']}"]
    for item in report["changes"]:
        before = "unknown" if item["from"] is None else item["from"]
        lines.append(f"set {item['key']}: {before} -> {item['to']}    {item['set']}")
    lines.append("restart the engine: it reads these when it starts" if report["restart"] else "nothing to change")
    return "\n".join([*lines, *(f"- {sentence}" for sentence in report["advice"])])
