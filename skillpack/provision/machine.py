"""Turn a raw observation into what is known about the machine."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from skillpack.provision.containers import read_daemon_json, read_docker, read_toolkit
from skillpack.provision.gpus import read_gpus
from skillpack.provision.observe import Answer, Observation, disk_key, head_key, probe_commands

NOT_ASKED = Answer(127, err="not asked")
GIB = 1024**3
PYTHON_VERSION = r"Python (\d+\.\d+\.\d+)"
DOCKER_PROBES = ("docker_version", "docker_info", "docker_ps", "compose", "docker_path")
PYTHONS = {"python3": "", "python3.12": "_12", "python3.11": "_11", "python3.10": "_10"}
"""Interpreters to look for, the one that people call by default first, and how their probes end."""


def describe(
    observation: Observation,
    recipe: str,
    context: Mapping[str, Any],
    places: Mapping[str, str],
    urls: Mapping[str, str],
) -> dict[str, Any]:
    """Return the machine as plain data: what the conditions of checks and recipes speak about.

    ``places`` maps names to folders whose disk was asked about, ``urls`` names to addresses. What an
    observation does not hold is None or empty, never guessed.
    """
    keys = {name: " ".join(argv) for name, (argv, _) in probe_commands(recipe, context).items()}
    raw = observation.commands
    answers = {name: raw.get(key, NOT_ASKED) for name, key in keys.items()}
    said = defaultdict(lambda: NOT_ASKED, answers)
    proxies = {name: text for name, text in observation.environment.items() if name.lower().endswith("_proxy")}
    environment = {name: text for name, text in observation.environment.items() if name not in proxies}
    docker = read_docker(*(said[name] for name in DOCKER_PROBES))
    return {
        **_host(said, environment),
        **_user(said),
        **_pythons(said, environment, context.get("a", {}).get("python", "")),
        "env": read_env(context.get("a", {}).get("env", ""), said),
        **read_gpus(said["smi"], said["smi_query"], said["smi_list"]),
        "nvcc": version_in(said["nvcc"], r"release (\d+\.\d+),"),
        "docker": docker,
        "toolkit": read_toolkit(said["toolkit"], said["cdi"], said["toolkit_config"], said["nvidia_docker2"]),
        "daemon_json": read_daemon_json(said["own_daemon_json" if docker["rootless"] else "daemon_json"]),
        "disks": {name: read_disk(raw.get(disk_key(name), NOT_ASKED), path) for name, path in places.items()},
        "network": {name: read_head(raw.get(head_key(url), NOT_ASKED), url) for name, url in urls.items()},
        "proxies": {name.lower(): value for name, value in proxies.items()},
        "environment": environment,
    }


def _host(said: Mapping[str, Answer], environment: Mapping[str, str]) -> dict[str, Any]:
    kernel = said["kernel"].out.strip()
    banner = said["glibc"].text.strip().splitlines()[:1]
    limits = (said["cgroup2_memory"], said["cgroup1_memory"])
    return {
        "system": said["system"].out.strip() or None,
        "arch": said["arch"].out.strip() or None,
        "kernel": kernel or None,
        "wsl": "microsoft" in kernel.lower() or "WSL_DISTRO_NAME" in environment,
        "os": read_os(said["os"].out),
        "glibc": version_in(Answer(0, *banner), r"\b(\d+\.\d+)$") if banner else None,
        **read_resources(said["cpus"], said["memory"], limits, said["cgroup2_cpus"]),
        "container": bool(said["container_mark"].out.strip()),
        "shm_mib": size_in(said["shm"], column=1, unit=1024),
        "listening": read_listening(said["listening4"].out + said["listening6"].out),
        "selinux": said["selinux"].out.strip() or None,
        "driver_module": version_in(said["driver_module"], r"Kernel Module\s+(?:for \S+\s+)?(\d+[\d.]*)"),
    }


def _user(said: Mapping[str, Answer]) -> dict[str, Any]:
    sudo = said["sudo"]
    return {
        "root": said["uid"].out.strip() == "0",
        "groups": said["groups"].out.split(),
        "sudo": "yes" if sudo.rc == 0 else "absent" if sudo.rc == 127 else "password",
        "tools": {name: said[name].rc == 0 for name in ("git", "curl", "apt", "dnf")},
    }


def _pythons(said: Mapping[str, Answer], environment: Mapping[str, str], asked: str) -> dict[str, Any]:
    ends = {**PYTHONS, **({asked: "_asked"} if asked else {})}
    pythons = {command: version_in(said["python" + end], PYTHON_VERSION) for command, end in ends.items()}
    index = said["pip_index"].out.strip() if said["pip_index"].rc == 0 else ""
    condas = {name: version_in(said[name], r"(\d+\.\d+[\d.]*)") for name in ("conda", "mamba", "micromamba")}
    return {
        "python": pythons["python3"],
        "pythons": {command: version for command, version in pythons.items() if version},
        "venv": [command for command, end in ends.items() if said["venv" + end].rc == 0],
        "pip_index": environment.get("PIP_INDEX_URL") or index or None,
        "ajet": said["ajet"].out.strip() if said["ajet"].rc == 0 else None,
        "conda": {name: version for name, version in condas.items() if version},
        "uv": version_in(said["uv"], r"uv (\d+[\d.]*)"),
    }


def read_env(path: str, said: Mapping[str, Answer]) -> dict[str, Any]:
    """Return what is at the place of a Python environment.

    ``exists`` (anything but an empty folder), ``folder``, ``kind`` (venv, conda, base for conda's own installation,
    or empty), ``python`` (its version or None) and ``pip`` (whether it has one).
    """
    there = set(said["env_parts"].out.splitlines()) if path else set()
    folder = f"{path}/." in there
    marks = (("condabin", "base"), ("conda-meta", "conda"), ("pyvenv.cfg", "venv"))
    return {
        "exists": path in there and not (folder and said["env_content"].rc == 0 and not said["env_content"].out),
        "folder": folder,
        "kind": next((kind for mark, kind in marks if f"{path}/{mark}" in there), ""),
        "python": version_in(said["env_version"], PYTHON_VERSION),
        "pip": said["env_pip"].rc == 0,
    }


def read_os(text: str) -> dict[str, str]:
    """Return id, version and name from /etc/os-release; empty texts where unknown."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    clean = {key: value.strip().strip("\"'") for key, value in values.items()}
    return {
        "id": clean.get("ID", ""),
        "like": clean.get("ID_LIKE", ""),
        "version": clean.get("VERSION_ID", ""),
        "codename": clean.get("VERSION_CODENAME", ""),
        "name": clean.get("PRETTY_NAME", ""),
    }


