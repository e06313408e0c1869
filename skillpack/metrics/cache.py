"""Series that were fetched before, kept by run and state.

A finished run's series are used again; a running one's are fetched anew and kept only for work
without a network. Layout: ``HOST/USER/PROJECT/RUN_CUID/run.json`` and one Arrow file per key.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from skillpack.files import write_atomically
from skillpack.metrics.experiment import Experiment
from skillpack.metrics.series import Series
from skillpack.metrics.urls import Place

FORMAT = 1


def default_root() -> Path:
    """Return the cache's place: ``$XDG_CACHE_HOME/agentjet-skills/swanlab``."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "agentjet-skills" / "swanlab"


class Cache:
    """The cached series of one run; nothing is kept where the folder cannot be written."""

    def __init__(self, place: Place, root: Path | None = None) -> None:
        host = quote(urlsplit(place.api).netloc, safe="")
        self.project = (root or default_root()) / host / place.user / quote(place.project, safe="")

    def remembered(self, place: Place) -> tuple[Experiment, list[str]] | None:
        """Return the run (found by id or slug) and its keys as they were last seen, or None."""
        for path in sorted(self.project.glob("*/run.json")):
            document = _read(path)
            if document and place.run in (document["run"]["cuid"], document["run"]["slug"], document.get("id")):
                run = Experiment(**{**document["run"], "place": place})
                run.root = (run.root[0], run.root[1]) if run.root else None
                return run, document["keys"]
        return None

    def load(self, run: Experiment, key: str, *, any_state: bool = False) -> Series | None:
        """Return a series if it is the one that the server would give now (or, with ``any_state``, at all)."""
        document = _read(self._folder(run) / "run.json")
        if document is None or (not any_state and (run.running or document["stamp"] != _stamp(run))):
            return None
        try:
            return _load(self._folder(run) / _file_name(key), key)
        except (OSError, ValueError, KeyError):
            return None

    def store(self, run: Experiment, keys: Sequence[str], series: Sequence[Series]) -> None:
        """Keep series; those of an earlier state of the run are removed first."""
        folder = self._folder(run)
        known = _read(folder / "run.json")
        try:
            if known is not None and known["stamp"] != _stamp(run):
                shutil.rmtree(folder)
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for one in series:
                _save(folder / _file_name(one.key), one)
            described = {name: value for name, value in asdict(run).items() if name != "place"}
            document = {"stamp": _stamp(run), "id": run.place.run, "keys": list(keys), "run": described}
            write_atomically(folder / "run.json", json.dumps(document, ensure_ascii=False))
        except OSError:
            return  # a full or read-only disk costs time, not the result

    def _folder(self, run: Experiment) -> Path:
        return self.project / quote(run.cuid, safe="")


def _stamp(run: Experiment) -> list[Any]:
    return [FORMAT, run.cuid, run.state, run.finished]


def _file_name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:24] + ".arrow"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and document.get("stamp", [0])[0] == FORMAT else None


def _save(path: Path, series: Series) -> None:
    import pyarrow

    batch = pyarrow.record_batch(
        [series.steps, series.values, series.stamps],
        schema=pyarrow.schema(
            [("step", pyarrow.int64()), ("value", pyarrow.float64()), ("timestamp", pyarrow.float64())],
            metadata={"key": series.key},
        ),
    )
    partial = path.with_suffix(f".{os.getpid()}.part")
    try:
        with pyarrow.OSFile(str(partial), "wb") as sink, pyarrow.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _load(path: Path, key: str) -> Series:
    import pyarrow

    with pyarrow.memory_map(str(path)) as source:
        table = pyarrow.ipc.open_file(source).read_all()
    if (table.schema.metadata or {}).get(b"key") != key.encode():
        raise ValueError("another key's file")
    return Series(key, *(table[name].to_numpy() for name in ("step", "value", "timestamp")))
