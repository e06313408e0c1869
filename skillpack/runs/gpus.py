"""The GPUs of this machine, and leases on them: two runs that lease the same GPU cannot live at the same time."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from skillpack.runs.rundir import is_held, take_lock
from skillpack.script import BadInput

_NAME = re.compile(r"\d+|GPU-[0-9a-fA-F-]+|MIG-[\w/-]+")
"""What ``CUDA_VISIBLE_DEVICES`` takes: indices, or UUIDs as ``nvidia-smi -L`` shows them."""


class GpusBusy(Exception):
    """Another run of this user holds one of the GPUs."""


def read_gpus(text: str) -> str:
    """Return a list of GPUs as ``CUDA_VISIBLE_DEVICES`` wants it; "" shows none. Raises BadInput."""
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if wrong or len(set(names)) != len(names):
        what = f"{wrong[0]!r} is no GPU" if wrong else "a GPU is named twice"
        raise BadInput(f"{text!r}: {what}", expected="indices such as 0,1, or UUIDs as nvidia-smi -L shows them")
    return ",".join(names)


def missing_gpus(visible: str) -> list[str]:
    """Return the indices in a list of GPUs that this machine does not have; [] if it cannot be asked."""
    seen = nvidia_smi()
    there = {str(index) for index, _ in seen or []}
    return [name for name in visible.split(",") if name.isdigit() and name not in there] if seen else []


def nvidia_smi() -> list[tuple[int, float]] | None:
    """Return (index, free share of memory) of every GPU, or None if there is no working nvidia-smi."""
    query = ["nvidia-smi", "--query-gpu=index,memory.total,memory.used", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True)
        rows = [line.split(",") for line in done.stdout.splitlines() if line.strip()]
        return [(int(index), 1 - float(used) / float(total)) for index, total, used in rows]
    except (OSError, subprocess.SubprocessError, ValueError, ZeroDivisionError):
        return None


def leased(visible: str) -> str:
    """Return which of these GPUs somebody leases now, in words; "" if all are free."""
    return next((_told(gpu) for gpu in _names(visible) if is_held(_lock_of(gpu))), "")


def take_gpus(visible: str | None) -> list[int]:
    """Lease the GPUs named by a ``CUDA_VISIBLE_DEVICES`` text for the life of this process.

    Returns the descriptors that hold the leases. The kernel ends a lease with its holder.
    Raises GpusBusy naming the GPU.
    """
    leases: list[int] = []
    for gpu in _names(visible or ""):
        path = _lock_of(gpu)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        lease = take_lock(path)
        if lease is None:
            for handle in leases:
                os.close(handle)
            raise GpusBusy(_told(gpu))
        leases.append(lease)
    return leases


def _names(visible: str) -> list[str]:
    return sorted({name.strip() for name in visible.split(",") if name.strip()})


def _lock_of(gpu: str) -> Path:
    return Path(tempfile.gettempdir()) / f"agentjet-skills-{os.getuid()}" / f"gpu-{gpu.replace('/', '_')}.lock"


def _told(gpu: str) -> str:
    return f"GPU {gpu} is leased by another run"
