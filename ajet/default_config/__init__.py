"""AgentJet's defaults and their tables, as data: the values, the schema of the tree, the kwargs, the verl mapping."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent

DUMMY_TASKS = 1000
"""Length of the dummy data set (value of released AgentJet).

A swarm engine counts its epochs over it, for the clients bring the real tasks: no larger batch can start.
"""


@functools.cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of the configuration tree (``ajet_config.schema.json``)."""
    return _read("ajet_config.schema.json")


@functools.cache
def kwarg_table() -> dict[str, dict[str, Any]]:
    """Return the kwargs of AgentJetJob in their order: name to ``{"key": dotted YAML key or None, "type"}``."""
    return _read("job_kwargs.json")


@functools.cache
def verl_mapping() -> dict[str, list[str]]:
    """Return the ajet keys that a released engine copies to verl's tree: key to the verl keys."""
    return _read("verl_mapping.json")


def _read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))
