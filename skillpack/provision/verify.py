"""Prove an installation: what was tried, and what was seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from skillpack.provision import server
from skillpack.provision.payload.check_weights import examine
from skillpack.provision.signatures import recognise

PAYLOAD = Path(__file__).resolve().parent / "payload"
OFFLINE, ROLLING = "ENGINE.OFFLINE", "ENGINE.ROLLING"


class Proof(NamedTuple):
    """One thing that was tried. ``ok`` is None for what was not tried; ``mend`` is for what failed."""

    id: str
    ok: bool | None
    text: str
    mend: str = ""


def verify_client(answers: Mapping[str, Any], *, end: bool = False) -> list[Proof]:
    """Return proofs for a client: import, version, and an episode against ``answers["server"]`` if one is named."""
    python = answers["env"] + "/bin/python"
    proofs = [_imports(python)]
    if not proofs[0].ok:
        return proofs
    proofs.append(_version(python))
    url = answers["server"]
    if not url:
        return [
            *proofs,
            Proof("episode", None, "not tried: no --server", "name a server, or start a rehearsal: skills engine"),
        ]
    healthy, text = server.check_health(url)
    proofs.append(
        Proof("server", healthy, text, "" if healthy else "is the address right, the server up, a tunnel open?")
    )
    if not healthy:
        return proofs
    status, text = server.check_status(url)
    if status != ROLLING:
        return [
            *proofs,
            Proof("episode", None, f"not tried: {text}", "an episode needs ENGINE.ROLLING: start a training first"),
        ]
    return [*proofs, _episode(python, url, end=end or server.engine_kind(url) == "reference")]


def _imports(python: str) -> Proof:
    program = "import ajet, ajet.copilot.job, ajet.tuner_lib.experimental.swarm_client; print(ajet.__file__)"
    code, out = _python(python, ["-c", program], 120)
    if code == 0:
        return Proof("import", True, f"ajet imports from {Path(out.strip().splitlines()[-1]).parent}")
    return _failed("import", out, "run the plan: plan.py --apply")


def _version(python: str) -> Proof:
    program = "import importlib.metadata as m, ajet; print(m.version('agentjet'), getattr(ajet, '__version__', ''))"
    code, out = _python(python, ["-c", program], 60)
    words = out.split()
    if code:
        return _failed("version", out, "install the checkout: plan.py --apply")
    return Proof(
        "version", True, f"AgentJet {words[0]}" + (f" (ajet.__version__ {words[1]})" if len(words) > 1 else "")
    )


def _episode(python: str, url: str, *, end: bool) -> Proof:
    code, out = _python(python, [str(PAYLOAD / "episode.py"), url, *(["--end"] if end else [])], 240)
    last = out.strip().splitlines()[-1] if out.strip() else ""
    try:
        found = json.loads(last)
    except ValueError:
        return _failed("episode", out, "see the text")
    if code or "error" in found:
        return Proof(
            "episode", False, found.get("error", last), "see the server's log; `can_continue` and ROLLING are needed"
        )
    return Proof(
        "episode",
        True,
        f"episode {found['episode']} was claimed, answered {found['reply']!r}, and {found['gave_back']}",
    )


def verify_conda(answers: Mapping[str, Any]) -> list[Proof]:
    """Return proofs for a server environment: imports in order, torch on the GPU, a kernel compared, the weights."""
    python = answers["env"] + "/bin/python"
    _, out = _python(python, [str(PAYLOAD / "stack_check.py")], 600)
    try:
        parts = json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return [_failed("imports", out or f"{python} printed nothing", "run the plan: plan.py --apply")]
    proofs = [
        Proof(part["id"], True, part["text"]) if part["ok"]
        else Proof(part["id"], None, part["text"]) if part["ok"] is None
        else _failed(part["id"], part["text"], "run the plan again: plan.py --apply")
        for part in parts
    ]  # fmt: skip
    if answers["model_path"]:
        proofs.append(_weights(answers["model_path"]))
    if answers["server"]:
        proofs.extend(_server(answers["server"]))
    return proofs


def verify_docker(
    answers: Mapping[str, Any], chosen: Mapping[str, Any], *, boot: str = "", patience: float = 120
) -> list[Proof]:
    """Return proofs for a server container: up, healthy, OFFLINE, and with ``boot`` (a job's YAML) BOOTING."""
    url = answers["server"] or chosen["url"]
    proofs = [_container(chosen["docker"], answers["name"], chosen["model"]), _weights(answers["model_path"])]
    proofs.extend(_server(url))
    if boot and proofs[-1].ok:
        booted, text = server.check_boot(url, boot, patience)
        proofs.append(Proof("boot", booted, text, "" if booted else "docker logs, and log/swarm_server.log"))
    elif not boot:
        proofs.append(
            Proof(
                "boot",
                None,
                "not tried: no --boot-job",
                "--boot-job job.yaml syncs it, waits for BOOTING and stops it again",
            )
        )
    return proofs


def _container(docker: str, name: str, model: str) -> Proof:
    template = "{{json .State}} {{json .Mounts}}"
    code, out = _run([*docker.split(), "inspect", "--format", template, name], 30)
    if code:
        return Proof("container", False, f"no container {name}: {_last(out)}", "plan.py --apply")
    try:
        decoder = json.JSONDecoder()
        state, end = decoder.raw_decode(out.strip())
        mounts = decoder.raw_decode(out.strip()[end:].strip())[0]
        targets = [mount["Destination"] for mount in mounts]
    except (ValueError, KeyError, TypeError):
        return Proof("container", False, f"docker inspect said {_last(out)}", "look at `docker inspect` itself")
    if not state.get("Running"):
        return Proof(
            "container",
            False,
            f"{name} is {state.get('Status')} (exit code {state.get('ExitCode')})",
            f"docker logs {name}",
        )
    if model not in targets:
        return Proof("container", False, f"{name} runs without a mount at {model}", "plan.py --apply replaces it")
    health = (state.get("Health") or {}).get("Status", "no health check")
    return Proof("container", True, f"{name} runs ({health}), weights at {model}")


def _weights(path: str) -> Proof:
    found = examine(path)
    return Proof("weights", found["ok"], found["summary"], found["mend"])


def _server(url: str) -> list[Proof]:
    healthy, text = server.check_health(url)
    proofs = [Proof("health", healthy, text, "" if healthy else "is it up? see its log")]
    if healthy:
        status, text = server.check_status(url)
        proofs.append(Proof("status", status is not None, text, "" if status else "this is no swarm server"))
    return proofs


def _failed(name: str, text: str, otherwise: str) -> Proof:
    known = recognise(text, "import", "pip")
    told = _last(text)
    return Proof(name, False, f"{told} ({known.cause})" if known else told, known.mend if known else otherwise)


def _python(python: str, arguments: list[str], seconds: float) -> tuple[int, str]:
    # isolated: neither the working directory nor PYTHONPATH may lend the environment what it has not
    return _run([python, "-I", *arguments], seconds)


def _run(argv: list[str], seconds: float) -> tuple[int, str]:
    from skillpack.provision.observe import ask

    answer = ask(argv, seconds)
    return answer.rc, answer.out if answer.rc == 0 or answer.out.strip().startswith(("[", "{")) else answer.text


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1][:400]
