"""Checks of client scripts: what AgentJetJob refuses, what a released one ignores, and configuration in two places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ajet.copilot.job_rules import LENGTHS
from ajet.default_config import kwarg_table
from ajet.utils.config_tree import ConfigTree, Origin, closest
from skillpack.config.hits import Hit, Values
from skillpack.config.job_call import JobCall
from skillpack.config.sources import Source

IDENTITY = ("ensure_new_experiment", "base_yaml_config", "experiment_dir", "project_name", "experiment_name")
"""Kwargs that name a run; they may stand beside a YAML file."""


def kwargs(source: Source) -> Iterator[Hit]:
    """The kwargs, as AgentJetJob checks them."""
    job = source.job
    if job is None:
        return
    for name, line in job.strange:
        guess = closest(name, kwarg_table())
        names = {
            "name": name,
            "maybe": f"; did you mean {guess}?" if guess else "",
            "advice": f"rename it to {guess}" if guess else "write job.config.ajet... = value after construction",
        }
        yield Hit("unknown-kwarg", (), names, line=line)
    if _sees_all(job):
        yield from _lengths(job)
        yield from _lora(job)
    missing = next((item for item in source.unknown if item.key == "ajet" and "not found" in item.reason), None)
    if missing is not None:
        yield Hit("base-yaml-missing", (), {"value": job.kwargs["base_yaml_config"].value}, line=missing.line)
    if Values(source).get("enable_swarm_mode") is False:
        yield Hit("not-a-swarm-job", ("ajet.enable_swarm_mode",), {}, line=job.line)


def _sees_all(job: JobCall) -> bool:
    """Tell whether every kwarg of the call is known to be there or not."""
    return all(item.key is not None for item in job.unknown)


def _given(job: JobCall, name: str) -> bool:
    """Tell whether a kwarg is passed, be its value known or not."""
    return name in job.kwargs or any(item.key == kwarg_table()[name]["key"] for item in job.unknown)


def _lengths(job: JobCall) -> Iterator[Hit]:
    given = [name for name in LENGTHS if _given(job, name)]
    missing = [name for name in LENGTHS if name not in given]
    if given and missing:
        line = next((job.kwargs[name].line for name in given if name in job.kwargs), job.line)
        yield Hit("lengths-incomplete", (), {"given": given, "missing": missing}, line=line)


def _lora(job: JobCall) -> Iterator[Hit]:
    rank = job.kwargs.get("lora_rank")
    if rank is None or not isinstance(rank.value, int) or rank.value <= 0:
        return
    missing = [name for name in ("lora_load_format", "layered_summon", "lr") if not _given(job, name)]
    if missing:
        yield Hit("lora-kwargs-incomplete", (), {"rank": rank.value, "missing": missing}, line=rank.line)


def ignored(source: Source) -> Iterator[Hit]:
    """What a released AgentJet does not heed."""
    for name, line in source.job.ignored if source.job else ():
        if name == "build_job_from_yaml":
            yield Hit("yaml-loaded-in-vain", (), {}, line=line)
        else:
            yield Hit("ignored-attribute", (), {"name": name, "key": kwarg_table()[name]["key"]}, line=line)


def writes(source: Source) -> Iterator[Hit]:
    """Writes after construction that a kwarg could do, or that undo one."""
    job = source.job
    if job is None:
        return
    kwarg_of = {row["key"]: name for name, row in kwarg_table().items()}
    for key, reading in job.writes:
        name = kwarg_of.get(key)
        if name is None:
            continue
        if name in job.kwargs:
            names = {"key": key, "name": name, "first_line": job.kwargs[name].line}
            yield Hit("write-over-kwarg", (), names, line=reading.line)
        else:
            yield Hit("write-has-kwarg", (), {"key": key, "name": name}, line=reading.line)


def two_places(source: Source) -> Iterator[Hit]:
    """Configuration in a hand-edited YAML file *and* in the script."""
    job, document = source.job, source.document
    if job is None or document is None:
        return
    defaults, below = ConfigTree(), ConfigTree()
    edited: dict[str, tuple[Any, Origin]] = {}
    for layer in source.layers[:-2]:
        below.merge(layer)
        for key, value, origin in layer.leaves():
            if origin is not None and origin.layer == "default":
                defaults.set(key, value, origin)
            elif origin is not None and key.startswith("ajet.") and value != defaults.get(key):
                edited[key] = (value, origin)
    script = {
        str(kwarg_table()[name]["key"]): (f"kwarg {name}", reading)
        for name, reading in job.kwargs.items()
        if name not in IDENTITY
    }
    script |= {key: ("attribute write", reading) for key, reading in job.writes if reading.value != {}}
    changing = {key: one for key, one in script.items() if one[1].value != below.get(key)}
    for key, (who, reading) in changing.items():
        if key in edited:
            theirs, origin = edited[key]
            names = {"key": key, "ours": reading.value, "who": who, "theirs": theirs, "where": origin.where}
            yield Hit("kwarg-over-yaml", (), names, line=reading.line)
    by_hand = [key for key in edited if key.removeprefix("ajet.") not in IDENTITY]
    if by_hand and changing:
        names = {"file": document.name, "yaml_keys": _some(by_hand), "script_keys": _some(list(changing))}
        yield Hit("two-places", (), names, line=job.line)


def _some(keys: list[str]) -> str:
    return ", ".join(keys[:4]) + (f" and {len(keys) - 4} more" if len(keys) > 4 else "")


SCRIPT_CHECKS = (kwargs, ignored, writes, two_places)
