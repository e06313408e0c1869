"""Curves without any network: SwanLab's run files and folders, and console logs.

``.swanlab`` files are LevelDB logs (blocks of 32 KiB; record header: CRC-32, length, type) behind
the header ``:SWL``, 0xE1D6, version. Version 1 (SDK up to 0.7) holds JSON, version 2 (since 0.8)
protobuf messages, whose definition the installed SDK brings.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from skillpack.metrics.console import merge_steps, read_steps
from skillpack.metrics.credentials import without_secrets
from skillpack.metrics.experiment import unwrapped
from skillpack.metrics.select import choose, expected_states, requested
from skillpack.metrics.series import KeyStatus, Points, RunMetrics, iso
from skillpack.metrics.window import Window, settle
from skillpack.script import BadInput, Unavailable

BLOCK = 32768
FILE_HEADER = struct.Struct("<4sHB")
RECORD_HEADER = struct.Struct("<IHB")
MAGIC = (b":SWL", 0xE1D6)
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
RUN_FOLDER = "run-*"

Curves = dict[str, Points]


def read_local(
    path: str | Path,
    keys: str | Sequence[str] | None = None,
    *,
    window: Window | None = None,
    duplicates: Literal["first", "last"] = "first",
) -> list[RunMetrics]:
    """Read the runs of a ``.swanlab`` file, a run folder, a folder of run folders or a console log.

    ``keys``, ``window`` and the states are those of ``fetch_run``. In a console log a repeated step
    is a resumed one, and the later values are kept whatever ``duplicates`` says.
    Raises BadInput (nothing to read there), Unavailable (a file that needs another SDK) and OSError.
    """
    path = Path(path).expanduser()
    window = window or Window()
    if not path.exists():
        raise BadInput(f"{path} does not exist", expected="a .swanlab file, a run folder or a console log")
    return [_selected(points, meta, keys, window, duplicates) for points, meta in _sources(path)]


def _sources(path: Path) -> list[tuple[Curves, dict[str, Any]]]:
    if path.is_file():
        return [_read_swanlab(path) if path.suffix == ".swanlab" else _read_console(path)]
    files = sorted(path.glob("*.swanlab"))
    if files:
        return [_read_swanlab(file) for file in files]
    if (path / "logs").is_dir():
        return [_read_board(path)]
    if (path / "console.log").is_file():
        return [_read_console(path / "console.log")]
    folders = sorted(child for child in path.glob(RUN_FOLDER) if child.is_dir())
    if not folders and (path / "swanlog").is_dir():
        return _sources(path / "swanlog")
    if not folders:
        raise BadInput(
            f"no run in {path}", expected="a folder with *.swanlab, run-* folders, logs/ or console.log in it"
        )
    return [source for folder in folders for source in _sources_or_reason(folder)]


def _sources_or_reason(folder: Path) -> list[tuple[Curves, dict[str, Any]]]:
    """Read one of several run folders; that one of them holds nothing must not hide the others."""
    try:
        return _sources(folder)
    except (BadInput, Unavailable) as error:
        meta = {"source": str(folder), "name": folder.name, "run_id": "", "error": error.message}
        return [(defaultdict(Points), meta)]


def _selected(
    points: Curves,
    meta: dict[str, Any],
    keys: str | Sequence[str] | None,
    window: Window,
    keep: Literal["first", "last"],
) -> RunMetrics:
    available = list(points)
    choices = choose(requested(keys, available, window.key), available)
    status = expected_states(choices)
    if "error" in meta:
        status = {"*": KeyStatus("*", "failed", "*", meta["error"])}
    series = {key: points[key].series(key) for key in status if key in points}
    metrics = RunMetrics(series, status, meta, window.x)
    settle(metrics, window, keep)
    meta.update(
        x=window.x,
        window=window.document(),
        sampled=False,
        points=sum(len(one) for one in metrics.series.values()),
        steps=len(metrics.steps),
        aliases={choice.asked: choice.keys[0] for choice in choices if choice.alias},
    )
    return metrics


def _read_console(path: Path) -> tuple[Curves, dict[str, Any]]:
    """Read a log; where a step comes again after others, the run was resumed and the later values count."""
    steps, _ = merge_steps(read_steps(path))
    if not steps:
        raise BadInput(
            f"no metric line in {path}", expected="lines such as 'step:7 - critic/rewards/mean:0.5 - actor/lr:1e-06'"
        )
    points: Curves = defaultdict(Points)
    for step, values in steps.items():
        for key, value in values.items():
            points[key].add(step, value, math.nan)
    return points, {"source": str(path), "name": path.parent.name or path.stem, "run_id": "", "path": "console log"}


def _read_swanlab(path: Path) -> tuple[Curves, dict[str, Any]]:
    with path.open("rb") as stream:
        header = stream.read(FILE_HEADER.size)
        if len(header) < FILE_HEADER.size or FILE_HEADER.unpack(header)[:2] != MAGIC:
            raise BadInput(f"{path} is not a SwanLab run file", expected="a file that a SwanLab SDK wrote")
        version = header[-1]
        records = _Records(stream)
        if version == 1:
            points, meta = _read_v1(records)
        elif version == 2:
            points, meta = _read_v2(records)
        else:
            raise Unavailable(
                f"{path} has format version {version}", expected="version 1 or 2", hint="update agentjet-skills"
            )
    meta.update(source=str(path), path=f"run file, format {version}", ends_early=records.broken or None)
    meta.setdefault("state", "UNFINISHED")
    meta["config"] = _config(path.parent)
    return points, meta


class _Records:
    """Iterates over a LevelDB log; ``broken`` says why it stopped before the end, if it did.

    A live run's file ends within a record: its writer flushes rarely.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.broken = ""

    def __iter__(self) -> Iterator[bytes]:
        whole = b""
        while True:
            left = BLOCK - self.stream.tell() % BLOCK
            if left < RECORD_HEADER.size:
                self.stream.read(left)
            start = self.stream.tell()
            header = self.stream.read(RECORD_HEADER.size)
            if not header:
                self.broken = "the last record is unfinished" if whole else ""
                return
            if len(header) < RECORD_HEADER.size:
                self.broken = f"the record at byte {start} is unfinished"
                return
            checksum, length, kind = RECORD_HEADER.unpack(header)
            data = self.stream.read(length)
            if len(data) < length:
                self.broken = f"the record at byte {start} is unfinished"
                return
            if kind not in (FULL, FIRST, MIDDLE, LAST) or zlib.crc32(data, zlib.crc32(bytes([kind]))) != checksum:
                self.broken = f"the record at byte {start} is damaged: what follows is lost"
                return
            whole = data if kind in (FULL, FIRST) else whole + data
            if kind in (FULL, LAST):
                yield whole
                whole = b""


