"""Checks across keys: what the engine refuses, and what runs otherwise than was meant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ajet.copilot.job_rules import LORA_MIN_LR
from ajet.default_config import DUMMY_TASKS, verl_mapping
from ajet.utils.config_tree import ConfigTree, plain
from skillpack.config.hits import Hit, Values
from skillpack.config.keys import VERL_SECTIONS
from skillpack.config.sources import Source

HAND_WRITTEN_SECTIONS = 8
"""Of verl's 12 top-level sections, how many a file written by hand has at most."""

PLACEHOLDERS = {
    "model.path": "/path/to/model/such/as/Qwen/Qwen2___5-14B-Instruct",
    "task_reader.jsonl_dataset_file.training.file_path": "/path/to/training/data.jsonl",
}
"""Values of the default file that nobody can mean, by key below ``ajet.``."""


def lengths(source: Source) -> Iterator[Hit]:
    """The rules that AgentJetJob checks on token lengths."""
    values = Values(source)
    prompt, response = values.number("data.max_prompt_length"), values.number("data.max_response_length")
    window, turn = values.number("rollout.max_model_len"), values.number("rollout.max_response_length_in_one_turn")
    if prompt is not None and response is not None and window is not None and prompt + response > window:
        keys: tuple[str, ...] = (
            "ajet.rollout.max_model_len",
            "ajet.data.max_prompt_length",
            "ajet.data.max_response_length",
        )
        names = {"prompt": prompt, "response": response, "window": window, "total": prompt + response}
        yield Hit("window-too-small", keys, names)
    if turn is not None and response is not None and turn > response:
        keys = ("ajet.rollout.max_response_length_in_one_turn", "ajet.data.max_response_length")
        yield Hit("turn-too-long", keys, {"turn": turn, "response": response})


def batch(source: Source) -> Iterator[Hit]:
    """Batch, group and hardware."""
    values = Values(source)
    size, repeat = values.whole("data.train_batch_size"), values.whole("rollout.num_repeat")
    per_node, nodes = values.whole("trainer_common.n_gpus_per_node"), values.whole("trainer_common.nnodes")
    size_keys = ("ajet.data.train_batch_size", "ajet.rollout.num_repeat")
    if size and repeat and per_node and nodes and size * repeat % (per_node * nodes):
        gpus = per_node * nodes
        step = gpus // math.gcd(gpus, repeat)
        lower = size // step * step
        names = {
            "batch": size,
            "repeat": repeat,
            "total": size * repeat,
            "gpus": gpus,
            "step": step,
            "choices": _choices(lower, lower + step),
        }
        keys: tuple[str, ...] = (*size_keys, "ajet.trainer_common.n_gpus_per_node", "ajet.trainer_common.nnodes")
        yield Hit("batch-not-divisible", keys, names)
    parallel = values.whole("rollout.tensor_model_parallel_size")
    if parallel and per_node and per_node % parallel:
        keys = ("ajet.rollout.tensor_model_parallel_size", "ajet.trainer_common.n_gpus_per_node")
        yield Hit("tensor-parallel-not-divisor", keys, {"parallel": parallel, "gpus": per_node})
    if not values.swarm:
        return
    if size and size > DUMMY_TASKS:
        yield Hit("swarm-batch-too-large", size_keys[:1], {"batch": size})
    limit = values.whole("swarm_mode_sample_collection_max_cached_episodes")
    if size and repeat and limit and size * repeat > limit:
        keys = ("ajet.swarm_mode_sample_collection_max_cached_episodes", *size_keys)
        yield Hit("batch-above-cache", keys, {"total": size * repeat, "limit": limit})
    steps, epochs = values.whole("trainer_common.total_training_steps"), values.whole("trainer_common.total_epochs")
    if size and steps and epochs and size <= DUMMY_TASKS:
        per_epoch = DUMMY_TASKS // size
        if steps > per_epoch * epochs:
            names = {"steps": steps, "possible": per_epoch * epochs, "epochs": math.ceil(steps / per_epoch)}
            yield Hit("steps-beyond-placeholders", ("ajet.trainer_common.total_training_steps",), names)


