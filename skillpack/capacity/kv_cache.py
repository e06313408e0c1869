"""How many tokens and sequences a vLLM engine's KV cache holds, by vLLM's own rules.

Rules of ``vllm/v1/kv_cache_interface.py`` and ``vllm/v1/core/kv_cache_utils.py`` at vLLM commit
001cabc1be16: page sizes by kind of layer, largest use of one request, grouping of layers, block
count, concurrency, and the refusal to start. All figures are those of one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from skillpack.capacity.model_shape import CHUNKED, FULL, LINEAR, MLA, SLIDING, ModelShape
from skillpack.script import BadInput

GIB = 1 << 30

DTYPE_BYTES = {
    "auto": 2,
    "bfloat16": 2,
    "float16": 2,
    "float32": 4,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_ds_mla": 1,
    "int8_per_token_head": 1,
    "fp8_per_token_head": 1,
    "nvfp4": 1,
}
"""Bytes of one stored number by ``kv_cache_dtype``; nvfp4 packs two, see ``_head_bytes``."""

SCALE_BYTES = 4
DS_MLA_TOKEN_BYTES = 656
GROUP_RATIO = 1.5
"""Layer counts of two kinds nearer than this share the larger group size."""

LINEAR_BLOCK_MULTIPLE = 16
"""An attention block that was raised to hold a linear layer's state is a multiple of this."""


@dataclass(frozen=True)
class Serving:
    """How an engine serves. ``mamba_cache_mode`` is vLLM's: align (prefix caching), none or all."""

    max_model_len: int
    tensor_parallel: int = 1
    kv_dtype: str = "auto"
    block_size: int = 16
    max_num_batched_tokens: int = 8192
    mamba_cache_mode: str = "align"
    speculative_blocks: int = 0
    hybrid_manager: bool = True


@dataclass(frozen=True)
class LayerSpec:
    """One layer's cache: bytes of a page, tokens in it, and what bounds the pages of one request."""

    kind: str
    page_bytes: int
    block: int
    window: int = 0

    def pages(self, serving: Serving, length: int) -> int:
        """Return the most pages that one request of ``length`` tokens uses."""
        if self.kind == SLIDING:
            return _ceil(min(self.window - 1 + serving.max_num_batched_tokens, length), self.block) + 1
        if self.kind == CHUNKED:
            return _ceil(min(self.window + serving.max_num_batched_tokens, length), self.block)
        if self.kind == LINEAR and serving.mamba_cache_mode != "all":
            return (2 if serving.mamba_cache_mode == "align" else 1) + serving.speculative_blocks
        return _ceil(length, self.block)


@dataclass(frozen=True)
class KvCache:
    """What a cache of a given size holds.

    ``tokens`` is what newer engines print, ``tokens_by_blocks`` what those of the 0.11 era did; they
    differ in models with several kinds of layers. ``concurrency`` counts requests of max_model_len
    tokens. ``needed_bytes`` is what one such request needs; ``longest`` the longest that fits.
    """

    num_blocks: int
    block_size: int
    groups: int
    padding_layers: int
    concurrency: float
    tokens: int
    tokens_by_blocks: int
    needed_bytes: int
    available_bytes: int
    longest: int

    @property
    def fits(self) -> bool:
        """Whether the engine starts: one request of max_model_len tokens fits."""
        return 0 < self.needed_bytes <= self.available_bytes

    @property
    def refusal(self) -> str | None:
        """Why the engine refuses to start, in the figures that it would name; None if it starts."""
        if self.fits:
            return None
        if self.available_bytes <= 0:
            return "no memory is left for KV cache blocks: the engine refuses to start"
        return (
            f"one request of max_model_len needs {self.needed_bytes / GIB:.2f} GiB of KV cache and"
            f" {self.available_bytes / GIB:.2f} GiB are available: the engine refuses to start;"
            f" the longest max_model_len that fits is {self.longest}"
        )


