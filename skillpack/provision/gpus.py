"""Read what nvidia-smi said, on good machines and on broken ones."""

from __future__ import annotations

import csv
import re
from typing import Any

from skillpack.provision.data import load
from skillpack.provision.observe import Answer
from skillpack.provision.signatures import recognise
from skillpack.script import BadInput

# R610 renamed both fields of the header
_DRIVER = re.compile(r"(?:Driver|KMD) Version:\s*([\d.]+)")
_CUDA = re.compile(r"CUDA(?:\s+UMD)?\s+Version\s*:\s*(\d+\.\d+)")
_USE = re.compile(r"(\d+)MiB\s*/\s*(\d+)MiB")
_ROW = re.compile(r"^\|\s+(\d+)\s+(\S.*?)\s+(?:On|Off)\s+\|", re.MULTILINE)
_SLICE = re.compile(r"^\s+MIG\s+(\S+)\s", re.MULTILINE)

_ONE = r"(\d+(:\d+)?|(GPU|MIG)-[0-9a-fA-F-]+)"
_ASKED = re.compile(rf"all|[1-9]\d*|{_ONE}(,{_ONE})+|\d+:\d+|(GPU|MIG)-[0-9a-fA-F-]+")


def asked_gpus(asked: str) -> tuple[int | None, list[str]]:
    """Return (count, ids) of an answer: a count, or ids (indices, MIG slices, UUIDs), or neither for ``all``.

    Raises BadInput on what Docker's ``--gpus`` could not take either.
    """
    if not _ASKED.fullmatch(asked):
        raise BadInput(f"--gpus: {asked!r}", expected="all, a count (4), indices (0,1), or MIG slices (0:0)")
    if asked == "all" or asked.isdigit():
        return (int(asked) if asked.isdigit() else None), []
    ids = asked.split(",")
    if len(set(ids)) < len(ids):
        raise BadInput(f"--gpus: {asked!r} names a card twice", expected="each index once, as 0,1")
    return None, ids


def read_gpus(table: Answer, query: Answer, listing: Answer) -> dict[str, Any]:
    """Return ``gpus``, ``driver``, ``cuda``, ``mig`` and ``gpu_fault`` from three calls of nvidia-smi.

    ``gpus`` is a list of {index, name, memory_mib, used_mib, compute_cap}; numbers that the tool would
    not say are None. ``cuda`` is the newest CUDA that the driver runs. ``mig`` is {enabled, slices}.
    ``gpu_fault`` is {id, cause, mend} or None; ``absent`` means that there is no nvidia-smi.
    """
    empty: dict[str, Any] = {"gpus": [], "driver": None, "cuda": None, "mig": {"enabled": False, "slices": []}}
    if table.rc == 127 and query.rc == 127:
        absent = {
            "id": "absent",
            "cause": "there is no nvidia-smi: no NVIDIA driver on this machine",
            "mend": "install the NVIDIA driver (the owner's decision), or use install-client on a machine without GPU",
        }
        return {**empty, "gpu_fault": absent}
    if fault := _fault(table, query):
        return {**empty, "gpu_fault": fault}
    used = [int(use) for use, _ in _USE.findall(table.out.split("MIG devices:")[0])]
    gpus = _from_query(query.out) if query.rc == 0 else []
    gpus = gpus or _from_table(table.out)
    for gpu, use in zip(gpus, used, strict=False):
        gpu["used_mib"] = use
    driver = _DRIVER.search(table.out)
    cuda = _CUDA.search(table.out)
    return {
        "gpus": gpus,
        "driver": driver.group(1) if driver else _queried_driver(query.out),
        "cuda": cuda.group(1) if cuda else None,
        "mig": {
            "enabled": "MIG devices:" in table.out or "No MIG devices" in table.out,
            "slices": _SLICE.findall(listing.out),
        },
        "gpu_fault": None if gpus else {
            "id": "unreadable",
            "cause": "nvidia-smi named no card that could be read",
            "mend": "look at `nvidia-smi` itself",
        },
    }  # fmt: skip


def _fault(table: Answer, query: Answer) -> dict[str, str] | None:
    known = recognise(table.text, "smi") or (recognise(query.text, "smi") if query.rc else None)
    if known:
        return known._asdict()
    if table.rc not in (0, 127):
        last = (table.text.strip().splitlines() or ["no output"])[-1]
        return {
            "id": "failed",
            "cause": f"nvidia-smi ended with code {table.rc}: {last}",
            "mend": "repair the NVIDIA driver",
        }
    return None


def _from_query(text: str) -> list[dict[str, Any]]:
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]
    if not rows or "name" not in rows[0]:
        return []
    gpus: list[dict[str, Any]] = []
    for row in rows[1:]:
        cells = dict(zip(rows[0], row, strict=False))
        name = cells.get("name", "")
        memory = re.match(r"\d+", cells.get("memory.total [MiB]", ""))
        capability = cells.get("compute_cap", "")
        gpus.append(
            {
                "index": int(cells["index"]) if cells.get("index", "").isdigit() else len(gpus),
                "name": name,
                "memory_mib": int(memory.group()) if memory else None,
                "used_mib": None,
                "compute_cap": capability if re.fullmatch(r"\d+\.\d+", capability) else compute_capability(name),
            }
        )
    return gpus


def _from_table(text: str) -> list[dict[str, Any]]:
    totals = [int(total) for _, total in _USE.findall(text.split("MIG devices:")[0])]
    rows = _ROW.findall(text)
    return [
        {
            "index": int(index),
            "name": name,
            "memory_mib": totals[place] if len(totals) == len(rows) else None,
            "used_mib": None,
            "compute_cap": compute_capability(name),
        }
        for place, (index, name) in enumerate(rows)
    ]


def _queried_driver(text: str) -> str | None:
    found = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\s*$", text, re.MULTILINE)
    return found.group(1) if found else None


def compute_capability(name: str) -> str | None:
    """Return the compute capability of a card by its name, or None if the card is unknown."""
    for card in load("cards"):
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(card['name'])}", name):
            return str(card["compute_cap"])
    return None
