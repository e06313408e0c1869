"""Tasks from files with one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ajet.schema.task import Task
from ajet.task_reader.task_reader_base import BaseTaskReader


class JsonlTaskReader(BaseTaskReader):
    """Reads ``jsonl_dataset_file.training`` and ``.validation``, in the order of the files.

    Keys of a row: ``main_query``, ``init_messages``, ``task_id``, ``env_type``, ``metadata``; a row
    without metadata is its own.
    """

    def generate_training_tasks(self) -> Iterator[Task]:
        """Yield the tasks of the training file. Raises ValueError as ``read_rows`` does."""
        return self._tasks(self.reader_config.jsonl_dataset_file.training.file_path)

    def generate_validation_tasks(self) -> Iterator[Task]:
        """Yield the tasks of the validation file. Raises ValueError as ``read_rows`` does."""
        return self._tasks(self.reader_config.jsonl_dataset_file.validation.file_path)

    def get_training_tasks(self) -> list[Task]:
        """Return the tasks of the training file. Raises ValueError as ``read_rows`` does."""
        return list(self.generate_training_tasks())

    def get_validation_tasks(self) -> list[Task]:
        """Return the tasks of the validation file. Raises ValueError as ``read_rows`` does."""
        return list(self.generate_validation_tasks())

    @staticmethod
    def _tasks(path: str) -> Iterator[Task]:
        for number, row in enumerate(read_rows(path)):
            yield Task(
                main_query=row.get("main_query", "[not defined]"),
                init_messages=row.get("init_messages") or [],
                task_id=str(row.get("task_id", f"task_{number}")),
                env_type=row.get("env_type", "no_env"),
                metadata=row.get("metadata", row),
            )


def read_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON-lines file; empty lines are passed over.

    Raises ValueError, with the line's number, for a missing file, a line that is no JSON object,
    or a file without any.
    """
    path = Path(path)
    empty = True
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise ValueError(f"{path}:{number}: no JSON ({error}); expected one object per line") from None
                if not isinstance(row, dict):
                    raise ValueError(f"{path}:{number}: {type(row).__name__} where a JSON object was expected")
                empty = False
                yield row
    except OSError as error:
        raise ValueError(f"the task file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"the task file {path} is no UTF-8 text: {error}") from None
    if empty:
        raise ValueError(f"the task file {path} has no rows; expected one JSON object per line")
