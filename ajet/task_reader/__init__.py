"""Tasks to train on, from wherever ``ajet.task_reader`` says."""

from __future__ import annotations

from ajet.task_reader.router import RouterTaskReader
from ajet.task_reader.task_reader_base import BaseTaskReader

__all__ = ["BaseTaskReader", "HuggingFaceTaskReader", "JsonlTaskReader", "RandomDummyTaskReader", "RouterTaskReader"]


def __getattr__(name: str) -> object:
    from ajet.task_reader import hf_reader, jsonl_reader, random_dummy_reader

    for module in (hf_reader, jsonl_reader, random_dummy_reader):
        if name in __all__ and hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module 'ajet.task_reader' has no attribute {name!r}")
