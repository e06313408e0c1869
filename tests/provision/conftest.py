"""The machines that these tests play."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.provision.machines import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], World]:
    """Return a function that builds a machine from a profile and makes this process live on it."""

    def build(data: dict[str, Any], name: str = "machine") -> World:
        made = World(data, tmp_path / name)
        for variable in list(os.environ):
            monkeypatch.delenv(variable)
        for variable, value in made.environment.items():
            monkeypatch.setenv(variable, value)
        return made

    return build