def workers(source: Source) -> Iterator[Hit]:
    """Worker slots and the threads behind them."""
    values = Values(source)
    slots, repeat = values.whole("rollout.max_env_worker"), values.whole("rollout.num_repeat")
    size = values.whole("data.train_batch_size")
    key = "ajet.rollout.max_env_worker"
    if not values.swarm or not slots:
        return
    if repeat and slots % repeat:
        cap = math.ceil(slots / repeat) * repeat
        names = {
            "workers": slots,
            "repeat": repeat,
            "cap": cap,
            "idle": cap - slots,
            "choices": _choices(cap - repeat, cap),
        }
        yield Hit("workers-not-divisible", (key, "ajet.rollout.num_repeat"), names)
    if repeat and size and size * repeat < slots:
        names = {
            "batch": size,
            "repeat": repeat,
            "total": size * repeat,
            "workers": slots,
            "needed": -(-slots // repeat),
        }
        yield Hit("batch-below-workers", (key, "ajet.data.train_batch_size"), names)
    for name, rule in (
        ("max_inference_tracker_threads", "too-few-tracker-threads"),
        ("max_fastapi_threads", "too-few-http-threads"),
    ):
        threads = values.whole(f"interchange_server.{name}")
        if threads and threads < slots:
            yield Hit(rule, (f"ajet.interchange_server.{name}", key), {"threads": threads, "workers": slots})


def lora(source: Source) -> Iterator[Hit]:
    """What LoRA needs; by kwargs, AgentJetJob checks it too (rule_script)."""
    values = Values(source)
    rank, rate = values.whole("lora.lora_rank"), values.number("trainer_common.optim.lr")
    if not rank:
        return
    form, layered = values.get("lora.load_format"), values.get("lora.layered_summon")
    if source.job is not None and "lora_rank" in source.job.kwargs:  # what is missing beside it, rule_script tells
        form = form if "lora_load_format" in source.job.kwargs else None
        layered = layered if "layered_summon" in source.job.kwargs else None
        rate = rate if "lr" in source.job.kwargs else None
    if form is not None and form != "safetensors":
        keys = ("ajet.lora.load_format", "ajet.lora.lora_rank")
        yield Hit("lora-needs-safetensors", keys, {"rank": rank, "value": form})
    if layered is not None and not layered:
        keys = ("ajet.lora.layered_summon", "ajet.lora.lora_rank")
        yield Hit("lora-needs-layered-summon", keys, {"rank": rank, "value": layered})
    if rate is not None and rate <= LORA_MIN_LR:
        keys = ("ajet.trainer_common.optim.lr", "ajet.lora.lora_rank")
        yield Hit("lora-low-lr", keys, {"rank": rank, "lr": rate})


def _choices(below: int, above: int) -> str:
    """Return the multiples beside a number, as words: both, or the one above where the other is 0."""
    return f"{below} or {above}" if below else str(above)


def learning(source: Source) -> Iterator[Hit]:
    """What leaves a group of episodes without anything to compare."""
    values = Values(source)
    temperature, repeat = values.number("rollout.temperature"), values.whole("rollout.num_repeat")
    if temperature == 0:
        yield Hit("greedy-rollout", ("ajet.rollout.temperature",), {})
    estimator = "ajet.trainer_common.algorithm.adv_estimator"
    if repeat == 1 and values.get(estimator.removeprefix("ajet.")) == "grpo":
        yield Hit("group-of-one", ("ajet.rollout.num_repeat", estimator), {})


def engine(source: Source) -> Iterator[Hit]:
    """What the trainer asserts when it starts."""
    values = Values(source)
    temperature = values.number("rollout.temperature")
    if values.get("rollout.val_kwargs.do_sample") is True and temperature is not None and temperature <= 0:
        keys = ("ajet.rollout.val_kwargs.do_sample", "ajet.rollout.temperature")
        yield Hit("greedy-validation-sampling", keys, {"temperature": temperature})
    for name in ("val_before_train", "val_only"):
        if values.swarm and values.get(f"trainer_common.{name}") is True:
            key = f"ajet.trainer_common.{name}"
            yield Hit("swarm-validation", (key,), {"key": key})
    algorithm = values.get("trainer_common.algorithm.adv_estimator")
    if values.get("trainer_common.advantage_estimation_episode_level") is True and algorithm not in ("grpo", None):
        keys = ("ajet.trainer_common.advantage_estimation_episode_level", "ajet.trainer_common.algorithm.adv_estimator")
        yield Hit("episode-level-needs-grpo", keys, {"algorithm": algorithm})
    gamma = values.number("rollout.gamma")
    if gamma is not None and gamma != 1:
        yield Hit("gamma-not-one", ("ajet.rollout.gamma",), {"value": gamma})
    if values.get("backbone") == "trinity" and (source.job is not None or values.swarm):
        yield Hit("trinity-job", ("ajet.backbone",), {})


def server(source: Source) -> Iterator[Hit]:
    """The interchange server."""
    values = Values(source)
    nodes, method = values.whole("trainer_common.nnodes"), values.get("interchange_server.interchange_method")
    on = values.get("enable_interchange_server")
    if nodes and nodes > 1 and method == "ipc" and on:
        keys = ("ajet.interchange_server.interchange_method", "ajet.trainer_common.nnodes")
        yield Hit("ipc-across-nodes", keys, {"nodes": nodes})
    processes = values.whole("interchange_server.num_fastapi_process")
    if values.swarm and processes and processes > 1:
        yield Hit("several-http-processes", ("ajet.interchange_server.num_fastapi_process",), {"value": processes})
    if values.swarm and on is False:
        yield Hit("swarm-without-server", ("ajet.enable_interchange_server", "ajet.enable_swarm_mode"), {})
    flag = "ajet.interchange_server.already_started"
    if source.is_users(flag) and source.config.get(flag) is True:
        yield Hit("started-flag", (flag,), {})


def names_and_paths(source: Source) -> Iterator[Hit]:
    """Names, folders and files."""
    values = Values(source)
    name, folder = values.text("experiment_name"), values.text("experiment_dir")
    unnamed = name == "read_yaml_name" or (name is None and source.unknown_reason("ajet.experiment_name") is None)
    if values.swarm and unnamed:
        yield Hit("unnamed-swarm-experiment", ("ajet.experiment_name",), {"value": name})
    if name and folder and folder != "auto" and name in folder and PurePosixPath(folder).name != name:
        result = PurePosixPath(folder).parent / name
        keys = ("ajet.experiment_dir", "ajet.experiment_name")
        yield Hit("name-inside-folder", keys, {"folder": folder, "name": name, "result": result})
    for part in ("val", "train"):
        key = f"trainer_common.{part}_print_to_markdown_file_path"
        path = values.text(key)
        if path and "/" not in path:
            yield Hit("bare-print-path", (f"ajet.{key}",), {"key": f"ajet.{key}", "value": path})
    model = values.text("model.path")
    for key, placeholder in PLACEHOLDERS.items():
        read = not key.startswith("task_reader.jsonl") or values.get("task_reader.type") == "jsonl_dataset_file"
        if values.get(key) == placeholder and read:
            yield Hit("placeholder-value", (f"ajet.{key}",), {"key": f"ajet.{key}", "value": placeholder})
    if (
        not values.swarm
        and model
        and model.count("/") > 2
        and model != PLACEHOLDERS["model.path"]
        and not Path(model).exists()
    ):
        yield Hit("model-not-here", ("ajet.model.path",), {"value": model})
    logger = values.get("trainer_common.logger")
    if isinstance(logger, list) and "swanlab" in logger:
        yield Hit("unchecked-swanlab-key", ("ajet.trainer_common.logger",), {})
    secret = "ajet.task_reader.data_generation.deduplication_filter.params.api_key"
    if source.config.get(secret):
        yield Hit("key-in-file", (secret,), {"key": secret})


def verl_keys(source: Source) -> Iterator[Hit]:
    """verl's own keys in the user's file that AgentJet sets from its own tree."""
    if len(VERL_SECTIONS.intersection(source.tree)) > HAND_WRITTEN_SECTIONS:
        return  # a dump of a released AgentJetJob: it has all of verl's defaults, which nobody meant to set
    for key, targets in verl_mapping().items():
        ours = source.tree.get(key)
        if ours is None and source.unknown_reason(key) is not None:
            continue
        for target in targets:
            theirs = source.tree.get(target)
            if theirs is None:
                continue
            if isinstance(theirs, ConfigTree) and isinstance(ours, ConfigTree):
                kept = ours.flat()
                lost = [name for name, value in theirs.flat().items() if name not in kept or kept[name] != value]
                if lost:
                    yield Hit("verl-section-replaced", (target,), {"key": target, "source": key, "lost": lost})
            elif plain(theirs) != plain(ours):
                names = {"key": target, "value": plain(theirs), "source": key, "effective": plain(ours)}
                yield Hit("verl-key-overwritten", (target,), names)


CHECKS = (lengths, batch, workers, learning, lora, engine, server, names_and_paths, verl_keys)
