"""The flash-attn that is chosen for a torch."""

from __future__ import annotations

from typing import Any

import pytest

from skillpack.provision.payload.pick_flash_attn import choose
from skillpack.provision.python_choices import build_jobs, load_wheels

TABLE = load_wheels()
HERE = {"torch": "2.8.0+cu128", "cuda": "12.8", "python": "cp310", "abi": "TRUE", "arch": "x86_64", "glibc": "2.35"}
WHEEL = "https://github.com/Dao-AILab/flash-attention/releases/download/v{0}/flash_attn-{0}+cu12torch{1}cxx11abi{2}-{3}-{3}-linux_x86_64.whl"

CASES: list[tuple[dict[str, str], str, str]] = [
    ({}, "wheel", WHEEL.format("2.8.3", "2.8", "TRUE", "cp310")),
    ({"torch": "2.7.1", "python": "cp312"}, "wheel", WHEEL.format("2.8.3", "2.7", "TRUE", "cp312")),
    ({"torch": "2.6.0+cu124", "cuda": "12.4", "abi": "FALSE"}, "wheel", WHEEL.format("2.8.3", "2.6", "FALSE", "cp310")),
    (
        {"torch": "2.6.0+cu124", "cuda": "12.4", "abi": "FALSE", "glibc": "2.31"},
        "wheel",
        WHEEL.format("2.7.4.post1", "2.6", "FALSE", "cp310"),
    ),
    ({"glibc": "2.31"}, "source", "2.8.3"),
    ({"torch": "2.9.0"}, "source", "2.8.3"),
    ({"torch": "2.10.0+cu128"}, "source", "2.8.3"),
    ({"arch": "aarch64"}, "source", "2.8.3"),
    ({"python": "cp314"}, "source", "2.8.3"),
    (
        {"torch": "2.11.0+cu130", "cuda": "13.0", "python": "cp312"},
        "index",
        "https://verl-project.github.io/verl-wheelhouse/simple/",
    ),
    ({"torch": "2.11.0+cu130", "cuda": "13.0", "python": "cp310"}, "source", "2.8.3.post1"),
    ({"torch": "2.8.0+cpu", "cuda": ""}, "none", ""),
    ({"glibc": ""}, "wheel", WHEEL.format("2.8.3", "2.8", "TRUE", "cp310")),
]


@pytest.mark.parametrize(("change", "kind", "value"), CASES)
def test_choice(change: dict[str, str], kind: str, value: str) -> None:
    found = choose(TABLE, {**HERE, **change})
    assert (found["kind"], found["value"]) == (kind, value)
    assert found["reason"]


def test_a_release_can_be_asked_for() -> None:
    here: dict[str, Any] = {**HERE, "torch": "2.6.0", "cuda": "12.4"}
    assert choose(TABLE, here, "2.7.4.post1")["release"] == "2.7.4.post1"


def test_a_github_mirror_goes_in_front() -> None:
    assert choose(TABLE, HERE, github_mirror="https://mirror.example/")["value"].startswith(
        "https://mirror.example/https://github.com/"
    )


@pytest.mark.parametrize(
    ("cpus", "free", "jobs"),
    [(192, 1900, 96), (64, 110, 15), (32, 110, 15), (8, 14, 1), (4, 3, 1), (1, 500, 1), (None, None, 1)],
)
def test_build_jobs_follow_memory_and_cores(cpus: int | None, free: float | None, jobs: int) -> None:
    assert build_jobs(cpus, free) == jobs
