"""What a run's logs have said so far, kept in ``progress.json`` so that every look reads only what is new."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillpack.files import write_atomically
from skillpack.runs.rundir import RunDir, read_json
from skillpack.triage.scan import scan_log
from skillpack.triage.scan_state import from_json, to_json
from skillpack.triage.seen import Scan


@dataclass
class Progress:
    """The scans of a run's logs by part, and what ``watch`` has told already."""

    run: RunDir
    run_id: str
    logs: dict[str, Path]
    scans: dict[str, Scan] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, run: RunDir, record: dict[str, Any]) -> Progress:
        """Return what is known of a run's logs; from the start if nothing is, or if it is of another attempt."""
        names = [part["name"] for part in record["parts"]]
        progress = cls(run, record["id"], {name: run.log_of(name, len(names)) for name in names})
        kept = read_json(run.path / "progress.json")
        if kept.get("run_id") == record["id"]:
            with suppress(KeyError, TypeError, ValueError):
                progress.scans = {name: from_json(data) for name, data in kept["scans"].items()}
                progress.told = dict(kept["told"])
        return progress

    def refresh(self, *, whole: bool = False) -> bool:
        """Read what the logs have gained; tell whether they have. ``whole``: they will not grow any more."""
        grown = False
        for name, log in self.logs.items():
            scan = self.scans.get(name, Scan())
            size = log.stat().st_size if log.exists() else 0
            if size < scan.offset:
                scan = Scan()  # somebody has cut the log: read it anew
            if size > scan.offset:
                before = scan.offset
                scan = scan_log(log, scan, whole=whole)
                grown = grown or scan.offset != before
            self.scans[name] = scan
        return grown

    def keep(self, *, told: bool = False) -> None:
        """Write ``progress.json``, with what has been told if ``told``, else with what the file says of that.

        A full disk is no reason to fail: the next look reads more.
        """
        kept = read_json(self.run.path / "progress.json")
        if not told and kept.get("run_id") == self.run_id:
            self.told = kept.get("told", {})
        document = {
            "run_id": self.run_id,
            "scans": {name: to_json(scan) for name, scan in self.scans.items()},
            "told": self.told,
        }
        with suppress(OSError):
            write_atomically(self.run.path / "progress.json", json.dumps(document) + "\n")

    def size(self) -> int:
        """Return the size of all logs in bytes."""
        return sum(log.stat().st_size for log in self.logs.values() if log.exists())

    @property
    def steps(self) -> int:
        """The number of metric lines."""
        return sum(scan.steps for scan in self.scans.values())

    @property
    def main(self) -> Scan:
        """The scan of the log that has the steps."""
        return max(self.scans.values(), key=lambda scan: (scan.steps, scan.lines), default=Scan())
