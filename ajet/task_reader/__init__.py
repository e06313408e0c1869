"""Tasks to train on, from wherever ``ajet.task_reader`` says."""

from __future__ import annotations

from importlib import import_module

from ajet.task_reader.router import RouterTaskReader
from ajet.task_reader.task_reader_base import BaseTaskReader

__all__ = ["BaseTaskReader", "HuggingFaceTaskReader", "JsonlTaskReader", "RandomDummyTaskReader", "RouterTaskReader"]


_READERS = {
    "HuggingFaceTaskReader": "hf_reader",
    "JsonlTaskReader": "jsonl_reader",
    "RandomDummyTaskReader": "random_dummy_reader",
}
"""Reader: its module, imported when it is asked for; some need packages of their own."""


def __getattr__(name: str) -> object:
    if name not in _READERS:
        raise AttributeError(f"module 'ajet.task_reader' has no attribute {name!r}")
    return getattr(import_module(f"ajet.task_reader.{_READERS[name]}"), name)
