"""The traps and behaviours again, in environments with the other supported SDK releases."""

import importlib.metadata
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.metrics.sdks import BETWEEN, CACHE, NEWEST, OLDEST, ROOT

INSTALLED = importlib.metadata.version("swanlab")
ALL = ("test_traps.py", "test_behaviours.py")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("version", "files"), [(OLDEST, ALL), (NEWEST, ALL), *((version, ALL[:1]) for version in BETWEEN)]
)
def test_with_another_sdk(python_with_sdk: Callable[[str], Path], version: str, files: tuple[str, ...]) -> None:
    if version == INSTALLED:
        pytest.skip("the installed release: these tests run here anyway")
    if os.environ.get("SWANLAB_TEST_SDK"):
        pytest.skip("already within such an environment")
    paths = [str(Path(__file__).with_name(name)) for name in files]
    environ = {**os.environ, "SWANLAB_TEST_SDK": version, "XDG_CACHE_HOME": str(CACHE.parent)}
    done = subprocess.run(
        [python_with_sdk(version), "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths],
        cwd=ROOT, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout or "[100%]" in done.stdout
