"""Read what docker, nvidia-ctk and the daemon's configuration said."""

from __future__ import annotations

import json
import re
from typing import Any

from skillpack.provision.observe import Answer
from skillpack.provision.signatures import recognise


def read_docker(version: Answer, info: Answer, ps: Answer, compose: Answer, path: Answer) -> dict[str, Any]:
    """Return what is known about Docker as a flat mapping.

    ``cli`` and ``server`` are versions or None; ``kind`` is engine, desktop, podman or None; ``fault`` is
    {id, cause, mend} when there is no usable daemon. The text of ``docker info`` is read (its labels
    have been the same since Docker 1.13), since a daemon that is down answers no template.
    """
    if version.rc == 127 and info.rc == 127:
        return _docker(fault={"id": "absent", "cause": "there is no docker command", "mend": "install Docker Engine"})
    podman = "Emulate Docker CLI using podman" in version.text + info.text or "podman" in version.out.lower()
    client, _, server = version.out.partition("\nServer:")
    kind = "podman" if podman else "desktop" if "Docker Desktop" in version.out + info.out else "engine"
    fault = recognise(f"{version.text}\n{info.text}", "docker") if version.rc or info.rc else None
    failed = fault._asdict() if fault else None
    if info.rc and not failed:
        last = (info.err.strip().splitlines() or ["no output"])[-1]
        failed = {"id": "failed", "cause": f"`docker info` failed: {last}", "mend": "look at `docker info` itself"}
    return _docker(
        cli=_first(r"^\s*Version:\s*(\S+)", client),
        server=_first(r"^\s*Version:\s*(\S+)", server) or _first(r"Server Version:\s*(\S+)", info.out),
        kind=kind if not failed else None,
        fault=failed,
        runtimes=(_first(r"^\s*Runtimes:\s*(.+)$", info.out) or "").split(),
        rootless=bool(re.search(r"^\s*rootless\s*$", info.out, re.MULTILINE)),
        cdi="CDI spec directories:" in info.out,
        storage=_first(r"^\s*Storage Driver:\s*(\S+)", info.out),
        root=_first(r"^\s*Docker Root Dir:\s*(\S.*?)\s*$", info.out),
        running=ps.out.split() if ps.rc == 0 else [],
        compose=_first(r"(\d+\.\d+[\d.]*)", compose.out) if compose.rc == 0 else None,
        snap=path.out.startswith("/snap/"),
        mirrors=_mirrors(info.out),
    )


def _docker(**known: Any) -> dict[str, Any]:
    blank: dict[str, Any] = {
        "cli": None, "server": None, "kind": None, "fault": None, "runtimes": [], "rootless": False, "cdi": False,
        "storage": None, "root": None, "running": [], "compose": None, "snap": False, "mirrors": [],
    }  # fmt: skip
    return {**blank, **known}


def _mirrors(info: str) -> list[str]:
    block = re.search(r"^ *Registry Mirrors:\n((?:  +\S+\n?)+)", info, re.MULTILINE)
    return block.group(1).split() if block else []


def read_toolkit(version: Answer, devices: Answer, config: Answer, old: Answer) -> dict[str, Any]:
    """Return the NVIDIA container toolkit: ``version`` or None, ``cdi_devices``, ``no_cgroups``, ``old_package``."""
    return {
        "version": _first(r"version\s+(\d+[\d.]*)", version.text) if version.rc == 0 else None,
        "cdi_devices": int(_first(r"Found (\d+) CDI devices", devices.text) or 0) if devices.rc == 0 else 0,
        "no_cgroups": bool(re.search(r"^\s*no-cgroups\s*=\s*true", config.out, re.MULTILINE)),
        "old_package": old.rc == 0 and "installed" in old.out,
    }


def read_daemon_json(answer: Answer) -> dict[str, Any]:
    """Return the daemon's configuration: ``present``, ``valid``, ``problem``, ``mirrors``, ``runtimes``."""
    blank: dict[str, Any] = {"present": False, "valid": True, "problem": "", "mirrors": [], "runtimes": []}
    if answer.rc != 0 or not answer.out.strip():
        return {**blank, "present": answer.rc == 0}
    try:
        config = json.loads(answer.out)
    except ValueError as error:
        return {**blank, "present": True, "valid": False, "problem": str(error)}
    if not isinstance(config, dict):
        return {**blank, "present": True, "valid": False, "problem": "it is not a JSON object"}
    runtimes = config.get("runtimes")
    mirrors = config.get("registry-mirrors")
    return {
        **blank,
        "present": True,
        "mirrors": mirrors if isinstance(mirrors, list) else [],
        "runtimes": sorted(runtimes) if isinstance(runtimes, dict) else [],
    }


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return found.group(1) if found else None
