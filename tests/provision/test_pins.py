"""The versions that plans pin can be installed together, as far as an index can tell without downloading gigabytes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skillpack.provision.choices import stack_of
from skillpack.provision.data import load

UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
SETS = [name for name in load("stacks") if name != "checkout"]
REACHABLE_WITHIN = 100
"""Seconds for one resolution; the index answers with metadata only."""


@pytest.mark.skipif(not UV, reason="uv is not installed (pip install uv)")
@pytest.mark.parametrize("name", SETS)
def test_the_index_resolves_a_matched_set(name: str, tmp_path: Path) -> None:
    """``uv pip install --dry-run`` reads metadata only, where pip's own dry run fetches every wheel (torch: 0.9 GB)."""
    stack = stack_of(name)
    pins = [
        f"{'verl[vllm]' if package == 'verl' else package}=={version}" for package, version in stack["pins"].items()
    ]
    done = subprocess.run(
        [str(UV), "pip", "install", "--dry-run", "--no-build", "--target", str(tmp_path / "target"),
         "--python-version", stack["python"], "--python-platform", "x86_64-manylinux_2_31", *pins],
        capture_output=True, text=True, timeout=REACHABLE_WITHIN, check=False,
    )  # fmt: skip
    if done.returncode and "No solution found" not in done.stderr:
        pytest.skip(f"no index is reachable: {done.stderr.strip().splitlines()[-1:]}")
    assert done.returncode == 0, done.stderr
    for package, version in stack["pins"].items():
        assert f" + {package}=={version}" in done.stderr


def test_a_checkout_is_expected_to_pin_a_known_set() -> None:
    assert stack_of("checkout")["pins"] == stack_of("verl-0.7")["pins"]
