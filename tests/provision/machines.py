"""Build a machine out of a profile: stub executables on PATH that play it, and a world that plans can change."""

from __future__ import annotations

import json
import shutil
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from skillpack.provision import mirrors
from skillpack.provision.data import load
from skillpack.provision.observe import Observation, head_key
from tests.provision.smi import Cards

HERE = Path(__file__).resolve().parent
STUBS = HERE / "stubs"
PROFILES = sorted((HERE / "profiles").glob("*.yaml"))
ALIASES = {
    "conda": ("mamba", "micromamba"),
    "apt-get": ("dnf",),
    "python3": ("python3.10", "python3.11", "python3.12"),
    "_plain": ("nvcc", "getenforce", "id", "uname", "nproc", "ldd", "df", "which", "dpkg-query"),
}
TOOLS = "bash sh env mkdir mv cp rm rmdir grep sed tee install sha256sum chmod dirname"
REAL = {name: shutil.which(name) for name in TOOLS.split()}
OS = {
    "ubuntu-20.04": ("ubuntu", "20.04", "focal", "Ubuntu 20.04.6 LTS", "2.31"),
    "ubuntu-22.04": ("ubuntu", "22.04", "jammy", "Ubuntu 22.04.5 LTS", "2.35"),
    "ubuntu-24.04": ("ubuntu", "24.04", "noble", "Ubuntu 24.04.3 LTS", "2.39"),
    "debian-12": ("debian", "12", "bookworm", "Debian GNU/Linux 12 (bookworm)", "2.36"),
    "rocky-9": ("rocky", "9.6", "", "Rocky Linux 9.6 (Blue Onyx)", "2.34"),
    "centos-7": ("centos", "7", "", "CentOS Linux 7 (Core)", "2.17"),
}
OS_RELEASE = """ID={0}
VERSION_ID="{1}"
VERSION_CODENAME={2}
PRETTY_NAME="{3}"
"""
VERSION = """Client:
 Version:           {server}
 Context:           default

Server: Docker {kind}
 Engine:
  Version:          {server}
"""
CHINA = {
    "pypi.org": "200 4.8",
    "github.com": "000 0",
    "huggingface.co": "000 0",
    "ghcr.io": "000 0",
    "conda.anaconda.org": "200 6.1",
    "nvidia.github.io": "200 5.0",
    "download.docker.com": "200 5.2",
    "mirrors.ustc.edu.cn": "200 0.05",
}


def profiles() -> Iterator[Any]:
    """Yield every profile as a pytest parameter would want it: data, named by its file."""
    for path in PROFILES:
        yield {"id": path.stem, **yaml.safe_load(path.read_text(encoding="utf-8"))}


