"""Choices of the recipe that runs a container."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from skillpack.provision import mirrors
from skillpack.provision.data import load
from skillpack.provision.expressions import at_least
from skillpack.script import BadInput


def choose_docker(a: Mapping[str, Any], m: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the docker recipe needs: commands, registries, GPU flags, paths and ports."""
    docker = m["docker"]
    fault = (docker["fault"] or {}).get("id")
    absent, down = fault == "absent", fault == "docker.down"
    kind = docker["kind"] or ("engine" if absent or down else None)
    own_engine = kind == "engine" and not docker["snap"]
    new_engine = absent or at_least(docker["server"], "29")
    toolkit = m["toolkit"]
    registered = "nvidia" in docker["runtimes"]
    by_cdi = new_engine and toolkit["cdi_devices"] > 0
    runtime = own_engine and bool(m["gpus"]) and not registered and not by_cdi
    packages = "apt" if m["tools"]["apt"] else "dnf" if m["tools"]["dnf"] else ""
    host = a["bind"] if ":" not in a["bind"] else f"[{a['bind'].strip('[]')}]"
    gpu_mode = "cdi" if kind == "podman" or (docker["rootless"] and not toolkit["no_cgroups"]) else "gpus"
    loopback = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)
    image = mirrors.choose("images", a["china"], m["network"])
    hub = mirrors.choose("weights", a["china"], m["network"])
    commands = {
        "docker": "sudo -n docker" if absent and not m["root"] else "docker",
        "systemctl": "systemctl --user" if docker["rootless"] else ("" if m["root"] else "sudo -n ") + "systemctl",
        "daemon_sudo": "" if m["root"] or docker["rootless"] else "sudo -n ",
    }
    chosen = {
        **commands,
        **_gpus(a["gpus"], gpu_mode),
        "packages": packages,
        "docker_packages": mirrors.choose("docker_packages", a["china"], m["network"])["use"],
        "toolkit_packages": mirrors.choose("toolkit", a["china"], m["network"])["use"],
        "install_toolkit": own_engine and bool(m["gpus"]) and not toolkit["version"] and bool(packages),
        "configure_daemon": runtime or bool(a["registry_mirror"] and own_engine),
        "configure_runtime": runtime,
        "daemon_flags": "".join(f" --mirror {shlex.quote(mirror)}" for mirror in a["registry_mirror"])
        + (" --runtime nvidia" if runtime else ""),
        "restarted": _restarted(commands["docker"], a["registry_mirror"], runtime),
        "write_cdi": own_engine | (kind == "podman") and bool(m["gpus"]) and toolkit["cdi_devices"] == 0
        and (new_engine or gpu_mode == "cdi"),
        "image_mirror": image,
        "images": image_names(a["image"], image, a["image_mirror"]),
        "local_image": local_name(a["image"]),
        "test_gpu": bool(m["gpus"]),
        "model": container_model(a),
        "weights_endpoint": hub["use"] if hub["mirror"] and hub["use"].startswith("http") else "",
        "download": download_program(a["model_id"], hub["use"]),
        "hub": hub,
        "env_folder": str(Path(a["env_file"]).parent),
        "host_ip": a["bind"].strip("[]"),
        "publish": f"{host}:{a['port']}",
        "url": f"http://{loopback}:{a['port']}",
        "shm_size": a["shm_size"] or f"{max(10, round(0.3 * (m['memory_gib'] or 0)))}g",
        "compose_comes": absent,
        "command": "exec ajet-swarm start --swarm-port 10086 > >(tee -a /workspace/log/swarm_server.log) 2>&1",
    }  # fmt: skip
    told = {key: chosen[key] for key in ("model", "publish", "shm_size", "local_image", "gpu_flag", "command")}
    told.update({key: a[key] for key in ("model_path", "logs", "experiments", "env_file", "restart", "name")})
    chosen["label"] = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]
    return chosen


def check_docker_answers(a: Mapping[str, Any]) -> None:
    """Raise BadInput on an answer that Docker cannot take, or a job file that is none."""
    _plain("name", a["name"], r"[a-z0-9][a-z0-9_-]*", "lower case letters, digits, - and _")
    _plain("image", a["image"], r"[\w][\w./:@-]*", "registry/owner/name:tag or name@sha256:...")
    _plain("shm_size", a["shm_size"], r"(\d+[bkmgBKMG]?)?", "a number and a unit, as 64g")
    for host in a["image_mirror"]:
        _plain("image_mirror", host, r"[\w.-]+(:\d+)?", "a host name, as ghcr.example.org")
    _address(a["bind"])
    _gpus(a["gpus"], "gpus")
    job_model(a["job"])


