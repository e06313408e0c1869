"""Checks of the machine that a run shall use: GPUs, disk, tracker, tmux."""

from __future__ import annotations

import netrc
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skillpack.blueprint.lint import FAIL, OK, WARN, Check
from skillpack.blueprint.lint_files import is_reference, probe_python
from skillpack.blueprint.model import Blueprint
from skillpack.blueprint.paths import FILE, FOLDER, at_home, is_there, kind
from skillpack.script import ScriptError

FREE_SHARE = 0.95
"""What AgentJet's own check before a start asks of every GPU."""
BYTES_PER_PARAMETER = 4 + 8
"""A verl FSDP checkpoint: parameters in float32, Adam's two moments in float32."""


def values_of(blueprint: Blueprint) -> dict[str, Any]:
    """Return the configuration's effective values by dotted key; {} if it cannot be read."""
    from skillpack.config.sources import read_sources

    if blueprint.yaml_path is None or kind(blueprint.yaml_path) != FILE:
        return {}
    try:
        return read_sources(blueprint.yaml_path)[0].config
    except (ScriptError, OSError):
        return {}


def is_rehearsal(blueprint: Blueprint) -> bool:
    """Tell whether the commands use no GPU: the debug backbone, or this pack's reference server."""
    commands = " ".join([*blueprint.commands, blueprint.server_command or ""])
    if re.search(r"--backbone[ =]debug|skills engine", commands):
        return True
    told = probe_python(blueprint.venv_exe, blueprint.codebase_dir) if blueprint.venv_exe else None
    return "ajet.swarm_cli" in commands and is_reference(told)


def gpus(blueprint: Blueprint) -> Iterator[Check]:
    """There are as many free GPUs as the configuration asks for."""
    from skillpack.runs.gpus import nvidia_smi

    if is_rehearsal(blueprint) or (blueprint.server_url and not blueprint.server_command):
        return
    values = values_of(blueprint)
    wanted = values.get("ajet.trainer_common.n_gpus_per_node")
    seen = nvidia_smi()
    if seen is None:
        yield Check("gpus", WARN, "nvidia-smi does not answer here", "a real training needs GPUs; a rehearsal does not")
        return
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        seen = [gpu for gpu in seen if str(gpu[0]) in visible.split(",")]
    busy = [gpu for gpu in seen if gpu[1] < FREE_SHARE]
    if isinstance(wanted, int) and len(seen) < wanted:
        yield Check(
            "gpus",
            FAIL,
            f"{len(seen)} GPUs are visible, n_gpus_per_node is {wanted}",
            "lower n_gpus_per_node, or show more GPUs",
        )
    elif busy:
        told = ", ".join(f"GPU {index} {share:.0%} free" for index, share in busy)
        yield Check("gpus", FAIL, f"not free: {told}", "nvidia-smi names the processes; stop your own old run")
    else:
        yield Check("gpus", OK, f"{len(seen)} GPUs are free" + (f", {wanted} are asked for" if wanted else ""))


def disk(blueprint: Blueprint) -> Iterator[Check]:
    """The disk holds the checkpoints that the configuration will write, as far as their size is known."""
    values = values_of(blueprint)
    base = values.get("ajet.trainer_common.checkpoint_base_dir")
    folder = (blueprint.codebase_dir or Path.cwd()) / str(base) if base else blueprint.result_dir
    if folder is None:
        return
    existing = next(path for path in (folder, *folder.parents) if is_there(path))
    free = shutil.disk_usage(existing).free
    parameters, source = _parameters(str(values.get("ajet.model.path", "")))
    count = 0 if is_rehearsal(blueprint) else _checkpoints(values)
    if free < 1 << 30:
        yield Check("disk", FAIL, f"{existing} has {_gib(free)} free", "make room, or write elsewhere")
    elif count == 0:
        yield Check("disk", OK, f"{existing} has {_gib(free)} free; a rehearsal's checkpoints are small")
    elif parameters is None or count is None:
        what = "the model's size" if parameters is None else "how many checkpoints are written"
        yield Check("disk", OK, f"{existing} has {_gib(free)} free; what checkpoints need is not known ({what})")
    else:
        needed = parameters * BYTES_PER_PARAMETER * count
        told = (
            f"{count} checkpoints x {parameters / 1e9:.1f} billion parameters ({source}) x {BYTES_PER_PARAMETER} bytes "
            f"= {_gib(needed)}; {existing} has {_gib(free)} free"
        )
        mend = "keep fewer (trainer.max_actor_ckpt_to_keep), save less often (ajet.trainer_common.save_freq)"
        yield Check("disk", OK if needed < free else WARN, told, "" if needed < free else mend)


def _checkpoints(values: dict[str, Any]) -> int | None:
    """Return how many checkpoints are on disk at the end: limited by what is kept, else every ``save_freq`` steps."""
    kept = values.get("trainer.max_actor_ckpt_to_keep")
    total, every = (values.get(f"ajet.trainer_common.{key}") for key in ("total_training_steps", "save_freq"))
    if isinstance(every, int) and every <= 0:
        return 1  # verl still saves the last step
    written = -(-total // every) if isinstance(total, int) and isinstance(every, int) else None
    known = [number for number in (kept, written) if isinstance(number, int)]
    return min(known) if known else None


def _parameters(model: str) -> tuple[float | None, str]:
    """Return a model's parameters and where the number comes from: its weight files (16 bit), or its name."""
    folder = at_home(model)
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors")) if kind(folder) == FOLDER else 0
    if size:
        return size / 2, "from its weight files"
    named = re.search(r"(?<![\d.])(\d+(?:\.\d+)?)[bB](?![a-zA-Z])", Path(model).name)
    return (float(named[1]) * 1e9, "as its name says") if named else (None, "")


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"


def tracker(blueprint: Blueprint) -> Iterator[Check]:
    """The tracker that the configuration names has its key."""
    logger = values_of(blueprint).get("ajet.trainer_common.logger")
    if "swanlab" not in str(logger) or os.environ.get("SWANLAB_MODE") in ("local", "offline", "disabled"):
        return
    if os.environ.get("SWANLAB_API_KEY") or _has_login():
        yield Check("tracker", OK, "a SwanLab key is there")
    else:
        mend = "export SWANLAB_API_KEY before run.py start, or set ajet.trainer_common.logger to tensorboard"
        yield Check("tracker", WARN, "the logger is swanlab, and there is no SWANLAB_API_KEY", mend)


def _has_login() -> bool:
    try:
        return bool(netrc.netrc(Path.home() / ".swanlab" / ".netrc").hosts)
    except (OSError, netrc.NetrcParseError):
        return False


def window(_: Blueprint) -> Iterator[Check]:
    """There is a tmux to look through; without one a run works the same."""
    if shutil.which("tmux"):
        yield Check("tmux", OK, "tmux is there")
    else:
        yield Check("tmux", WARN, "there is no tmux", "the run works without a window; its log is console.log")
