"""Choices of the recipes that install into a Python environment."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillpack.provision import mirrors
from skillpack.provision.data import FOLDER as DATA
from skillpack.provision.expressions import at_least, older_than
from skillpack.provision.payload.pick_flash_attn import choose as choose_flash_attn

GIB_PER_BUILD_JOB = 5
"""Memory of one nvcc thread in a flash-attn build. flash-attention's setup.py divides the free memory by
5 GB x NVCC_THREADS; its pull request 2079 measured 81 GB for MAX_JOBS=4 with 4 threads each."""
MEMORY_SHARE = 0.7
"""Part of the free memory that a build may take: without a margin an 880 GB host was driven to a reboot
(flash-attention issue 2493)."""
JOB_MINUTES = 160
"""Minutes of one build job for one architecture (AgentJet's notes: over 40 with 4 jobs)."""
SMALLEST_BUILD = 7
"""Minutes that a build takes however many jobs it has (AgentJet's notes, 256 jobs)."""


def choose_client(a: Mapping[str, Any], m: Mapping[str, Any], workdir: Path) -> dict[str, Any]:
    """Return what the client recipe needs: where AgentJet comes from, which Python and how its environment is made."""
    python, version = pick_python(a["python"], m["pythons"])
    has_venv = python in m["venv"]
    named = re.fullmatch(r"python3\.\d+", Path(python).name)
    return {
        **_source(a, m, workdir),
        "python": python,
        "python_version": version or "3.12",
        "has_venv": has_venv,
        "venv_package": f"{named.group()}-venv" if named else "python3-venv",
        "uv": bool(m["uv"]) and not (python and has_venv),
    }


def choose_conda(a: Mapping[str, Any], m: Mapping[str, Any], workdir: Path, stack: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the conda recipe needs: source, conda command, mirrors, pins, and how a flash-attn build would go."""
    jobs = a["max_jobs"] or build_jobs(m["cpus"], m["free_memory_gib"])
    capabilities = sorted({gpu["compute_cap"] for gpu in m["gpus"] if gpu["compute_cap"]})
    tool = next((name for name in ("conda", "mamba", "micromamba") if name in m["conda"]), "uv" if m["uv"] else "")
    channel, miniforge = (mirrors.choose(kind, a["china"], m["network"]) for kind in ("conda", "miniforge"))
    flash_attn = expected_flash_attn(stack, m)
    github = m["network"].get("github/github.com", {}).get("reachable")
    no_github = flash_attn == "wheel" and github is False and not a["github_mirror"]
    return {
        **_source(a, m, workdir),
        "conda": tool,
        "conda_command": tool or str(workdir / "miniforge" / "bin" / "conda"),
        "channel": channel["use"],
        "conda_mirror": channel,
        "miniforge": miniforge["use"],
        "miniforge_silent": miniforge["silent"],
        "pins": {} if a["stack"] == "checkout" else stack["pins"],
        "max_jobs": jobs,
        "build_minutes": max(SMALLEST_BUILD, round(JOB_MINUTES * max(1, len(capabilities)) / jobs)),
        "archs": ";".join(sorted({f"{capability.split('.')[0]}0" for capability in capabilities})),
        "flash_attn": flash_attn,
        "expect_build": not a["flash_attn_wheel"] and (flash_attn == "source" or no_github),
    }


def _source(a: Mapping[str, Any], m: Mapping[str, Any], workdir: Path) -> dict[str, Any]:
    clone = bool(re.match(r"(https?|git|ssh)://|[\w.-]+@[\w.-]+:", a["source"]))
    # a folder for each revision: a clone that is there already must not pass for another one
    folder = "AgentJet" + (f"-{a['ref']}".replace("/", "-") if a["ref"] else "")
    checkout = str(workdir / folder if clone else Path(a["source"]).expanduser().absolute())
    index = mirrors.choose("pypi", a["china"], m["network"])
    if a["index_url"]:
        index = {"name": "--index-url", "use": a["index_url"], "mirror": False, "reason": "asked for", "silent": False}
    elif m["pip_index"] and a["china"] == "auto":
        reason = f"pip is set to {_shown(m['pip_index'])}"
        index = {"name": "pip's own", "use": "", "mirror": False, "reason": reason, "silent": False}
    use = "" if index["name"] == "pypi.org" else index["use"]
    return {
        "clone": clone,
        "checkout": checkout,
        "env_python": a["env"] + "/bin/python",
        "pypi": index,
        "index": f" --index-url {shlex.quote(use)}" if use else "",
    }


def pick_python(asked: str, pythons: Mapping[str, str]) -> tuple[str, str]:
    """Return (command, version) of an interpreter that AgentJet accepts (3.10 to 3.12), or two empty texts."""
    if asked:
        return asked, pythons.get(asked, "")
    for command, version in pythons.items():
        if at_least(version, "3.10") and older_than(version, "3.13"):
            return command, version
    return "", ""


def expected_flash_attn(stack: Mapping[str, Any], machine: Mapping[str, Any]) -> str:
    """Return how flash-attn is expected to come for a stack on a machine: wheel, index or source.

    PyPI's torch has the new C++ ABI from 2.7 on (flash-attention's publish.yml); the step itself reads it.
    """
    here = {
        "torch": stack["pins"]["torch"],
        "cuda": stack["cuda"],
        "python": "cp" + stack["python"].replace(".", ""),
        "abi": "FALSE" if older_than(stack["pins"]["torch"], "2.7") else "TRUE",
        "arch": machine["arch"] or "x86_64",
        "glibc": machine["glibc"] or "",
    }
    return str(choose_flash_attn(load_wheels(), here, stack["flash_attn"])["kind"])


def load_wheels() -> Any:
    """Return the table of flash-attn's wheels."""
    return json.loads((DATA / "flash_attn_wheels.json").read_text(encoding="utf-8"))


def build_jobs(cpus: int | None, free_gib: float | None) -> int:
    """Return MAX_JOBS for a flash-attn build with NVCC_THREADS=1: half the cores, or what the memory carries."""
    by_cores = max(1, (cpus or 2) // 2)
    by_memory = int(MEMORY_SHARE * (free_gib or 0) // GIB_PER_BUILD_JOB)
    return max(1, min(by_cores, by_memory))


def _shown(url: str) -> str:
    return re.sub(r"^\w+://([^/@]*@)?([^/]+).*$", r"\2", url)