def size_kv_cache(shape: ModelShape, serving: Serving, available_bytes: int) -> KvCache:
    """Return what ``available_bytes`` of cache on each rank hold.

    Raises BadInput if the pages of the layer kinds cannot be made equal, as vLLM does.
    """
    specs = layer_specs(shape, serving)
    groups = _groups(specs)
    size = max(layers for _, layers in groups)
    page = max(spec.page_bytes for spec, _ in groups)
    num_blocks = max(available_bytes, 0) // page // size

    def blocks_of(length: int) -> int:
        return sum(spec.pages(serving, length) for spec, _ in groups)

    concurrency = num_blocks / blocks_of(serving.max_model_len)
    smallest = min(spec.block for spec, _ in groups)
    return KvCache(
        num_blocks=num_blocks,
        block_size=smallest,
        groups=len(groups),
        padding_layers=len(groups) * size - sum(specs.values()),
        concurrency=concurrency,
        tokens=int(concurrency * serving.max_model_len),
        tokens_by_blocks=num_blocks // len(groups) * smallest,
        needed_bytes=size * page * blocks_of(serving.max_model_len),
        available_bytes=available_bytes,
        longest=_longest(serving.max_model_len, lambda length: size * page * blocks_of(length) <= available_bytes),
    )


def layer_specs(shape: ModelShape, serving: Serving) -> dict[LayerSpec, int]:
    """Return the model's layers by their cache on one rank, with equal page sizes, and how many of each."""
    attention = [kind for kind in shape.layers if kind != LINEAR]
    block = serving.block_size
    state = 0
    if shape.linear is not None and LINEAR in shape.layers:
        state = shape.linear.page_bytes(serving.tensor_parallel, 2)
        if attention:
            token = _page_bytes(shape, serving, attention[0], 1)
            block = max(block, _ceil(state, token * LINEAR_BLOCK_MULTIPLE) * LINEAR_BLOCK_MULTIPLE)
            state = max(state, token * block)
    elif LINEAR in shape.layers:
        raise BadInput(f"{shape.name} has linear attention, and the sizes of its heads are unknown")
    specs: dict[LayerSpec, int] = {}
    uniform = not serving.hybrid_manager and FULL in shape.layers
    for kind, count in shape.layers.items():
        if kind == LINEAR:
            spec = LayerSpec(LINEAR, state, block if serving.mamba_cache_mode != "none" else serving.max_model_len)
        else:
            window = {SLIDING: shape.window, CHUNKED: shape.chunk}.get(kind) or 0
            cached_as = FULL if uniform and kind in (SLIDING, CHUNKED) else kind
            window = 0 if cached_as == FULL else window
            spec = LayerSpec(cached_as, _page_bytes(shape, serving, kind, block), block, window)
        specs[spec] = specs.get(spec, 0) + count
    return _equal_pages(specs)


def _page_bytes(shape: ModelShape, serving: Serving, kind: str, block: int) -> int:
    number = DTYPE_BYTES[serving.kv_dtype]
    if kind == MLA:
        width = shape.kv_lora_rank + shape.qk_rope_head_dim
        return block * (DS_MLA_TOKEN_BYTES if serving.kv_dtype == "fp8_ds_mla" else width * number)
    heads = max(1, shape.kv_heads // serving.tensor_parallel)
    scales = 2 * block * heads * SCALE_BYTES if serving.kv_dtype.endswith("per_token_head") else 0
    return 2 * block * heads * _head_bytes(shape.head_dim, serving.kv_dtype) + scales


def _head_bytes(head_dim: int, kv_dtype: str) -> int:
    """Return the bytes of one head's key or value: nvfp4 packs two numbers and adds a scale for sixteen."""
    if kv_dtype == "nvfp4":
        return head_dim // 2 + head_dim // 16
    return head_dim * DTYPE_BYTES[kv_dtype]


def _equal_pages(specs: Mapping[LayerSpec, int]) -> dict[LayerSpec, int]:
    """Raise the block of layers with smaller pages until all pages are equal."""
    largest = max(spec.page_bytes for spec in specs)
    equal: dict[LayerSpec, int] = {}
    for spec, count in specs.items():
        if largest % spec.page_bytes:
            raise BadInput(
                f"pages of {spec.page_bytes} bytes cannot be made {largest}",
                expected="page sizes that divide the largest: vLLM refuses this model too",
            )
        ratio = largest // spec.page_bytes
        equal[replace(spec, page_bytes=largest, block=spec.block * ratio)] = count
    return equal


def _groups(specs: Mapping[LayerSpec, int]) -> list[tuple[LayerSpec, int]]:
    """Return vLLM's cache groups as (layer, layers in the group); short groups are padded by the caller."""
    fewest, most = min(specs.values()), max(specs.values())
    size = most if most < fewest * GROUP_RATIO else fewest
    groups = []
    for spec, count in specs.items():
        wanted = _ceil(count, size)
        groups += [(spec, len(range(index, count, wanted))) for index in range(wanted)]
    return groups


def _longest(limit: int, fits: Callable[[int], bool]) -> int:
    """Return the largest length up to ``limit`` that fits, 0 if not even one token does."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
