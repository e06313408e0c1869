"""Memory of a training step on one GPU, with a band: enough to say "will not fit" before a boot.

Formulas: mixed-precision FSDP keeps 4 bytes of weight, 4 of gradient and 8 of Adam state for a
trained parameter, divided by the GPUs (Rajbhandari et al., ZeRO, arXiv:1910.02054, section 3; verl
loads all of it for an update, whatever is offloaded in between); gradient checkpointing keeps one
hidden state of every layer and recomputes one layer (Chen et al., arXiv:1604.06174); the logits of
a micro-batch cost several times their own bytes through the loss. The factors that no source gives
are ranges, see ``BAND``; their middle and width are checked against published peaks in the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skillpack.capacity.kv_cache import GIB
from skillpack.capacity.model_shape import ModelShape

GRADIENT_BYTES = 4
ADAM_BYTES = 8
COMPUTE_BYTES = 2

FITS, UNCERTAIN, NO = "fits", "uncertain", "will not fit"


@dataclass(frozen=True)
class Range:
    """A quantity with its low, middle and high estimate (same unit)."""

    low: float
    middle: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> Range:
        """Return a range without width."""
        return cls(value, value, value)

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.middle + other.middle, self.high + other.high)

    def scaled(self, factor: float) -> Range:
        """Return every estimate times ``factor``."""
        return Range(self.low * factor, self.middle * factor, self.high * factor)


BAND = {
    "logit_bytes": Range(6, 10, 14),
    "layer_activation": Range(0.7, 1.0, 1.5),
    "resident_gib": Range(1.0, 2.0, 5.0),
    "sleeping_engine_gib": Range(0.5, 1.5, 3.0),
}
"""What varies between implementations.

logit_bytes: bytes a logit costs through loss and backward (2 in bf16, plus fp32 copy and gradient);
layer_activation: factor on the tensors of the one layer that is recomputed; resident_gib: CUDA
context, NCCL buffers, allocator fragmentation; sleeping_engine_gib: what a rollout engine on the
same GPU keeps while it sleeps.
"""


@dataclass(frozen=True)
class Training:
    """How a model is trained. ``tokens`` is the size of a micro-batch on one GPU."""

    gpus: int
    tokens: int
    weight_bytes: int = 4
    lora_rank: int = 0
    param_offload: bool = False
    optimizer_offload: bool = False
    colocated: bool = True


@dataclass(frozen=True)
class StepMemory:
    """Bytes on one GPU, by part. ``update`` is the peak of the update, ``beside_rollout`` what stays then."""

    parts: dict[str, Range]
    beside_rollout: Range
    host_bytes: float

    @property
    def update(self) -> Range:
        """The peak while the actor is updated."""
        total = Range.exactly(0)
        for part in self.parts.values():
            total = total + part
        return total

    def verdict(self, gpu_bytes: float, gpu_memory_utilization: float | None = None) -> str:
        """Return whether both phases fit on a GPU; ``uncertain`` where the band straddles its memory."""
        phases = [self.update]
        if gpu_memory_utilization is not None:
            phases.append(self.beside_rollout + Range.exactly(gpu_memory_utilization * gpu_bytes))
        if any(phase.low > gpu_bytes for phase in phases):
            return NO
        return FITS if all(phase.high <= gpu_bytes for phase in phases) else UNCERTAIN


def step_memory(shape: ModelShape, training: Training) -> StepMemory | None:
    """Return the memory of a training step; None if the model's parameters, vocabulary or MLP are unknown."""
    if shape.params is None or shape.vocab is None or shape.intermediate is None:
        return None
    trained = lora_parameters(shape, training.lora_rank) if training.lora_rank else shape.params
    weights = training.weight_bytes * shape.params / training.gpus
    optimiser = ADAM_BYTES * trained / training.gpus
    adapter = 4 * trained / training.gpus if training.lora_rank else 0.0
    tokens = training.tokens
    one_layer = COMPUTE_BYTES * tokens * (10 * shape.hidden + 4 * shape.intermediate)
    parts = {
        "weights": Range.exactly(weights + adapter),
        "gradients": Range.exactly(GRADIENT_BYTES * trained / training.gpus),
        "optimizer": Range.exactly(optimiser),
        "gathered_weights": Range.exactly(_gathered(shape) if training.gpus > 1 else 0.0),
        "checkpoints": Range.exactly(COMPUTE_BYTES * tokens * shape.hidden * shape.layer_count),
        "layer_activations": BAND["layer_activation"].scaled(one_layer),
        "logits": BAND["logit_bytes"].scaled(tokens * shape.vocab),
        "resident": BAND["resident_gib"].scaled(GIB),
    }
    if training.colocated:
        parts["sleeping_engine"] = BAND["sleeping_engine_gib"].scaled(GIB)
    kept = (0.0 if training.param_offload else weights) + (0.0 if training.optimizer_offload else optimiser)
    offloaded = (weights if training.param_offload else 0.0) + (optimiser if training.optimizer_offload else 0.0)
    return StepMemory(
        parts=parts,
        beside_rollout=BAND["resident_gib"].scaled(GIB / 2) + Range.exactly(kept),
        host_bytes=offloaded * training.gpus,
    )


def largest_micro_batch(
    shape: ModelShape, training: Callable[[int], Training], gpu_bytes: float, limit: int
) -> int | None:
    """Return the most tokens (up to ``limit``) whose middle estimate fits; None if even one does not."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        memory = step_memory(shape, training(middle))
        if memory is None:
            return None
        low, high = (middle, high) if memory.update.middle <= gpu_bytes else (low, middle - 1)
    return low or None


def lora_parameters(shape: ModelShape, rank: int) -> int:
    """Return the parameters of adapters of ``rank`` on all linear layers (query, key, value, output and MLP)."""
    assert shape.intermediate is not None
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    attention = 2 * (shape.hidden + queries) + 2 * (shape.hidden + keys)
    mlp = 3 * (shape.hidden + shape.intermediate)
    return rank * shape.layer_count * (attention + mlp * max(1, shape.experts))


def _gathered(shape: ModelShape) -> float:
    """Return the bytes of the larger FSDP unit: embeddings and head, or a layer and the one fetched ahead."""
    assert shape.vocab is not None
    assert shape.params is not None
    embeddings = shape.vocab * shape.hidden * (1 if shape.tied else 2)
    layers = 2 * max(0, shape.params - embeddings) / shape.layer_count
    return COMPUTE_BYTES * max(embeddings, layers)
