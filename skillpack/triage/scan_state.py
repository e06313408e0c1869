"""Keep a scan across processes: the next look at a growing log goes on where the last one stood."""

from __future__ import annotations

import math
from dataclasses import asdict, fields
from typing import Any

from skillpack.triage.seen import Scan, Seen, Sighting

KEPT_STEPS = 60
_PLAIN = ("offset", "lines", "steps", "first_step", "last_step", "last_step_line", "total_steps", "validations")


def to_json(scan: Scan) -> dict[str, Any]:
    """Return a scan as JSON data, with the last ``KEPT_STEPS`` steps; NaN and infinity become text."""
    return {
        **{name: getattr(scan, name) for name in _PLAIN},
        "seen": {id_: asdict(seen) for id_, seen in scan.seen.items()},
        "recent": [[step, _told(values)] for step, values in list(scan.recent)[-KEPT_STEPS:]],
        "earliest": [[step, _told(values)] for step, values in scan.earliest],
        "tail": list(scan.tail),
    }


def from_json(data: dict[str, Any]) -> Scan:
    """Return the scan that ``to_json`` wrote. Raises KeyError, TypeError or ValueError for anything else."""
    scan = Scan(**{name: data[name] for name in _PLAIN})
    for id_, entry in data["seen"].items():
        seen = Seen(entry["count"], entry["survived"])
        for interval in ("current", "previous", "first"):
            if entry[interval]:
                setattr(seen, interval, Sighting(**{one.name: entry[interval][one.name] for one in fields(Sighting)}))
        scan.seen[id_] = seen
    scan.recent.extend((step, _read(values)) for step, values in data["recent"])
    scan.earliest.extend((step, _read(values)) for step, values in data["earliest"])
    scan.tail.extend(data["tail"])
    return scan


def _told(values: dict[str, float]) -> dict[str, float | str]:
    return {key: value if math.isfinite(value) else repr(value) for key, value in values.items()}


def _read(values: dict[str, float | str]) -> dict[str, float]:
    return {key: float(value) for key, value in values.items()}