def _read_v1(records: _Records) -> tuple[Curves, dict[str, Any]]:
    points: Curves = defaultdict(Points)
    meta: dict[str, Any] = {"run_id": "", "name": ""}
    for record in records:
        try:
            document = json.loads(record)
            kind, data = document["model_type"], document["data"]
            if kind == "Scalar":
                metric = data["metric"]
                points[data["key"]].add(data["step"], float(metric["data"]), _ms(metric["create_time"]))
            elif kind == "Experiment":
                meta.update(run_id=data.get("id") or "", name=data.get("name") or "")
            elif kind == "Project":
                meta["project"] = data.get("name")
            elif kind == "Header":
                meta["created"] = data.get("create_time")
            elif kind == "Footer":
                meta["state"] = "FINISHED" if data.get("success") else "CRASHED"
                meta["finished"] = data.get("create_time")
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            records.broken = "a record cannot be decoded: what follows is lost"
            break
    return points, meta


def _read_v2(records: _Records) -> tuple[Curves, dict[str, Any]]:
    try:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
        from swanlab.proto.swanlab.record.v1.record_pb2 import Record
    except ImportError:
        raise Unavailable(
            "this run file was written by swanlab 0.8 or later, and the installed SDK cannot read it",
            expected="swanlab 0.8 or later",
            hint="pip install -U 'swanlab<0.11'",
        ) from None
    points: Curves = defaultdict(Points)
    meta: dict[str, Any] = {"run_id": "", "name": ""}
    for content in records:
        record = Record()
        try:
            record.ParseFromString(content)
        except DecodeError:
            records.broken = "a record cannot be decoded: what follows is lost"
            break
        if record.HasField("scalar"):
            scalar = record.scalar
            stamp = scalar.timestamp.seconds * 1000 + scalar.timestamp.nanos / 1e6
            points[scalar.key].add(scalar.step, scalar.value.number, stamp)
        elif record.HasField("start"):
            start = record.start
            meta.update(run_id=start.id, name=start.name, project=start.project)
            meta["created"] = iso(start.started_at.seconds * 1000)
        elif record.HasField("finish"):
            names = record.finish.DESCRIPTOR.fields_by_name["state"].enum_type.values_by_number
            meta["state"] = names[record.finish.state].name.removeprefix("RUN_STATE_")
            meta["finished"] = iso(record.finish.finished_at.seconds * 1000)
    return points, meta


def _read_board(folder: Path) -> tuple[Curves, dict[str, Any]]:
    """Read the JSON lines of ``mode="local"``; their folders are numbered, the keys' names are kept elsewhere."""
    points: Curves = defaultdict(Points)
    for tag in sorted((child for child in (folder / "logs").iterdir() if child.is_dir()), key=lambda child: child.name):
        for file in sorted(tag.glob("*.log")):
            for line in file.read_text("utf-8", errors="replace").splitlines():
                try:
                    entry = json.loads(line)
                    point = (int(entry["index"]), float(entry["data"]), _ms(entry.get("create_time")))
                    points[f"logs/{tag.name}"].add(*point)
                except (ValueError, KeyError, TypeError, OverflowError):
                    continue  # an unfinished last line, or an entry that is no number
    meta = {"source": str(folder), "name": folder.name, "run_id": folder.name.rpartition("-")[2]}
    return points, {**meta, "path": "logs/ of local mode (keys are numbers)", "config": _config(folder)}


def _config(folder: Path) -> dict[str, Any]:
    import yaml

    try:
        document = yaml.safe_load((folder / "files" / "config.yaml").read_text("utf-8"))
    except (OSError, yaml.YAMLError):
        return {}
    return without_secrets(unwrapped(document)) if isinstance(document, dict) else {}


def _ms(moment: Any) -> float:
    try:
        return datetime.fromisoformat(str(moment).replace("Z", "+00:00")).timestamp() * 1000
    except ValueError:
        return float("nan")
