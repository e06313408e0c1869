"""Leases on GPUs of this machine: two runs that lease the same GPU cannot live at the same time."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from skillpack.runs.rundir import take_lock


class GpusBusy(Exception):
    """Another run of this user holds one of the GPUs."""


def gpus_are_free(visible: str) -> bool:
    """Tell whether nobody leases one of these GPUs now."""
    try:
        leases = take_gpus(visible)
    except GpusBusy:
        return False
    for lease in leases:
        os.close(lease)
    return True


def take_gpus(visible: str | None) -> list[int]:
    """Lease the GPUs named by a ``CUDA_VISIBLE_DEVICES`` text for the life of this process.

    Returns the descriptors that hold the leases. The kernel ends a lease with its holder.
    Raises GpusBusy naming the GPU.
    """
    folder = Path(tempfile.gettempdir()) / f"agentjet-skills-{os.getuid()}"
    leases: list[int] = []
    for gpu in sorted({name.strip() for name in (visible or "").split(",") if name.strip()}):
        folder.mkdir(mode=0o700, exist_ok=True)
        lease = take_lock(folder / f"gpu-{gpu.replace('/', '_')}.lock")
        if lease is None:
            for handle in leases:
                os.close(handle)
            raise GpusBusy(f"GPU {gpu} is leased by another run")
        leases.append(lease)
    return leases
