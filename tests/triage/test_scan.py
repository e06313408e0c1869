"""Scanning in pieces, across processes and while the log grows gives what one look gives."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from skillpack.triage import scan as scan_module
from skillpack.triage.lines import clean, repeats, writer
from skillpack.triage.needles import Needles, line_end
from skillpack.triage.scan import scan_log
from skillpack.triage.scan_state import from_json, to_json
from skillpack.triage.seen import Scan
from skillpack.triage.signatures import by_anchor

CORPUS = Path(__file__).parent / "corpus"
LOGS = sorted(CORPUS.glob("*/*.log"))


def summary(scan: Scan) -> dict[str, object]:
    return {
        "lines": scan.lines,
        "steps": scan.steps,
        "last": scan.last_step,
        "seen": {id_: (seen.count, seen.current and seen.current.line) for id_, seen in scan.seen.items()},
    }


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_pieces_make_no_difference(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = summary(scan_log(log))
    monkeypatch.setattr(scan_module, "PIECE", 1500)
    assert summary(scan_log(log)) == whole


def test_a_growing_log_is_read_on_across_processes(tmp_path: Path) -> None:
    data = (CORPUS / "failing" / "oom_in_update.log").read_bytes()
    log = tmp_path / "console.log"
    scan = Scan()
    for cut in range(0, len(data), 700):
        log.write_bytes(data[: cut + 700])
        scan = from_json(json.loads(json.dumps(to_json(scan_log(log, scan, whole=False)))))
    scan = scan_log(log, scan)
    assert scan.steps == 7
    assert scan.seen["gpu-oom-train"].current is not None
    assert scan.seen["nccl-watchdog"].count == 7


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("\x1b[36m(WorkerDict pid=31, ip=10.0.0.1)\x1b[0m ValueError: x [repeated 7x across cluster]", "ValueError: x"),
        ("[rank3]: Traceback (most recent call last):", "Traceback (most recent call last):"),
        ("2026-03-02 09:14:07.112 | ERROR    | ajet.launcher:main:231 - it broke", "it broke"),
        ("[client-1] Killed", "Killed"),
        ("Rollout:  9%|#         | 9/100 [00:09<00:10,  9.1it/s] OSError: [Errno 28] x", "OSError: [Errno 28] x"),
        ("Step 1/3\rStep 2/3\rdone", "done"),
        ("(EngineCore_0 pid=7) (Worker pid=8) RuntimeError: y", "RuntimeError: y"),
    ],
)
def test_a_line_is_cleaned_to_its_message(line: str, text: str) -> None:
    assert clean(line) == text


def test_repetitions_and_writers_are_read() -> None:
    line = "(WorkerDict pid=31) boom [repeated 7x across cluster]"
    assert repeats(line) == 8
    assert writer(line) == "WorkerDict pid=31"


def test_a_line_without_end_is_read_once_it_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("Kil")
    scan = scan_log(log, whole=False)
    log.write_text("Killed\n")
    assert scan_log(log, scan, whole=False).seen["killed-137"].count == 1


def test_an_archive_that_is_cut_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    import gzip

    packed = gzip.compress(b"Killed\n" + bytes(range(256)) * 4000)
    log = tmp_path / "x.log.gz"
    log.write_bytes(packed[:-20])
    assert "killed-137" in scan_log(log).seen


def test_bytes_that_are_no_text_and_endless_lines_do_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "PIECE", 4096)
    log = tmp_path / "x.log"
    log.write_bytes(b"\x00\xff\xfe" * 9000 + b"rror" * 5000 + b"\nKilled\n")
    assert scan_log(log).seen["killed-137"].current.line == 2  # type: ignore[union-attr]


@pytest.mark.parametrize("log", LOGS[::4], ids=lambda log: log.stem)
def test_without_numpy_the_result_is_the_same(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = log.read_bytes()
    fast = Needles(by_anchor()).lines(block)
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert Needles(by_anchor()).lines(block) == fast
    for start, texts in fast.items():
        line = block[start : line_end(block, start)].decode()
        assert all(text in line for text in texts)