def profile(name: str) -> dict[str, Any]:
    """Return one profile by its name."""
    return {"id": name, **yaml.safe_load((HERE / "profiles" / f"{name}.yaml").read_text(encoding="utf-8"))}


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class World:
    """A machine in a folder. Commands run with ``environment`` see this machine and no other."""

    def __init__(self, data: Mapping[str, Any], folder: Path) -> None:
        self.profile = data
        self.folder = folder
        self.spec: dict[str, Any] = data.get("machine", {})
        for name in ("bin", "said", "up", "state", "hosts", "root/etc/docker", "model", "fake", "home"):
            (folder / name).mkdir(parents=True)
        self._executables()
        self._answers()
        self._places()

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process on this machine."""
        return {
            "PATH": str(self.folder / "bin"),
            "HOME": str(self.folder / "home"),
            "MACHINE": str(self.folder),
            "STUBS": str(STUBS),
            "REAL_INSTALL": str(REAL["install"]),
            "REAL_PYTHON": sys.executable,
            "PYTHONDONTWRITEBYTECODE": "1",
            **{name: str(value) for name, value in self.spec.get("environment", {}).items()},
        }

    @property
    def workdir(self) -> Path:
        """The folder that plans are applied in."""
        return self.folder / "work"

    @property
    def given(self) -> dict[str, Any]:
        """The profile's answers, with this machine's paths."""
        given = {key: self._here(value) for key, value in self.profile.get("given", {}).items()}
        if self.profile["recipe"] == "docker":
            given.setdefault("daemon_json", str(self.folder / "root/etc/docker/daemon.json"))
        return given

    def _here(self, value: Any) -> Any:
        return value.replace("{here}", str(self.folder)) if isinstance(value, str) else value

    def unexpected(self) -> str:
        """What the stubs objected to."""
        path = self.folder / "unexpected"
        return path.read_text() if path.exists() else ""

    def calls(self) -> list[str]:
        """Every command line that a stub was called with."""
        return (self.folder / "calls").read_text().splitlines()

    def snapshot(self) -> dict[str, str]:
        """Return all that a plan can change: path → content, logs and times left out."""
        found = {}
        for top in ("state", "root", "work", "said", "home"):
            for path in sorted((self.folder / top).rglob("*")):
                if path.is_file() and path.name not in ("install.log", "state.json", "plan.json", "lock"):
                    found[str(path.relative_to(self.folder))] = path.read_text(errors="replace")
        return found

    def observation(self) -> Observation:
        """Return a recording of this machine as it is before any plan, made without running anything."""
        commands: dict[str, Any] = {}
        for path in (self.folder / "said").glob("*.rc"):
            key = path.name[:-3].replace("%", "/")
            texts = {part: path.with_suffix(f".{part}") for part in ("out", "err")}
            commands[key] = {"rc": int(path.read_text()), **{k: p.read_text() for k, p in texts.items() if p.exists()}}
        for url in mirrors.addresses(load("mirrors")).values():
            answer = (self.folder / "hosts" / urlsplit(url).netloc).read_text()
            commands[head_key(url)] = {"rc": 28 if answer.startswith("000") else 0, "out": answer}
        return Observation.from_dict({"commands": commands, "environment": self.spec.get("environment", {})})

    def _executables(self) -> None:
        for stub in STUBS.iterdir():
            names = (
                ALIASES.get(stub.name, ()) if stub.name.startswith("_") else (stub.name, *ALIASES.get(stub.name, ()))
            )
            for name in names:
                (self.folder / "bin" / name).symlink_to(stub)
        for name, real in REAL.items():
            assert real, f"these tests need {name}"
            if name != "install":
                (self.folder / "bin" / name).symlink_to(real)

    def says(self, command: str, answer: Mapping[str, Any], *, when: str = "said") -> None:
        """Record the answer to a command line."""
        base = self.folder / when / command.replace("/", "%")
        for part in ("out", "err"):
            if answer.get(part):
                Path(f"{base}.{part}").write_text(answer[part])
        Path(f"{base}.rc").write_text(str(answer["rc"]))

    def _answers(self) -> None:
        spec = self.spec
        system = OS[spec.get("os", "ubuntu-24.04")]
        answers: dict[str, Any] = {
            "uname -s": "Linux\n",
            "uname -m": spec.get("arch", "x86_64") + "\n",
            "uname -r": spec.get("kernel", "6.8.0-45-generic") + "\n",
            "cat /etc/os-release": OS_RELEASE.format(*system),
            "ldd --version": f"ldd (GNU libc) {spec.get('glibc', system[4])}\nCopyright\n",
            "nproc": f"{spec.get('cpus', 64)}\n",
            "cat /proc/meminfo": _meminfo(spec.get("memory_gib", 512), spec.get("free_gib")),
            "id -u": f"{spec.get('uid', 1000)}\n",
            "id -nG": spec.get("groups", "alice docker") + "\n",
            "curl --version": "curl 8.5.0\n",
            "git --version": "git version 2.43.0\n",
            "python3 --version": f"Python {spec.get('python', '3.12.3')}\n",
            "df -Pk /dev/shm": _df(spec.get("shm_gib", 256), "/dev/shm"),
            "cat /proc/net/tcp": _listening(spec.get("listening", [22])),
            "python3 -I -c import importlib.metadata as m; print(m.version('agentjet'))": {
                "rc": 1,
                "err": "PackageNotFoundError",
            },
            "python3 -m pip config get global.index-url": {"rc": 1},
        }
        if "cgroup_gib" in spec:
            answers["cat /sys/fs/cgroup/memory.max"] = f"{spec['cgroup_gib'] * 1024**3}\n"
        if spec.get("container"):
            answers["ls -d /.dockerenv /run/.containerenv"] = {"rc": 2, "out": "/.dockerenv\n"}
        if system[0] in ("ubuntu", "debian"):
            answers["apt-get --version"] = "apt 2.7.14 (amd64)\n"
        elif system[0] != "centos":
            answers["dnf --version"] = "4.14.0\n"
        for command in ("conda", "mamba", "micromamba"):
            if command in spec:
                answers[f"{command} --version"] = (
                    f"conda {spec[command]}\n" if command == "conda" else f"{spec[command]}\n"
                )
        if "uv" in spec:
            answers["uv --version"] = f"uv {spec['uv']}\n"
        for command in spec.get("more_pythons", ()):
            answers[f"{command} --version"] = f"Python {command[6:]}.9\n"
        if "nvcc" in spec:
            answers["nvcc --version"] = (
                f"nvcc: NVIDIA\nCuda compilation tools, release {spec['nvcc']}, V{spec['nvcc']}.88\n"
            )
        answers.update(self._gpus())
        answers.update(self._docker())
        answers.update({self._here(key): value for key, value in spec.get("said", {}).items()})
        for command, answer in answers.items():
            self.says(command, {"rc": 0, "out": answer} if isinstance(answer, str) else answer)
        self._network()
        (self.folder / "sudo").write_text(spec.get("sudo", "yes"))
        (self.folder / "pull-fails").write_text(" ".join(spec.get("pull_fails", ())))
        if spec.get("no_auto_cdi"):
            (self.folder / "no-auto-cdi").touch()

    def _gpus(self) -> dict[str, Any]:
        if "gpus" not in self.spec:
            return {}
        cards = Cards(**{**self.spec["gpus"], "slices": tuple(self.spec["gpus"].get("slices", ()))})
        return {
            "nvidia-smi": cards.table(),
            "nvidia-smi --query-gpu=index,name,memory.total,compute_cap,driver_version --format=csv": cards.query(),
            "nvidia-smi -L": cards.listing(),
        }

    def _docker(self) -> dict[str, Any]:
        docker = {
            "server": "29.4.0",
            "runtimes": "nvidia",
            "root": "/var/lib/docker",
            "kind": "Engine - Community",
            **self.spec.get("docker", {}),
        }
        version = VERSION.format(**docker)
        runtimes = f"io.containerd.runc.v2 {docker['runtimes']} runc".replace("  ", " ")
        options = (
            "  seccomp\n   Profile: builtin\n" + ("  rootless\n" if docker.get("rootless") else "") + "  cgroupns\n"
        )
        info = (
            f"Client:\n Version:    {docker['server']}\n\nServer:\n Server Version: {docker['server']}\n"
            " Storage Driver: overlay2\n"
            f" CDI spec directories:\n  /etc/cdi\n  /var/run/cdi\n Runtimes: {runtimes}\n Default Runtime: runc\n"
            f" Security Options:\n{options} Docker Root Dir: {docker['root']}\n"
        )
        up = {"docker version": {"rc": 0, "out": version}, "docker info": {"rc": 0, "out": info}}
        for command, answer in up.items():
            self.says(command, answer, when="up")
        if "docker" not in self.spec:
            return {}
        answers: dict[str, Any] = {**up, "which docker": docker.get("path", "/usr/bin/docker") + "\n"}
        answers["docker ps --format {{.Names}}"] = "".join(f"{name}\n" for name in docker.get("running", ()))
        if docker.get("compose", "2.40.0"):
            answers["docker compose version"] = f"Docker Compose version v{docker.get('compose', '2.40.0')}\n"
        if "toolkit" in self.spec:
            answers["nvidia-ctk --version"] = f"NVIDIA Container Toolkit CLI version {self.spec['toolkit']}\n"
            if self.spec.get("cdi"):
                answers["nvidia-ctk cdi list"] = {
                    "rc": 0,
                    "out": "nvidia.com/gpu=all\n",
                    "err": f"INFO[0000] Found {self.spec['cdi']} CDI devices\n",
                }
        if "fault" in docker:
            client = f"Client:\n Version:           {docker['server']}\n"
            failure = {"rc": 1, "out": client, "err": docker["fault"]}
            answers.update(
                {"docker version": failure, "docker info": failure, "docker ps --format {{.Names}}": failure}
            )
        return answers

    def _network(self) -> None:
        hosts = {urlsplit(url).netloc: "200 0.2" for url in mirrors.addresses(load("mirrors")).values()}
        if self.spec.get("china"):
            hosts.update(CHINA)
        if self.spec.get("offline"):
            hosts = dict.fromkeys(hosts, "000 0")
        hosts.update(self.spec.get("network", {}))
        for host, answer in hosts.items():
            (self.folder / "hosts" / host).write_text(answer + "\n")

    def _places(self) -> None:
        disk = self.spec.get("disk_gib", 2000)
        disks = disk if isinstance(disk, dict) else {"/": disk}
        own = "/data" if "/data" in disks else "/"
        root = Path(self.spec.get("docker", {}).get("root", "/var/lib/docker"))
        for path in (self.folder, *self.folder.parents):
            self.says(f"df -Pk {path}", {"rc": 0, "out": _df(disks[own], own)})
        for path in (root, *root.parents):
            self.says(f"df -Pk {path}", {"rc": 0, "out": _df(disks["/"], "/")})
        for place, mount in (("env", own), ("experiments", own), ("weights", own), ("docker_root", "/")):
            self.says(f"df {place}", {"rc": 0, "out": _df(disks[mount], mount)})
        make_model(self.folder / "model")
        daemon = self.spec.get("daemon_json")
        path = self.folder / "root/etc/docker/daemon.json"
        if daemon is not None:
            path.write_text(daemon if isinstance(daemon, str) else json.dumps(daemon, indent=2))
        (self.folder / "daemon-json-path").write_text(str(path))
        torch = {"version": "2.8.0+cu128", "cuda": "12.8", "abi": True, **self.spec.get("torch", {})}
        (self.folder / "fake" / "torch.py").write_text(
            f"__version__ = {torch['version']!r}\nclass version:\n    cuda = {torch['cuda']!r}\n"
            f"class _C:\n    _GLIBCXX_USE_CXX11_ABI = {torch['abi']}\n"
        )
        for path_name, content in self.profile.get("files", {}).items():
            target = self.folder / path_name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self._here(content))


def make_model(folder: Path, shards: int = 2) -> None:
    """Write a small complete model: a config, a tokenizer, shards and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    weight_map = {}
    for number in range(1, shards + 1):
        name = f"model-{number:05}-of-{shards:05}.safetensors"
        header = json.dumps({f"w{number}": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
        (folder / name).write_bytes(struct.pack("<Q", len(header)) + header + bytes(16))
        weight_map[f"w{number}"] = name
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def _meminfo(total: float, free: float | None) -> str:
    available = total * 0.9 if free is None else free
    return f"MemTotal:  {int(total * 1024**2)} kB\nMemFree:  1 kB\nMemAvailable:  {int(available * 1024**2)} kB\n"


def _df(gib: float, mount: str) -> str:
    kilobytes = int(gib * 1024**2)
    return f"Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/x {kilobytes} 0 {kilobytes} 0% {mount}\n"


def _listening(ports: list[int]) -> str:
    rows = [
        f"   {place}: 00000000:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000"
        for place, port in enumerate(ports)
    ]
    return "  sl  local_address rem_address   st\n" + "\n".join(rows) + "\n"
