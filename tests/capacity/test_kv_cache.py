"""KV cache sizes against observed vLLM start-ups (kv_cases.tsv: reported tokens, blocks, concurrency)."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpack.capacity.kv_cache import GIB, KvCache, Serving, layer_specs, size_kv_cache
from skillpack.capacity.model_shape import ModelShape, read_model
from skillpack.script import BadInput

TOLERANCE = 0.002
NEVER_ASKED = 8192

with (Path(__file__).parent / "kv_cases.tsv").open() as stream:
    CASES = {row["case"]: row for row in csv.DictReader(stream, delimiter="\t")}

MEASURED_MEMORY = [case for case, row in CASES.items() if row["avail_kv_gib"]]


def model(name: str) -> ModelShape:
    """Return a model of the table."""
    shape = read_model(name)
    assert shape is not None
    return shape


def replay(row: dict[str, str]) -> KvCache:
    """Size the cache of one observed start-up."""
    serving = Serving(
        max_model_len=int(row["max_model_len"] or NEVER_ASKED),
        tensor_parallel=int(row["tp"]),
        kv_dtype={"bf16": "bfloat16", "fp16": "float16"}.get(row["kv_dtype"], row["kv_dtype"]),
        block_size=int(row["block_size"]),
    )
    return size_kv_cache(model(row["shape"]), serving, round(float(row["avail_kv_gib"]) * GIB))


@pytest.mark.parametrize("case", MEASURED_MEMORY)
def test_an_observed_start_up_is_reproduced(case: str) -> None:
    row, cache = CASES[case], replay(CASES[case])
    assert cache.fits
    if row["reported_tokens"]:
        assert cache.tokens == pytest.approx(int(row["reported_tokens"]), rel=TOLERANCE)
    if row["reported_blocks"]:
        assert cache.num_blocks == pytest.approx(int(row["reported_blocks"]), rel=TOLERANCE)
    if row["reported_conc"]:
        assert round(cache.concurrency, 2) == pytest.approx(float(row["reported_conc"]), rel=TOLERANCE)


def test_blocks_that_were_reported_without_their_memory_take_a_whole_number_of_pages() -> None:
    """Case 32 reports 13,078 blocks and no memory: of 13,078 blocks' bytes the model makes 13,078 blocks."""
    row = CASES["32"]
    blocks = int(row["reported_blocks"])
    serving = Serving(NEVER_ASKED, block_size=int(row["block_size"]))
    ((spec, layers),) = layer_specs(model(row["shape"]), serving).items()
    assert spec.page_bytes * layers == 2 * 1024 * 1024
    assert size_kv_cache(model(row["shape"]), serving, blocks * spec.page_bytes * layers).num_blocks == blocks


def test_a_hybrid_models_attention_block_grows_until_it_holds_a_state() -> None:
    cache = replay({**CASES["27"], "block_size": "16"})
    assert cache.block_size == 1568
    assert cache.tokens == int(CASES["27"]["reported_tokens"])


def test_sliding_layers_are_grouped_and_padded() -> None:
    cache = size_kv_cache(model("gemma-3-27b"), Serving(8192), 20 * GIB)
    assert (cache.groups, cache.padding_layers) == (7, 8)


def test_without_the_hybrid_manager_every_layer_caches_every_token() -> None:
    serving = Serving(32768, hybrid_manager=False)
    cache = size_kv_cache(model("gemma-3-27b"), serving, 20 * GIB)
    assert cache.groups == 1
    assert cache.needed_bytes == 62 * 32768 * 2 * 16 * 128 * 2
    assert size_kv_cache(model("gemma-3-27b"), Serving(32768), 20 * GIB).concurrency > cache.concurrency


def test_mla_is_not_split_by_tensor_parallelism_and_has_no_factor_of_two() -> None:
    one = size_kv_cache(model("deepseek-v3"), Serving(16384, block_size=64), 40 * GIB)
    eight = size_kv_cache(model("deepseek-v3"), Serving(16384, block_size=64, tensor_parallel=8), 40 * GIB)
    assert one == eight
    assert one.tokens == pytest.approx(40 * GIB / (61 * 576 * 2), rel=TOLERANCE)


@pytest.mark.parametrize(
    ("kv_dtype", "token_bytes"),
    [
        ("auto", 2 * 4 * 128 * 2),
        ("fp8", 2 * 4 * 128),
        ("int8_per_token_head", 2 * 4 * (128 + 4)),
        ("nvfp4", 2 * 4 * 72),
    ],
)
def test_a_quantised_cache_holds_more(kv_dtype: str, token_bytes: int) -> None:
    cache = size_kv_cache(model("qwen2.5-7b"), Serving(32768, kv_dtype=kv_dtype), 10 * GIB)
    assert cache.tokens == pytest.approx(10 * GIB / (28 * token_bytes), rel=TOLERANCE)


def test_a_cache_for_less_than_one_request_is_refused_with_the_longest_length() -> None:
    """By the published rule: 28 layers * 4 heads * 128 * 2 * 2 bytes = 56 KiB a token, 7.00 GiB for 131,072."""
    cache = size_kv_cache(model("qwen2.5-7b"), Serving(131072), 3 * GIB)
    assert not cache.fits
    assert "needs 7.00 GiB" in str(cache.refusal)
    assert cache.longest == 3 * GIB // (16 * 57344) * 16
    assert size_kv_cache(model("qwen2.5-7b"), Serving(cache.longest), 3 * GIB).fits
    assert not size_kv_cache(model("qwen2.5-7b"), Serving(cache.longest + 1), 3 * GIB).fits


def test_no_memory_at_all_is_refused() -> None:
    cache = size_kv_cache(model("qwen2.5-7b"), Serving(4096), -GIB)
    assert (cache.num_blocks, cache.longest, cache.fits) == (0, 0, False)
    assert "no memory is left" in str(cache.refusal)


def test_pages_that_cannot_be_made_equal_are_refused_as_vllm_does() -> None:
    shape = replace(model("qwen3-next"), layers={"linear": 36, "full": 12})
    assert size_kv_cache(shape, Serving(32768), 20 * GIB).block_size == 544
    with pytest.raises(BadInput, match="heads are unknown"):
        size_kv_cache(replace(shape, linear=None), Serving(32768), 20 * GIB)


@given(
    st.sampled_from(["qwen2.5-7b", "gemma-3-27b", "deepseek-v2-lite", "qwen3-next"]),
    st.integers(1, 200_000),
    st.integers(0, 200 * GIB),
)
def test_an_engine_starts_exactly_when_one_request_fits(name: str, length: int, available: int) -> None:
    cache = size_kv_cache(model(name), Serving(length), available)
    assert cache.fits == (cache.concurrency >= 1) == (cache.longest == length)
    assert cache.tokens >= 0