def _gpus(asked: str, mode: str) -> dict[str, Any]:
    asked = asked.strip()
    one = r"(\d+(:\d+)?|(GPU|MIG)-[0-9a-fA-F-]+)"
    if not re.fullmatch(rf"all|[1-9]\d*|{one}(,{one})+|\d+:\d+|(GPU|MIG)-[0-9a-fA-F-]+", asked):
        raise BadInput(f"--gpus: {asked!r}", expected="all, a count (4), indices (0,1), or MIG slices (0:0)")
    count = int(asked) if asked.isdigit() else None
    ids = [] if asked == "all" or count is not None else asked.split(",")
    names = ids or [str(index) for index in range(count or 0)] or ["all"]
    devices = [f"nvidia.com/gpu={name}" for name in names]
    value = shlex.quote(f'"device={",".join(ids)}"') if ids else str(asked)
    return {
        "gpu_mode": mode,
        "gpu_count": count if count is not None else "all",
        "gpu_ids": ids,
        "cdi_devices": devices,
        "gpu_flag": " ".join(f"--device {device}" for device in devices) if mode == "cdi" else f"--gpus {value}",
    }


def image_names(image: str, chosen: Mapping[str, Any], more: list[str]) -> list[str]:
    """Return the names to try to pull an image under: the chosen registry first, then the others.

    Only the registry's host is exchanged; ``more`` are hosts that the user named, and they come first.
    """
    host, _, rest = image.partition("/")
    table = load("mirrors")["images"]
    if host != table["official"]["use"]:
        return [*(f"{mirror}/{rest}" for mirror in more), image]
    known = [table["official"]["use"], *(entry["use"] for entry in table["mirrors"])]
    order = [*more, chosen["use"], *(known if chosen["mirror"] else known[:1])]
    return list(dict.fromkeys(f"{name.rstrip('/')}/{rest}" for name in order))


def local_name(image: str) -> str:
    """Return the name an image has on this machine: an image asked for by digest gets a tag of its own."""
    name, _, digest = image.partition("@sha256:")
    return f"agentjet-pinned:{digest[:12]}" if digest else name


def container_model(answers: Mapping[str, Any]) -> str:
    """Return the path of the weights inside the container: what was asked, what the job says, or /models/<name>."""
    model = answers["model"] or job_model(answers["job"]) or ""
    if PurePosixPath(model).is_absolute():
        return str(PurePosixPath(model))
    return f"/models/{Path(answers['model_path'] or 'model').name}"


def job_model(path: str) -> str | None:
    """Return ``ajet.model.path`` of a job file, or None if no file was named. Raises BadInput."""
    if not path:
        return None
    import yaml

    try:
        job = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        return str(job["ajet"]["model"]["path"])
    except OSError as error:
        raise BadInput(f"--job: {error}", hint="give the YAML file of the training job") from None
    except (yaml.YAMLError, TypeError, KeyError, UnicodeDecodeError):
        raise BadInput(
            f"--job: {path} has no ajet.model.path", expected="a job YAML with `ajet: {model: {path: ...}}`"
        ) from None


def download_program(model_id: str, hub: str) -> str:
    """Return the Python program that fetches a model to /weights inside the image."""
    if hub == "modelscope":
        return f"from modelscope import snapshot_download; snapshot_download({model_id!r}, local_dir='/weights')"
    return f"from huggingface_hub import snapshot_download; snapshot_download({model_id!r}, local_dir='/weights')"


def _restarted(docker: str, registry_mirrors: list[str], runtime: bool) -> str:
    # grep reads to the end (no -q): under pipefail an early end would fail the docker before it
    info = f"{docker} info 2>/dev/null"
    tests = [f"{info} | grep 'Runtimes:.*nvidia' >/dev/null"] if runtime else []
    tests += [f"{info} | grep -F {shlex.quote(mirror.rstrip('/'))} >/dev/null" for mirror in registry_mirrors]
    return " && ".join(tests) or "true"


def _plain(name: str, value: str, pattern: str, expected: str) -> None:
    if not re.fullmatch(pattern, value):
        raise BadInput(f"--{name.replace('_', '-')}: {value!r}", expected=expected)


def _address(bind: str) -> None:
    try:
        ipaddress.ip_address(bind.strip("[]"))
    except ValueError:
        expected = "127.0.0.1, 0.0.0.0, ::1 or an address of this machine"
        raise BadInput(f"--bind: {bind!r} is no IP address", expected=expected) from None
