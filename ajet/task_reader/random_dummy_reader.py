"""Tasks out of nothing: sums, in the shape of the data that they stand for."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

from ajet.default_config import DUMMY_TASKS
from ajet.schema.task import Task
from ajet.task_reader.hf_reader import row_task
from ajet.task_reader.task_reader_base import BaseTaskReader

SEED = 42


class RandomDummyTaskReader(BaseTaskReader):
    """A thousand sums in a fixed order; the answer is in the metadata."""

    def get_training_tasks(self) -> list[Task]:
        """Return the tasks."""
        return [
            Task(
                main_query=f"What is {a} + {b}? Answer with the number alone.",
                task_id=f"dummy_{index}",
                env_type="no_env",
                metadata={"answer": str(a + b)},
            )
            for index, (a, b) in enumerate(_pairs())
        ]

    def get_validation_tasks(self) -> list[Task]:
        """Return the same tasks."""
        return self.get_training_tasks()


class DummyTaskReader(BaseTaskReader):
    """Dummy tasks in place of those that ``reader_type`` would read: rows of the known data set's columns.

    The columns of data sets that tutorials use are in ``dummy_shapes.json``; for others a row has
    all the usual ones.
    """

    def __init__(self, reader_type: str, reader_config: Any) -> None:
        super().__init__(reader_config)
        section = getattr(reader_config, "huggingface_dat_repo", None)
        self.shape = _shape(str(section.dataset_path) if reader_type == "huggingface_dat_repo" and section else "")

    def get_training_tasks(self) -> list[Task]:
        """Return the tasks."""
        return list(self.generate_training_tasks())

    def get_validation_tasks(self) -> list[Task]:
        """Return the same tasks."""
        return self.get_training_tasks()

    def generate_training_tasks(self) -> Iterator[Task]:
        """Yield the tasks in a fixed order."""
        for index, (a, b) in enumerate(_pairs()):
            values = {"a": a, "b": b, "sum": a + b, "index": index}
            yield row_task(_filled(self.shape, values), index)


@functools.cache
def _pairs() -> list[tuple[int, int]]:
    generator = random.Random(SEED)
    return [(generator.randint(2, 99), generator.randint(2, 99)) for _ in range(DUMMY_TASKS)]


@functools.cache
def _shapes() -> dict[str, Any]:
    return json.loads((Path(__file__).parent / "dummy_shapes.json").read_text(encoding="utf-8"))


def _shape(dataset: str) -> dict[str, Any]:
    """Return the columns of the data set whose name occurs in ``dataset``, or the usual ones."""
    shapes = _shapes()
    plain = dataset.lower().replace("_", "-")
    return next((shape for name, shape in shapes.items() if name in plain), shapes["*"])


def _filled(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(one, values) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, values) for one in value]
    return Template(value).substitute(values) if isinstance(value, str) else value
