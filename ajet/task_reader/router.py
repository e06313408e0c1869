"""The task reader of a configuration, by its type."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ajet.schema.task import Task
from ajet.task_reader.task_reader_base import BaseTaskReader

DUMMY_DATA = "AJET_DUMMY_DATA"
"""Environment variable: if set, readers give dummy tasks of their data's shape (``skills rehearse --dummy-data``)."""

ELSEWHERE = {
    "env_service": "an environment service",
    "tracing": "recorded traces and a service that reads them",
    "data_generation": "documents and a language model",
    "deep_finance": "the deep finance services",
}
"""Types of released AgentJet whose tasks come from services that the reference has not: what they need."""

TYPES = ("jsonl_dataset_file", "huggingface_dat_repo", "random_dummy", *ELSEWHERE)


class RouterTaskReader(BaseTaskReader):
    """Reads tasks by ``reader_type`` from the section of ``reader_config`` that belongs to it.

    ``reader_config`` is an ``AjetTaskReader`` or ``config.ajet.task_reader``. Raises ValueError for
    an unknown type, and for one whose tasks come from a service.
    """

    def __init__(self, reader_type: str, reader_config: Any) -> None:
        super().__init__(reader_config)
        self.reader_type = reader_type
        self.task_reader = make_reader(reader_type, reader_config)

    def get_training_tasks(self) -> list[Task]:
        """Return all training tasks, shuffled by numpy's global generator."""
        return _shuffled(self.task_reader.get_training_tasks())

    def get_validation_tasks(self) -> list[Task]:
        """Return all validation tasks, shuffled by numpy's global generator."""
        return _shuffled(self.task_reader.get_validation_tasks())

    def generate_training_tasks(self) -> Iterator[Task]:
        """Yield the training tasks in the reader's order: that of the file, or a new one for data sets."""
        return self.task_reader.generate_training_tasks()

    def generate_validation_tasks(self) -> Iterator[Task]:
        """Yield the validation tasks in the reader's order."""
        return self.task_reader.generate_validation_tasks()


def make_reader(reader_type: str, reader_config: Any) -> BaseTaskReader:
    """Return the reader of a type. Raises ValueError as ``RouterTaskReader`` does."""
    from ajet.task_reader.hf_reader import HuggingFaceTaskReader
    from ajet.task_reader.jsonl_reader import JsonlTaskReader
    from ajet.task_reader.random_dummy_reader import DummyTaskReader, RandomDummyTaskReader

    if reader_type not in TYPES:
        raise ValueError(f"unknown task reader type {reader_type!r}; expected one of {', '.join(TYPES)}")
    if reader_type == "random_dummy":
        return RandomDummyTaskReader(reader_config)
    if os.environ.get(DUMMY_DATA):
        return DummyTaskReader(reader_type, reader_config)
    if reader_type == "jsonl_dataset_file":
        return JsonlTaskReader(reader_config)
    if reader_type == "huggingface_dat_repo":
        return HuggingFaceTaskReader(reader_config)
    raise ValueError(
        f"the tasks of reader type {reader_type!r} need {ELSEWHERE[reader_type]}, which the reference has not; "
        f"rehearse with --dummy-data (or {DUMMY_DATA}=1) to get dummy tasks in their place"
    )


def _shuffled(tasks: list[Task]) -> list[Task]:
    import numpy as np

    return [tasks[index] for index in np.random.permutation(len(tasks))]
