"""Tasks from Hugging Face datasets: a local file or folder, or the hub through the datasets package."""

from __future__ import annotations

import csv
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ajet.schema.task import Task
from ajet.task_reader.jsonl_reader import read_rows
from ajet.task_reader.task_reader_base import BaseTaskReader

Row = dict[str, Any]


class HuggingFaceTaskReader(BaseTaskReader):
    """Reads ``huggingface_dat_repo``; each call gives the rows in a new random order.

    ``dataset_path`` is a file or folder of this machine, or a name on the hub. A row's text is its
    ``main_query``, ``question``, ``problem`` or ``prompt``; its number is the ``task_id``.
    """

    def generate_training_tasks(self) -> Iterator[Task]:
        """Yield the tasks of the training split. Raises ValueError, at the first, if it cannot be read."""
        return self._tasks(self.reader_config.huggingface_dat_repo.training_split)

    def generate_validation_tasks(self) -> Iterator[Task]:
        """Yield the tasks of the validation split. Raises ValueError, at the first, if it cannot be read."""
        return self._tasks(self.reader_config.huggingface_dat_repo.validation_split)

    def get_training_tasks(self) -> list[Task]:
        """Return the tasks of the training split. Raises ValueError if it cannot be read."""
        return list(self.generate_training_tasks())

    def get_validation_tasks(self) -> list[Task]:
        """Return the tasks of the validation split. Raises ValueError if it cannot be read."""
        return list(self.generate_validation_tasks())

    def _tasks(self, split: str) -> Iterator[Task]:
        section = self.reader_config.huggingface_dat_repo
        rows = read_dataset(section.dataset_path, split, getattr(section, "dataset_name", None))
        order = list(range(len(rows)))
        random.shuffle(order)
        for index in order:
            yield row_task(rows[index], index)


def row_task(row: Row, index: int) -> Task:
    """Return the task of a data set's row."""
    query = next((row[key] for key in ("main_query", "question", "problem", "prompt") if row.get(key)), "Empty")
    return Task(
        main_query=query if isinstance(query, str) else json.dumps(query, ensure_ascii=False, default=str),
        task_id=str(index),
        env_type="no_env",
        metadata={**row, "original_idx": index},
    )


def read_dataset(path: str, split: str, name: str | None = None) -> list[Row]:
    """Return the rows of a split. Raises ValueError that says what was looked for and what to try."""
    local = Path(path).expanduser()
    if local.is_file():
        return _non_empty(_read_file(local), local)
    if local.is_dir():
        return _read_folder(local, split, name)
    if local.is_absolute() or path.startswith((".", "~")):
        raise ValueError(
            f"the dataset {path} is not there; expected a file or folder, or a name on the Hugging Face hub"
        )
    return _read_hub(path, split, name)


def _read_folder(folder: Path, split: str, name: str | None) -> list[Row]:
    """Read a split from a folder as ``datasets`` lays it out: ``train.jsonl``, ``data/train-00000-of-00001.parquet``.

    Also a folder of ``save_to_disk`` (``train/data-00000-of-00001.arrow``).
    """
    files = sorted(path for path in folder.rglob("*") if path.suffix in READERS and path.name not in SIDE_FILES)
    if name:
        files = [path for path in files if name in path.relative_to(folder).parts[:-1]] or files
    word = re.compile(rf"(?:^|[^a-z]){re.escape(split.lower())}(?:[^a-z]|$)")
    chosen = [path for path in files if word.search(str(path.relative_to(folder)).lower())]
    if not chosen and len({path.stem for path in files}) == 1:
        chosen = files  # one nameless file is every split
    if not chosen:
        there = ", ".join(str(path.relative_to(folder)) for path in files[:10]) or "no data files"
        raise ValueError(
            f"the dataset folder {folder} has no split {split!r}; it holds {there}. Files are named after their "
            f"split ({split}.jsonl, data/{split}-00000-of-00001.parquet) and end in {', '.join(READERS)}"
        )
    return _non_empty([row for path in chosen for row in _read_file(path)], folder)


def _read_hub(path: str, split: str, name: str | None) -> list[Row]:
    advice = "give a local folder as dataset_path, or rehearse with --dummy-data (AJET_DUMMY_DATA=1)"
    try:
        import datasets
    except ImportError:
        raise ValueError(
            f"the dataset {path!r} is no folder here, and reading the Hugging Face hub needs the datasets package "
            f"(pip install datasets); or {advice}"
        ) from None
    try:
        return list(datasets.load_dataset(path, name=name, split=split))
    except Exception as error:
        raise ValueError(
            f"split {split!r} of the dataset {path!r} cannot be loaded: {type(error).__name__}: {error}; "
            f"with a network this reads the Hugging Face hub; without, {advice}"
        ) from error


def _non_empty(rows: list[Row], path: Path) -> list[Row]:
    if not rows:
        raise ValueError(f"the dataset {path} has no rows")
    return rows


def _read_file(path: Path) -> list[Row]:
    read = READERS.get(path.suffix)
    if read is None:
        raise ValueError(f"{path}: a dataset file ends in {', '.join(READERS)}")
    try:
        return read(path)
    except ImportError as error:
        raise ValueError(f"reading {path} needs the {error.name} package, which is not installed") from None
    except (OSError, ValueError, csv.Error) as error:
        raise ValueError(f"the dataset file {path} cannot be read: {error}") from None


def _read_json(path: Path) -> list[Row]:
    data = json.loads(path.read_text(encoding="utf-8-sig"))
    if isinstance(data, dict):
        data = next((value for value in data.values() if isinstance(value, list)), [data])
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise ValueError("expected a list of objects")
    return data


def _read_csv(path: Path) -> list[Row]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t" if path.suffix == ".tsv" else ","))


def _read_parquet(path: Path) -> list[Row]:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path).to_pylist()


def _read_arrow(path: Path) -> list[Row]:
    import pyarrow

    with pyarrow.memory_map(os.fspath(path)) as source:
        try:
            return pyarrow.ipc.open_stream(source).read_all().to_pylist()
        except pyarrow.ArrowInvalid:
            return pyarrow.ipc.open_file(source).read_all().to_pylist()


READERS: dict[str, Callable[[Path], list[Row]]] = {
    ".jsonl": lambda path: list(read_rows(path)),
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
}
SIDE_FILES = ("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json")
