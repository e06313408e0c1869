"""Will it fit? KV cache of the rollout engine and memory of a training step, before anything is booted."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from skillpack.capacity import inputs as keys
from skillpack.capacity.inputs import Inputs
from skillpack.capacity.kv_cache import GIB, KvCache, Serving, size_kv_cache
from skillpack.capacity.model_shape import ModelShape, known_models, read_model
from skillpack.capacity.parameters import assumption
from skillpack.capacity.train_memory import FITS, NO, UNCERTAIN, StepMemory, Training, largest_micro_batch, step_memory
from skillpack.script import BadInput

MODEL_PATH = "ajet.model.path"
LORA_RANK = "ajet.lora.lora_rank"
PARAM_OFFLOAD = "ajet.trainer_common.fsdp_config.param_offload"
OPTIMIZER_OFFLOAD = "ajet.trainer_common.fsdp_config.optimizer_offload"

ENGINE_RESERVE_GIB = 1.6
"""What a vLLM engine takes beside weights and cache (peak activation, CUDA graphs, NCCL).

Differences between the budget and weights plus cache in published start-ups run from 1.2 to 2.4 GiB.
"""


def fit_report(
    inputs: Inputs,
    *,
    model: str | None = None,
    gpu_memory_gib: float | None = None,
    available_kv_gib: float | None = None,
    kv_dtype: str = "auto",
    weight_bytes: float = 2.0,
    block_size: int = 16,
) -> dict[str, Any]:
    """Return the JSON document of ``capacity.py fit``; a verdict is ``unknown`` where an input is.

    ``available_kv_gib`` is what the engine's log calls the available KV cache memory; without it
    the memory is estimated from the GPU's. Raises BadInput if the model's shape is unknown.
    """
    shape = _shape(model or str(inputs.value(MODEL_PATH) or ""))
    assumed = [] if shape.known == keys.KNOWN else [_table_assumption(shape)]
    _check_heads(shape, inputs)
    serving = Serving(
        max_model_len=_needed(inputs, keys.MAX_MODEL_LEN),
        tensor_parallel=inputs.value(keys.TENSOR_PARALLEL) or 1,
        kv_dtype=kv_dtype,
        block_size=block_size,
    )
    utilization = _utilization(inputs)
    available = None if available_kv_gib is None else available_kv_gib * GIB
    if available is None:
        available = _available(shape, serving, gpu_memory_gib, utilization, weight_bytes)
        if available is not None:
            assumed.append(
                assumption(
                    "engine_reserve_gib",
                    ENGINE_RESERVE_GIB,
                    "the available KV cache memory in the engine's log; --available-kv-gib",
                )
            )
    cache = None if available is None else size_kv_cache(shape, serving, int(available))
    training = _training(inputs)
    memory = None if training is None else step_memory(shape, training)
    verdicts = {
        "kv_cache": "unknown" if cache is None else (FITS if cache.fits else NO),
        "training_step": "unknown"
        if memory is None or gpu_memory_gib is None
        else memory.verdict(gpu_memory_gib * GIB, utilization),
    }
    return {
        "question": "fit",
        "model": {"name": shape.name, "source": shape.source, "known": shape.known, "parameters": shape.params},
        "fits": _overall(verdicts),
        "verdicts": verdicts,
        "kv_cache": None if cache is None else _cache_json(cache, inputs, serving),
        "training_step": None if memory is None else _memory_json(memory),
        "largest_micro_batch_tokens": _micro_batch(shape, training, gpu_memory_gib),
        "assumptions": assumed,
        "advice": _advice(verdicts, cache, training, gpu_memory_gib, available_kv_gib),
    }


def with_kv_cache(
    inputs: Inputs,
    model: str | None,
    gpu_memory_gib: float | None,
    available_kv_gib: float | None,
) -> Inputs:
    """Return the inputs with the number of full-length requests that all KV caches hold, where it can be told."""
    if gpu_memory_gib is None and available_kv_gib is None:
        return inputs
    report = fit_report(inputs, model=model, gpu_memory_gib=gpu_memory_gib, available_kv_gib=available_kv_gib)
    cache = report["kv_cache"]
    if cache is None or cache["sequences"] is None:
        return inputs
    sure = available_kv_gib is not None and not report["assumptions"]
    source = (
        f"requests of max_model_len in {cache['available_gib']} GiB on each of {cache['engines']} engines,"
        f" {report['model']['source']}; shorter ones: more"
    )
    item = keys.Input(cache["sequences"], source, keys.KNOWN if sure else keys.ASSUMED)
    return Inputs({keys.KV_SEQUENCES: item}).over(inputs)


def _shape(model: str) -> ModelShape:
    hint = "--model PATH/TO/config.json, or a name such as Qwen/Qwen2.5-7B-Instruct"
    if not model:
        raise BadInput("no model is named", expected="a model whose shape is known", hint=hint)
    shape = read_model(model)
    if shape is None:
        raise BadInput(
            f"the shape of {model} is unknown",
            expected=f"its config.json, or one of these: {', '.join(known_models())}",
            hint="capacity.py fit --model PATH/TO/config.json",
        )
    return shape


def _check_heads(shape: ModelShape, inputs: Inputs) -> None:
    """Refuse a tensor_model_parallel_size that does not divide the attention heads, as vLLM does at its start."""
    parallel = inputs.value(keys.TENSOR_PARALLEL) or 1
    if shape.heads % parallel:
        fitting = [size for size in range(1, 17) if shape.heads % size == 0]
        raise BadInput(
            f"{keys.TENSOR_PARALLEL} is {parallel} ({inputs[keys.TENSOR_PARALLEL].source}),"
            f" and {shape.name} has {shape.heads} attention heads",
            expected=f"a number that divides the heads: {', '.join(map(str, fitting))}",
            hint=f"--set {keys.TENSOR_PARALLEL}={max(size for size in fitting if size <= parallel)}",
        )


def _table_assumption(shape: ModelShape) -> dict[str, Any]:
    return assumption("model shape", shape.source, "--model PATH/TO/config.json")


def _needed(inputs: Inputs, key: str) -> int:
    value = inputs.value(key)
    if value is None:
        raise BadInput(f"{key} is unknown", expected="a configuration FILE, or a --set", hint=f"--set {key}=18000")
    return int(value)


def _available(
    shape: ModelShape, serving: Serving, gpu_memory_gib: float | None, utilization: float | None, weight_bytes: float
) -> float | None:
    """Return an estimate of the memory for the cache on one rank; None if something it needs is unknown."""
    if gpu_memory_gib is None or utilization is None or shape.params is None:
        return None
    weights = weight_bytes * shape.params / serving.tensor_parallel
    return (gpu_memory_gib * utilization - ENGINE_RESERVE_GIB) * GIB - weights


def _training(inputs: Inputs) -> Training | None:
    gpus, nodes, tokens = (inputs.value(key) for key in (keys.N_GPUS_PER_NODE, keys.NNODES, keys.MAX_MODEL_LEN))
    if gpus is None or tokens is None:
        return None
    return Training(
        gpus=gpus * (nodes or 1),
        tokens=tokens,
        lora_rank=_lora_rank(inputs),
        param_offload=bool(inputs.value(PARAM_OFFLOAD)),
        optimizer_offload=bool(inputs.value(OPTIMIZER_OFFLOAD)),
    )


def _lora_rank(inputs: Inputs) -> int:
    rank = inputs.value(LORA_RANK) or 0
    if not isinstance(rank, int) or rank < 0:
        raise BadInput(f"{LORA_RANK} is {rank!r} ({inputs[LORA_RANK].source})", expected="a whole number, 0 for none")
    return rank


def _utilization(inputs: Inputs) -> float | None:
    share = inputs.value(keys.GPU_MEMORY_UTILIZATION)
    if share is not None and not (isinstance(share, int | float) and 0 < share <= 1):
        source = inputs[keys.GPU_MEMORY_UTILIZATION].source
        raise BadInput(f"{keys.GPU_MEMORY_UTILIZATION} is {share!r} ({source})", expected="a number above 0, 1 at most")
    return share


def _micro_batch(shape: ModelShape, training: Training | None, gpu_memory_gib: float | None) -> int | None:
    if training is None or gpu_memory_gib is None:
        return None
    return largest_micro_batch(
        shape, lambda tokens: replace(training, tokens=tokens), gpu_memory_gib * GIB, 8 * training.tokens
    )


def _overall(verdicts: dict[str, str]) -> str:
    """Return the worst verdict: one part that will not fit is enough, one that is unknown leaves it open."""
    for verdict in (NO, UNCERTAIN, "unknown"):
        if verdict in verdicts.values():
            return verdict
    return FITS


def _cache_json(cache: KvCache, inputs: Inputs, serving: Serving) -> dict[str, Any]:
    gpus, nodes = inputs.value(keys.N_GPUS_PER_NODE), inputs.value(keys.NNODES) or 1
    replicas = None if gpus is None else gpus * nodes // serving.tensor_parallel
    return {
        **asdict(cache),
        "concurrency": round(cache.concurrency, 2),
        "available_gib": round(cache.available_bytes / GIB, 2),
        "needed_gib": round(cache.needed_bytes / GIB, 2),
        "refusal": cache.refusal,
        "engines": replicas,
        "sequences": None if replicas is None else int(cache.concurrency * replicas),
    }


def _memory_json(memory: StepMemory) -> dict[str, Any]:
    def gib(part: Any) -> dict[str, float]:
        return {name: round(value / GIB, 2) for name, value in asdict(part).items()}

    return {
        "update_gib": gib(memory.update),
        "beside_rollout_gib": gib(memory.beside_rollout),
        "parts_gib": {name: gib(part) for name, part in memory.parts.items()},
        "host_gib": round(memory.host_bytes / GIB, 2),
    }


def _advice(
    verdicts: dict[str, str],
    cache: KvCache | None,
    training: Training | None,
    gpu_memory_gib: float | None,
    available_kv_gib: float | None,
) -> list[str]:
    advice = []
    if gpu_memory_gib is None:
        advice.append(
            "Give --gpu-memory-gib (the MiB of nvidia-smi --query-gpu=memory.total, divided by 1024):"
            " without it nothing can be told."
        )
    if cache is not None and not cache.fits:
        otherwise = "raise gpu_memory_utilization, or spread the model over more GPUs (tensor_model_parallel_size)."
        if cache.longest:
            advice.append(f"Set ajet.rollout.max_model_len to {cache.longest} or less, {otherwise}")
        else:
            advice.append(f"No length fits, the weights leave no room: {otherwise}")
    if verdicts["training_step"] in (NO, UNCERTAIN):
        lora = "" if training is not None and training.lora_rank else ", or LoRA (ajet.lora.lora_rank)"
        advice.append(
            "The update needs fewer tokens in a micro-batch (it holds max_model_len) or more GPUs"
            f"{lora}; the parts say which takes most."
        )
    if available_kv_gib is None and cache is not None:
        advice.append("After a first boot give --available-kv-gib from the engine's log: then the cache is exact.")
    return advice


def fit_text(report: dict[str, Any]) -> str:
    """Return a fit report as text for people."""
    model, cache, step = report["model"], report["kv_cache"], report["training_step"]
    size = "size unknown" if model["parameters"] is None else f"{model['parameters'] / 1e9:.2f} B parameters"
    lines = [f"{model['name']} ({size}): {report['fits']}", f"KV cache: {report['verdicts']['kv_cache']}"]
    if cache is not None:
        lines.append(
            f"  {cache['available_gib']} GiB hold {cache['num_blocks']} blocks of {cache['block_size']},"
            f" {cache['tokens']} tokens, {cache['concurrency']} requests of full length per engine"
        )
        lines += [f"  {cache['refusal']}"] if cache["refusal"] else []
    lines.append(f"training step: {report['verdicts']['training_step']}")
    if step is not None:
        update = step["update_gib"]
        lines.append(f"  peak {update['middle']} GiB a GPU (from {update['low']} to {update['high']})")
        lines += [f"    {name}: {part['middle']}" for name, part in step["parts_gib"].items()]
        lines.append(f"  host memory for what is offloaded: {step['host_gib']} GiB")
    lines += [f"assumed {item['name']} = {item['value']}: {item['replace_by']}" for item in report["assumptions"]]
    return "\n".join([*lines, *(f"- {text}" for text in report["advice"])])
