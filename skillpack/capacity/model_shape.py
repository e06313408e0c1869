"""The shape of a model: what its KV cache and its training memory are computed from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from skillpack.capacity.inputs import ASSUMED, KNOWN
from skillpack.script import BadInput

KNOWN_MODELS = Path(__file__).with_name("model_shapes.json")

FULL, SLIDING, CHUNKED, MLA, LINEAR = "full", "sliding", "chunked", "mla", "linear"

HF_LAYER_TYPES = {
    "full_attention": FULL,
    "attention": FULL,
    "sliding_attention": SLIDING,
    "chunked_attention": CHUNKED,
    "linear_attention": LINEAR,
}
"""Names in the ``layer_types`` list of a config.json."""


@dataclass(frozen=True)
class LinearAttention:
    """Heads of gated-delta layers, whose state does not grow with the sequence (Qwen3-Next and its kin)."""

    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int
    state_bytes: int

    def page_bytes(self, tensor_parallel: int, dtype_bytes: int) -> int:
        """Return the bytes of one layer's state on one rank: convolution window and recurrent state."""
        channels = 2 * self.key_heads * self.key_head_dim + self.value_heads * self.value_head_dim
        convolution = channels // tensor_parallel * (self.conv_kernel - 1) * dtype_bytes
        state = self.value_heads // tensor_parallel * self.value_head_dim * self.key_head_dim * self.state_bytes
        return convolution + state


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a decoder. ``layers`` counts its layers by kind; ``params`` is None if it cannot be told.

    ``known`` is ``known`` if a config.json was read and ``assumed`` if the shape is from the table
    of models that the pack ships.
    """

    name: str
    layers: Mapping[str, int]
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    vocab: int | None
    intermediate: int | None
    tied: bool
    params: int | None
    kv_lora_rank: int = 0
    qk_rope_head_dim: int = 0
    window: int | None = None
    chunk: int | None = None
    linear: LinearAttention | None = None
    source: str = ""
    known: str = KNOWN
    experts: int = 0

    @property
    def layer_count(self) -> int:
        """How many layers of all kinds."""
        return sum(self.layers.values())


def read_model(name: str) -> ModelShape | None:
    """Return the shape of a model: a config.json, a folder that holds one, or a name in the table.

    Returns None for a name that is neither. Raises BadInput if a file is there but is not a model's
    configuration.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        path = path / "config.json"
    if path.is_file():
        return _read_config(path)
    if name.endswith(".json"):
        raise BadInput(f"{name} does not exist", expected="the config.json of a model")
    table = _table()
    entry = table.get(name.lower()) or table.get(name.lower().rsplit("/", 1)[-1])
    return None if entry is None else _from_config(entry, name, f"table of models, {name}", ASSUMED)


def known_models() -> list[str]:
    """Return the short names of the models whose shapes the pack ships."""
    return list(json.loads(KNOWN_MODELS.read_text(encoding="utf-8"))["models"])


@cache
def _table() -> dict[str, dict[str, Any]]:
    document = json.loads(KNOWN_MODELS.read_text(encoding="utf-8"))
    found = {}
    for shape, entry in document["models"].items():
        for name in (shape, *entry["names"]):
            found[name.lower()] = entry
            found[name.lower().rsplit("/", 1)[-1]] = entry
    return found


def _read_config(path: Path) -> ModelShape:
    hint = "capacity.py fit --model PATH/TO/config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise BadInput(f"{path} cannot be read: {error}", expected="the config.json of a model", hint=hint) from None
    if not isinstance(config, dict):
        raise BadInput(f"{path} is not an object", expected="the config.json of a model", hint=hint)
    try:
        return _from_config(config, str(path), str(path), KNOWN)
    except KeyError as error:
        raise BadInput(f"{path} has no {error.args[0]}", expected="the config.json of a decoder", hint=hint) from None
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise BadInput(f"{path}: {error}", expected="the config.json of a decoder", hint=hint) from None


