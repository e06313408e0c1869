"""Memory of a training step against published peaks and published runs."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpack.capacity.kv_cache import GIB
from skillpack.capacity.model_shape import FULL, ModelShape, read_model
from skillpack.capacity.train_memory import FITS, NO, Training, largest_micro_batch, step_memory

GB = 1e9
TYPICAL_TOKENS = 400
"""Tokens of a prompt and its answer on the tasks of verl's tuning examples (GSM8K)."""


def table(name: str) -> list[dict[str, str]]:
    """Return the rows of a table beside this file."""
    with (Path(__file__).parent / name).open() as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def shape_of(row: dict[str, str]) -> ModelShape:
    """Return the shape that a row of train_peaks.tsv states."""
    heads, hidden = int(row["heads"]), int(row["hidden"])
    return ModelShape(
        name=row["case"],
        layers={FULL: int(row["layers"])},
        heads=heads,
        kv_heads=int(row["kv_heads"]),
        head_dim=hidden // heads,
        hidden=hidden,
        vocab=int(row["vocab"]),
        intermediate=int(row["intermediate"]),
        tied=False,
        params=int(row["params"]),
    )


@pytest.mark.parametrize("row", table("train_peaks.tsv"), ids=lambda row: f"{row['case']}-{row['tokens']}")
def test_a_published_peak_lies_in_the_band(row: dict[str, str]) -> None:
    training = Training(
        gpus=int(row["gpus"]),
        tokens=int(row["tokens"]),
        weight_bytes=int(row["weight_bytes"]),
        lora_rank=int(row["lora_rank"]),
        colocated=False,
    )
    memory = step_memory(shape_of(row), training)
    assert memory is not None
    reported = float(row["reported_gb"])
    assert memory.update.low / GB <= reported <= memory.update.high / GB
    assert memory.update.middle / GB == pytest.approx(reported, rel=0.2)


@pytest.mark.parametrize("row", table("train_runs.tsv"), ids=lambda row: row["case"])
def test_no_published_run_is_contradicted(row: dict[str, str]) -> None:
    model = read_model(row["model"])
    assert model is not None
    training = Training(
        gpus=int(row["gpus"]),
        tokens=int(row["sequences"]) * TYPICAL_TOKENS,
        weight_bytes=int(row["weight_bytes"]),
        lora_rank=int(row["lora_rank"]),
        param_offload=row["param_offload"] == "1",
        optimizer_offload=row["optimizer_offload"] == "1",
        colocated=bool(row["gpu_memory_utilization"]),
    )
    memory = step_memory(model, training)
    assert memory is not None
    utilization = float(row["gpu_memory_utilization"]) if row["gpu_memory_utilization"] else None
    verdict = memory.verdict(float(row["gpu_gib"]) * GIB, utilization)
    assert verdict != (NO if row["result"] == "fits" else FITS)


def test_full_training_of_7b_on_one_gpu_of_80_gib_will_not_fit() -> None:
    model = read_model("Qwen/Qwen2.5-7B-Instruct")
    assert model is not None
    memory = step_memory(model, Training(gpus=1, tokens=18000))
    assert memory is not None
    assert memory.verdict(80 * GIB) == NO
    sharded = step_memory(model, Training(gpus=16, tokens=2000))
    assert sharded is not None
    assert sharded.verdict(80 * GIB, 0.6) == FITS


def test_what_is_not_offloaded_must_lie_beside_the_rollout_engine() -> None:
    model = read_model("Qwen/Qwen2.5-7B-Instruct")
    assert model is not None
    kept = step_memory(model, Training(gpus=2, tokens=1000))
    moved = step_memory(model, Training(gpus=2, tokens=1000, param_offload=True, optimizer_offload=True))
    assert kept is not None
    assert moved is not None
    assert kept.update == moved.update
    assert kept.verdict(80 * GIB, 0.85) == NO
    assert moved.verdict(80 * GIB, 0.85) != NO
    assert moved.host_bytes == 12 * model.params  # type: ignore[operator]


def test_a_model_of_unknown_size_gives_no_estimate() -> None:
    shape = ModelShape("x", {FULL: 2}, 4, 4, 8, 32, None, None, False, None)
    assert step_memory(shape, Training(gpus=1, tokens=10)) is None


@given(st.integers(1, 64), st.integers(1, 40_000), st.integers(0, 128))
def test_memory_grows_with_tokens_and_shrinks_with_gpus(gpus: int, tokens: int, rank: int) -> None:
    model = read_model("qwen3-8b")
    assert model is not None
    one = step_memory(model, Training(gpus=gpus, tokens=tokens, lora_rank=rank))
    more_tokens = step_memory(model, Training(gpus=gpus, tokens=tokens + 1000, lora_rank=rank))
    more_gpus = step_memory(model, Training(gpus=gpus + 1, tokens=tokens, lora_rank=rank))
    assert one is not None
    assert more_tokens is not None
    assert more_gpus is not None
    assert one.update.low <= one.update.middle <= one.update.high
    assert one.update.middle < more_tokens.update.middle
    assert gpus == 1 or more_gpus.update.middle < one.update.middle


def test_the_largest_micro_batch_is_the_largest() -> None:
    model = read_model("qwen3-8b")
    assert model is not None

    def train(tokens: int) -> Training:
        return Training(gpus=8, tokens=tokens)

    most = largest_micro_batch(model, train, 80 * GIB, 100_000)
    assert most is not None
    memories = [step_memory(model, train(tokens)) for tokens in (most, most + 1)]
    assert [memory.update.middle <= 80 * GIB for memory in memories if memory] == [True, False]
