"""What every task reader offers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ajet.schema.task import Task


class BaseTaskReader:
    """A source of tasks; ``reader_config`` is its section of the configuration.

    A subclass overrides the two ``get_…`` methods, or also the generators if it can read lazily.
    """

    def __init__(self, reader_config: Any) -> None:
        self.reader_config = reader_config

    def get_training_tasks(self) -> list[Task]:
        """Return all training tasks."""
        raise NotImplementedError

    def get_validation_tasks(self) -> list[Task]:
        """Return all validation tasks."""
        raise NotImplementedError

    def generate_training_tasks(self) -> Iterator[Task]:
        """Yield the training tasks once, as they are read."""
        yield from self.get_training_tasks()

    def generate_validation_tasks(self) -> Iterator[Task]:
        """Yield the validation tasks once, as they are read."""
        yield from self.get_validation_tasks()