def read_resources(cpus: Answer, memory: Answer, limits: Iterable[Answer], quota: Answer) -> dict[str, Any]:
    """Return cores and memory as this process may use them (cgroup limits counted), in GiB, None if unknown."""
    total = version_in(memory, r"MemTotal:\s+(\d+)")
    free = version_in(memory, r"MemAvailable:\s+(\d+)")
    limit = next((int(answer.out) for answer in limits if answer.rc == 0 and answer.out.strip().isdigit()), None)
    if limit is not None and total and limit >= int(total) * 1024:
        limit = None  # cgroup v1 writes a number near 2**63 for "no limit"
    cores = int(cpus.out) if cpus.out.strip().isdigit() else None
    share = re.match(r"(\d+) (\d+)", quota.out)
    if cores and share:
        cores = max(1, min(cores, int(share.group(1)) // int(share.group(2))))
    available = int(free) * 1024 if free else None
    usable = min(value for value in (available, limit) if value is not None) if available or limit else None
    return {
        "cpus": cores,
        "memory_gib": round(int(total) * 1024 / GIB, 1) if total else None,
        "free_memory_gib": round(usable / GIB, 1) if usable is not None else None,
        "cgroup_gib": round(limit / GIB, 1) if limit is not None else None,
    }


def read_listening(table: str) -> list[int]:
    """Return the TCP ports in state LISTEN (0A) of /proc/net/tcp and tcp6, sorted."""
    return sorted(
        {int(port, 16) for port in re.findall(r"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ 0A ", table, re.MULTILINE)}
    )


def read_disk(answer: Answer, path: str) -> dict[str, Any]:
    """Return {path, mount, free_gib} of the file system under a folder from ``df -Pk``; None where unknown."""
    lines = answer.out.strip().splitlines()
    return {
        "path": path,
        "mount": lines[-1].split()[-1] if answer.rc == 0 and len(lines) > 1 else None,
        "free_gib": size_in(answer, column=3, unit=1024**2),
    }


def read_head(answer: Answer, url: str) -> dict[str, Any]:
    """Return {url, reachable, seconds, why}: any HTTP answer below 500 counts, a registry says 401 to strangers."""
    found = re.match(r"(\d{3}) ([\d.]+)", answer.out)
    status, seconds = (int(found.group(1)), float(found.group(2))) if found else (0, 0.0)
    reachable = None if answer is NOT_ASKED else 0 < status < 500
    why = answer.err.strip().splitlines()[-1] if answer.err.strip() and not reachable else ""
    return {"url": url, "reachable": reachable, "seconds": round(seconds, 3) if reachable else None, "why": why}


def names_of(gpus: Iterable[Mapping[str, Any]]) -> str:
    """Return cards as people count them: ``8x NVIDIA H100 80GB HBM3``."""
    names = [str(gpu["name"]) for gpu in gpus]
    return ", ".join(f"{names.count(name)}x {name}" for name in dict.fromkeys(names))


def version_in(answer: Answer, pattern: str) -> str | None:
    """Return the first group of a pattern in what a command said on either stream, or None; None if it failed."""
    found = re.search(pattern, answer.text, re.MULTILINE) if answer.rc == 0 else None
    return found.group(1) if found else None


def size_in(answer: Answer, *, column: int, unit: int) -> float | None:
    """Return a column of the last line of ``df -Pk`` in ``unit`` kilobytes, or None."""
    lines = answer.out.strip().splitlines()
    if answer.rc or len(lines) < 2:
        return None
    cells = lines[-1].split()
    return round(int(cells[column]) / unit, 1) if len(cells) > column and cells[column].isdigit() else None
