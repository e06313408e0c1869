"""The first question: what is the cap on Running Episodes, and which limit binds?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from skillpack.capacity import inputs as keys
from skillpack.capacity.advice import advise
from skillpack.capacity.inputs import Inputs, flag_of
from skillpack.capacity.limits import (
    CLASSIC,
    DOCUMENTED,
    FORMULA,
    LLM_CALLS,
    ceilings,
    documented_cap,
    engines_of,
    limits_of,
)
from skillpack.script import BadInput


def cap_report(inputs: Inputs, engine: str | None = None) -> dict[str, Any]:
    """Return the JSON document of ``capacity.py cap``.

    ``engine`` restricts the report to one kind of engine. Raises BadInput if max_env_worker or
    num_repeat is unknown: without them there is no cap to tell.
    """
    workers, repeat = _required(inputs, keys.MAX_ENV_WORKER), _required(inputs, keys.NUM_REPEAT)
    engines = engines_of(inputs, engine)
    limits = limits_of(inputs, engines)
    if engines == (CLASSIC,):
        batch = _required(inputs, keys.TRAIN_BATCH_SIZE)
        cap, rule = min(workers, batch * repeat), FORMULA[CLASSIC]
        formula = f"{rule} = min({workers}, {batch} * {repeat}) = {cap}"
    else:
        cap, rule = documented_cap(workers, repeat), FORMULA[DOCUMENTED]
        formula = f"{rule} = ceil({workers} / {repeat}) * {repeat} = {cap}"
    return {
        "question": "cap",
        "cap": cap,
        "formula": formula,
        "divisible": workers % repeat == 0,
        "inputs": shown_inputs(inputs),
        "ceilings": [asdict(ceiling) for ceiling in ceilings(limits)],
        "limits": [limit.as_json() for limit in limits],
        "advice": advise(inputs, limits, engines),
    }


SHOWN = (keys.MAX_ENV_WORKER, keys.NUM_REPEAT, keys.TRAIN_BATCH_SIZE)


def shown_inputs(inputs: Inputs) -> dict[str, Any]:
    """Return the inputs of the cap by YAML key, each with its source and how well it is known."""
    return {key: asdict(inputs[key]) for key in SHOWN}


def _required(inputs: Inputs, key: str) -> int:
    value = inputs.value(key)
    if value is None:
        flag = next(flag_of(name) for name, flag_key in keys.FLAGS.items() if flag_key == key)
        raise BadInput(
            f"{key} is unknown" + ("" if inputs[key] is keys.NOT_GIVEN else f": {inputs[key].source}"),
            expected=f"{flag} N, or a file that sets it",
            hint="capacity.py cap --max-env-worker 128 --num-repeat 8, or capacity.py cap job.yaml",
        )
    return int(value)


def cap_text(report: dict[str, Any]) -> str:
    """Return a cap report as text for people."""
    lines = [f"cap {report['cap']} = {report['formula']}", *ceiling_lines(report), "", *limit_lines(report)]
    return "\n".join([*lines, "", *(f"- {sentence}" for sentence in report["advice"])])


def ceiling_lines(report: dict[str, Any]) -> list[str]:
    """Return a line for each kind of engine: how much it allows, and what binds."""
    lines = []
    for ceiling in report["ceilings"]:
        if ceiling["value"] is None or (ceiling["caps"] == LLM_CALLS and not ceiling["binding"]):
            continue
        what = ceiling["caps"].replace("_", " ")
        bound = f"{'' if ceiling['exact'] else 'at most '}{ceiling['value']} {what}"
        unknown = f"; not known: {', '.join(ceiling['unknown'])}" if ceiling["unknown"] else ""
        lines.append(f"{ceiling['engine']} engine: {bound}, bound by {', '.join(ceiling['binding'])}{unknown}")
    return lines


def limit_lines(report: dict[str, Any]) -> list[str]:
    """Return the table of limits, a line each."""
    lines = ["limit                      value    caps              binds on    from"]
    for limit in report["limits"]:
        value = "unknown" if limit["value"] is None else str(limit["value"])
        binds = ", ".join(limit["binds_on"]) or ("?" if limit["value"] is None else "-")
        lines.append(f"{limit['name']:<26} {value:<8} {limit['caps']:<17} {binds:<11} {limit['source']}")
    return lines
