"""What a plan chooses from the answers and from what the machine is."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from skillpack.provision import mirrors
from skillpack.provision.data import load
from skillpack.provision.expressions import at_least, older_than
from skillpack.script import BadInput

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


def stack_of(name: str) -> dict[str, Any]:
    """Return a matched set of versions; ``checkout`` stands for the set that AgentJet is expected to pin."""
    table = load("stacks")
    entry = table[name]
    return {**(table[entry["like"]] if "like" in entry else entry), "id": name, "title": entry["title"]}


def choose(recipe: str, answers: Mapping[str, Any], machine: Mapping[str, Any], workdir: Path) -> dict[str, Any]:
    """Return what the templates of a recipe call ``c``."""
    common = {"sudo": "" if machine["root"] else "sudo -n ", "index": ""}
    if recipe == "docker":
        return {**common, **_docker(answers, machine)}
    common.update(_python_source(answers, machine, workdir))
    return {**common, **(_conda(answers, machine, workdir) if recipe == "conda" else _client(answers, machine))}


def _python_source(a: Mapping[str, Any], m: Mapping[str, Any], workdir: Path) -> dict[str, Any]:
    clone = bool(re.match(r"(https?|git|ssh)://|[\w.-]+@[\w.-]+:", a["source"]))
    checkout = str(workdir / "AgentJet" if clone else Path(a["source"]).expanduser().absolute())
    index = mirrors.choose("pypi", a["china"], m["network"])
    if a["index_url"]:
        index = {"name": "--index-url", "use": a["index_url"], "mirror": False, "reason": "asked for"}
    elif m["pip_index"] and a["china"] == "auto":
        index = {"name": "pip's own", "use": "", "mirror": False, "reason": f"pip is set to {_shown(m['pip_index'])}"}
    use = "" if index["name"] == "pypi.org" else index["use"]
    return {
        "clone": clone,
        "checkout": checkout,
        "env_python": a["env"] + "/bin/python",
        "pypi": index,
        "index": f" --index-url {_quoted(use)}" if use else "",
    }


def _client(a: Mapping[str, Any], m: Mapping[str, Any]) -> dict[str, Any]:
    python, version = pick_python(a["python"], m["pythons"])
    venv_works = bool(python) and (m["ensurepip"] or (m["tools"]["apt"] and not m["uv"]))
    return {
        "python": python,
        "python_version": version or "3.12",
        "uv": bool(m["uv"]) and not venv_works,
        "env_exists": Path(a["env"], "bin", "python").exists(),
    }


def pick_python(asked: str, pythons: Mapping[str, str]) -> tuple[str, str]:
    """Return (command, version) of an interpreter that AgentJet accepts (3.10 to 3.12), or two empty texts."""
    if asked:
        return asked, pythons.get(asked, "")
    for command, version in pythons.items():
        if at_least(version, "3.10") and older_than(version, "3.13"):
            return command, version
    return "", ""


def _conda(a: Mapping[str, Any], m: Mapping[str, Any], workdir: Path) -> dict[str, Any]:
    stack = stack_of(a["stack"])
    jobs = a["max_jobs"] or build_jobs(m["cpus"], m["free_memory_gib"])
    capabilities = sorted({gpu["compute_cap"] for gpu in m["gpus"] if gpu["compute_cap"]})
    tool = next((name for name in ("conda", "mamba", "micromamba") if name in m["conda"]), "") or (
        "uv" if m["uv"] else ""
    )
    channel = mirrors.choose("conda", a["china"], m["network"])
    github = m["network"].get("github/github.com", {}).get("reachable")
    return {
        "conda": tool,
        "conda_command": tool or str(workdir / "miniforge" / "bin" / "conda"),
        "channel": channel["use"],
        "conda_mirror": channel,
        "miniforge": mirrors.choose("miniforge", a["china"], m["network"])["use"],
        "pins": {} if a["stack"] == "checkout" else stack["pins"],
        "max_jobs": jobs,
        "build_minutes": max(SMALLEST_BUILD, round(JOB_MINUTES * max(1, len(capabilities)) / jobs)),
        "archs": ";".join(capability.replace(".", "") for capability in capabilities),
        "expect_build": not a["flash_attn_wheel"] and not (
            has_wheel(stack, m) and (github is not False or a["github_mirror"])
        ),
    }  # fmt: skip


def has_wheel(stack: Mapping[str, Any], machine: Mapping[str, Any]) -> bool:
    """Tell whether a prebuilt flash-attn wheel is expected to exist and to load for a stack on a machine."""
    return (
        older_than(stack["cuda"], "13")
        and machine["arch"] in (None, "x86_64")
        and not older_than(machine["glibc"], stack["glibc"])
    )


def build_jobs(cpus: int | None, free_gib: float | None) -> int:
    """Return MAX_JOBS for a flash-attn build with NVCC_THREADS=1: half the cores, or what the memory carries."""
    by_cores = max(1, (cpus or 2) // 2)
    by_memory = int(MEMORY_SHARE * (free_gib or 0) // GIB_PER_BUILD_JOB)
    return max(1, min(by_cores, by_memory))


def _docker(a: Mapping[str, Any], m: Mapping[str, Any]) -> dict[str, Any]:
    _plain("name", a["name"], r"[a-z0-9][a-z0-9_-]*", "lower case letters, digits, - and _")
    _plain("image", a["image"], r"[\w][\w./:@-]*", "registry/owner/name:tag or name@sha256:...")
    _plain("shm_size", a["shm_size"], r"(\d+[bkmgBKMG]?)?", "a number and a unit, as 64g")
    for host in a["image_mirror"]:
        _plain("image_mirror", host, r"[\w.-]+(:\d+)?", "a host name, as ghcr.example.org")
    _address(a["bind"])
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
        "daemon_flags": "".join(f" --mirror {_quoted(mirror)}" for mirror in a["registry_mirror"])
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


def _plain(name: str, value: str, pattern: str, expected: str) -> None:
    if not re.fullmatch(pattern, value):
        raise BadInput(f"--{name.replace('_', '-')}: {value!r}", expected=expected)


def _address(bind: str) -> None:
    try:
        ipaddress.ip_address(bind.strip("[]"))
    except ValueError:
        raise BadInput(f"--bind: {bind!r} is no IP address", expected="127.0.0.1, 0.0.0.0, ::1 or an address of this machine") from None


def _gpus(asked: str, mode: str) -> dict[str, Any]:
    asked = asked.strip().lower()
    if asked != "all" and not re.fullmatch(r"\d+|[\d:]+(,[\d:]+)*|(gpu|mig)-[0-9a-f-]+(,(gpu|mig)-[0-9a-f-]+)*", asked):
        raise BadInput(f"--gpus: {asked!r}", expected="all, a count (4), indices (0,1), or MIG slices (0:0)")
    count = int(asked) if asked.isdigit() else None
    ids = [] if asked == "all" or count is not None else asked.split(",")
    names = ids or [str(index) for index in range(count or 0)] or ["all"]
    devices = [f"nvidia.com/gpu={name}" for name in names]
    value = _quoted(f'"device={",".join(ids)}"') if ids else str(asked)
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
    tests += [f"{info} | grep -F {_quoted(mirror.rstrip('/'))} >/dev/null" for mirror in registry_mirrors]
    return " && ".join(tests) or "true"


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


def _shown(url: str) -> str:
    return re.sub(r"^\w+://([^/@]*@)?([^/]+).*$", r"\2", url)
