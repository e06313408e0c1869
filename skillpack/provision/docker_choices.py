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
from skillpack.provision.gpus import asked_gpus
from skillpack.script import BadInput

SHM_SHARE = 0.3
"""Part of the memory that Ray wants as shared memory for its object store."""
LEAST_SHM_GIB = 10
"""Shared memory of verl's own docker command."""


def choose_docker(a: Mapping[str, Any], m: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the docker recipe needs: commands, registries, GPU flags, paths and ports."""
    engine = _engine(m)
    chosen = {**engine, **_sources(a, m), **_container(a, m)}
    chosen.update(_gpu_access(a, m, own_engine=engine["own_engine"], podman=m["docker"]["kind"] == "podman"))
    chosen.update(_daemon(a, m, chosen))
    chosen["label"] = _label(a, chosen)
    return chosen


def _engine(m: Mapping[str, Any]) -> dict[str, Any]:
    """How Docker is called, and whether it is an engine of this machine that may be configured."""
    docker = m["docker"]
    fault = (docker["fault"] or {}).get("id")
    root = "" if m["root"] else "sudo -n "
    kind = docker["kind"] or ("engine" if fault in ("absent", "docker.down") else None)
    return {
        "own_engine": kind == "engine" and not docker["snap"],
        "compose_comes": fault == "absent",
        "docker": f"{root}docker" if fault == "absent" else "docker",
        "systemctl": "systemctl --user" if docker["rootless"] else f"{root}systemctl",
        "daemon_sudo": "" if docker["rootless"] else root,
        "packages": "apt" if m["tools"]["apt"] else "dnf" if m["tools"]["dnf"] else "",
    }


def _gpu_access(a: Mapping[str, Any], m: Mapping[str, Any], *, own_engine: bool, podman: bool) -> dict[str, Any]:
    """How the container gets GPUs, and what of toolkit, runtime and CDI is missing for it.

    Docker 29 and later hands GPUs on through CDI, older engines through the nvidia runtime; Podman, and
    rootless Docker unless ``no-cgroups`` is set, need the CDI device named.
    """
    docker, toolkit = m["docker"], m["toolkit"]
    version = docker["server"] or docker["cli"]  # a daemon that is down is as old as its client
    cdi_engine = version is None or at_least(version, "29")
    mode = "cdi" if podman or (docker["rootless"] and not toolkit["no_cgroups"]) else "gpus"
    served = "nvidia" in docker["runtimes"] or (cdi_engine and toolkit["cdi_devices"] > 0) or mode == "cdi"
    wanted = bool(m["gpus"])
    return {
        **_gpus(a["gpus"], mode),
        "test_gpu": wanted,
        "install_toolkit": wanted
        and own_engine
        and not toolkit["version"]
        and (m["tools"]["apt"] or m["tools"]["dnf"]),
        "configure_runtime": wanted and own_engine and not served,
        "write_cdi": wanted
        and (own_engine or podman)
        and toolkit["cdi_devices"] == 0
        and (cdi_engine or mode == "cdi"),
    }


def _daemon(a: Mapping[str, Any], m: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What daemon.json needs, and how a restarted daemon is recognised."""
    runtime = chosen["configure_runtime"]
    registries = a["registry_mirror"] if chosen["own_engine"] else []
    own = str(Path.home() / ".config/docker/daemon.json")
    flags = [f" --mirror {shlex.quote(registry)}" for registry in registries] + [" --runtime nvidia"] * runtime
    return {
        "daemon_json": a["daemon_json"] or (own if m["docker"]["rootless"] else "/etc/docker/daemon.json"),
        "configure_daemon": runtime or bool(registries),
        "daemon_flags": "".join(flags),
        "restarted": _restarted(chosen["docker"], registries, runtime),
    }


def _sources(a: Mapping[str, Any], m: Mapping[str, Any]) -> dict[str, Any]:
    """Where packages, the image and the weights come from."""
    image, hub, docker_packages, toolkit_packages = (
        mirrors.choose(kind, a["china"], m["network"]) for kind in ("images", "weights", "docker_packages", "toolkit")
    )
    return {
        "docker_packages": docker_packages["use"],
        "toolkit_packages": toolkit_packages["use"],
        "image_mirror": image,
        "images": image_names(a["image"], image, a["image_mirror"]),
        "local_image": local_name(a["image"]),
        "hub": hub,
        "weights_endpoint": hub["use"] if hub["mirror"] and hub["use"].startswith("http") else "",
        "download": download_program(a["model_id"], hub["use"]),
    }


def _container(a: Mapping[str, Any], m: Mapping[str, Any]) -> dict[str, Any]:
    """What the container is given: paths, address, shared memory, command."""
    host = f"[{a['bind'].strip('[]')}]" if ":" in a["bind"] else a["bind"]
    loopback = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)
    return {
        "model": container_model(a),
        "env_folder": str(Path(a["env_file"]).parent),
        "host_ip": a["bind"].strip("[]"),
        "publish": f"{host}:{a['port']}",
        "url": f"http://{loopback}:{a['port']}",
        "shm_size": a["shm_size"] or f"{max(LEAST_SHM_GIB, round(SHM_SHARE * (m['memory_gib'] or 0)))}g",
        "command": "exec ajet-swarm start --swarm-port 10086 > >(tee -a /workspace/log/swarm_server.log) 2>&1",
    }


def _label(a: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    """Return a name for all that a container was made with, by which a running one is known to be the same."""
    told = {key: chosen[key] for key in ("model", "publish", "shm_size", "local_image", "gpu_flag", "command")}
    told.update({key: a[key] for key in ("model_path", "logs", "experiments", "env_file", "restart", "name")})
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]


def check_docker_answers(a: Mapping[str, Any]) -> None:
    """Raise BadInput on an answer that Docker cannot take, or a job file that is none."""
    _plain("name", a["name"], r"[a-z0-9][a-z0-9_-]*", "lower case letters, digits, - and _")
    _plain("image", a["image"], r"[\w][\w./:@-]*", "registry/owner/name:tag or name@sha256:...")
    _plain("shm_size", a["shm_size"], r"(\d+[bkmgBKMG]?)?", "a number and a unit, as 64g")
    _plain("model_id", a["model_id"], r"([\w.-]+/[\w.-]+)?", "OWNER/NAME, as Qwen/Qwen2.5-7B-Instruct")
    for host in a["image_mirror"]:
        _plain("image_mirror", host, r"[\w.-]+(:\d+)?", "a host name, as ghcr.example.org")
    _address(a["bind"])
    job_model(a["job"])


def _gpus(asked: str, mode: str) -> dict[str, Any]:
    count, ids = asked_gpus(asked)
    names = ids or [str(index) for index in range(count or 0)] or ["all"]
    devices = [f"nvidia.com/gpu={name}" for name in names]
    value = shlex.quote(f'"device={",".join(ids)}"') if ids else str(count or "all")
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
