"""A fake SwanLab that a test may spoil, a clean environment with its key, and the real SDKs."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skillpack.metrics.session import Retries
from tests.metrics.sdks import sdk_python
from tests.swanlab_server import API_KEY, FakeSwanLab


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A HOME, a cache and a working directory of the test's own, and no SwanLab variable but the key."""
    for name in [name for name in os.environ if name.startswith("SWANLAB_")] + ["NETRC"]:
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    folder.mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SWANLAB_API_KEY", API_KEY)
    monkeypatch.chdir(tmp_path / "work")
    return folder


@pytest.fixture
def server() -> Iterator[FakeSwanLab]:
    """A fake SwanLab of its own for each test; its sample project is ``ada/agent``."""
    with FakeSwanLab() as fake:
        yield fake


@pytest.fixture
def quick() -> Retries:
    """Retries that do not wait."""
    return Retries(3, first_wait=0.01)


@pytest.fixture
def python_with_sdk() -> Callable[[str], Path]:
    """Return the interpreter of an environment with the given SwanLab release; skip without network."""
    return sdk_python