def _from_config(config: Mapping[str, Any], name: str, source: str, known: str) -> ModelShape:
    """Return the shape that a Hugging Face configuration describes. Raises KeyError, TypeError or ValueError."""
    text = {**config, **(config.get("thinker_config") or {})}
    text = {**text, **(text.get("text_config") or {})}
    for size in ("num_attention_heads", "hidden_size", "num_hidden_layers"):
        if int(text[size]) < 1:
            raise ValueError(f"{size} is {text[size]}; it must be at least 1")
    heads, hidden = int(text["num_attention_heads"]), int(text["hidden_size"])
    shape = ModelShape(
        name=name,
        layers=_layers(text),
        heads=heads,
        kv_heads=int(text.get("num_key_value_heads") or heads),
        head_dim=int(text.get("head_dim") or hidden // heads),
        hidden=hidden,
        vocab=_whole(text.get("vocab_size")),
        intermediate=_whole(text.get("intermediate_size")),
        tied=bool(config.get("tie_word_embeddings", text.get("tie_word_embeddings", False))),
        params=text.get("params"),
        kv_lora_rank=int(text.get("kv_lora_rank") or 0),
        qk_rope_head_dim=int(text.get("qk_rope_head_dim") or 0),
        window=_whole(text.get("sliding_window")),
        chunk=_whole(text.get("attention_chunk_size")),
        linear=_linear(text),
        source=source,
        known=known,
        experts=int(text.get("num_experts") or text.get("num_local_experts") or text.get("n_routed_experts") or 0),
    )
    return shape if shape.params is not None else replace(shape, params=count_parameters(shape, text))


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _layers(text: Mapping[str, Any]) -> dict[str, int]:
    """Return how many layers of each kind there are, from ``layer_types`` or the older fields."""
    total = int(text["num_hidden_layers"])
    if text.get("kv_lora_rank"):
        return {MLA: total}
    if text.get("layer_types"):
        kinds = [HF_LAYER_TYPES.get(str(kind)) for kind in text["layer_types"]]
        if None in kinds:
            raise ValueError(f"layer type {text['layer_types'][kinds.index(None)]!r} is not one that is understood")
        return {str(kind): kinds.count(kind) for kind in dict.fromkeys(kinds)}
    if text.get("full_attention_interval") and text.get("linear_num_value_heads"):
        full = total // int(text["full_attention_interval"])
        return {FULL: full, LINEAR: total - full}
    if text.get("sliding_window_pattern") and text.get("sliding_window"):
        full = total // int(text["sliding_window_pattern"])
        return {FULL: full, SLIDING: total - full}
    if text.get("sliding_window") and text.get("use_sliding_window", True):
        full = min(total, int(text.get("max_window_layers") or 0)) if "use_sliding_window" in text else 0
        return {kind: count for kind, count in ((FULL, full), (SLIDING, total - full)) if count}
    return {FULL: total}


def _linear(text: Mapping[str, Any]) -> LinearAttention | None:
    if not text.get("linear_num_value_heads"):
        return None
    return LinearAttention(
        key_heads=int(text["linear_num_key_heads"]),
        value_heads=int(text["linear_num_value_heads"]),
        key_head_dim=int(text["linear_key_head_dim"]),
        value_head_dim=int(text["linear_value_head_dim"]),
        conv_kernel=int(text["linear_conv_kernel_dim"]),
        state_bytes=4 if text.get("mamba_ssm_dtype") == "float32" else 2,
    )


def count_parameters(shape: ModelShape, text: Mapping[str, Any]) -> int | None:
    """Return the parameters of embeddings, attention and MLP; None where the configuration is not plain.

    MLA and linear attention have projections whose sizes differ between models: their count is unknown here.
    """
    if shape.vocab is None or shape.intermediate is None or {MLA, LINEAR} & set(shape.layers):
        return None
    attention = shape.hidden * shape.head_dim * (2 * shape.heads + 2 * shape.kv_heads)
    mlp = 3 * shape.hidden * shape.intermediate
    if shape.experts:
        width = int(text.get("moe_intermediate_size") or shape.intermediate)
        mlp = shape.experts * (3 * shape.hidden * width + shape.hidden)
    embeddings = shape.vocab * shape.hidden * (1 if shape.tied else 2)
    return embeddings + shape.layer_count * (attention + mlp + 2 * shape.hidden) + shape.hidden
