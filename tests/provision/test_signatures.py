"""Known failures are recognised by what tools print, and everything known has a sample here."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from skillpack.provision.data import load
from skillpack.provision.signatures import recognise

SAMPLES = yaml.safe_load((Path(__file__).parent / "failures.yaml").read_text(encoding="utf-8"))
TABLE = {entry["id"]: entry for entry in load("signatures")}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in SAMPLES.items() for text in texts])
def test_recognised(name: str, text: str) -> None:
    found = recognise(f"Collecting things\n{text}\nmore output", *TABLE[name]["where"])
    assert found is not None
    assert found.id == name


def test_every_signature_has_a_sample() -> None:
    assert set(TABLE) == set(SAMPLES)


@pytest.mark.parametrize(
    "text",
    [
        "Auto-detected mode as 'legacy'",
        "Solving environment: failed with initial frozen solve. Retrying with flexible solve.",
        "Guessing wheel URL:  https://example/flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp313-cp313-linux_x86_64.whl",
        "Successfully installed torch-2.8.0",
    ],
)
def test_progress_is_no_failure(text: str) -> None:
    assert recognise(text) is None
