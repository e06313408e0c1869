"""Prove an installation: what was tried, and what was seen."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from skillpack.provision import server
from skillpack.provision.observe import Answer, ask
from skillpack.provision.payload.check_weights import examine
from skillpack.provision.signatures import recognise

PAYLOAD = Path(__file__).resolve().parent / "payload"
OFFLINE, ROLLING = "ENGINE.OFFLINE", "ENGINE.ROLLING"
CLAIM_SECONDS = 30
"""How long an episode is waited for: released clients ask again every 2 s, after a weight sync in 15 s."""
REPLY_SECONDS = 180
"""How long importing the client, the model's reply and giving back may take."""


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
    if taken := server.slots_taken(url):
        return [
            *proofs,
            Proof(
                "episode",
                None,
                f"not tried: all {taken} slots are taken by the training in progress",
                "that is usual at the cap; try again later, or when the training has ended",
            ),
        ]
    return [*proofs, _episode(python, url, end=end or server.engine_kind(url) == "reference")]


def _imports(python: str) -> Proof:
    program = "import ajet, ajet.copilot.job, ajet.tuner_lib.experimental.swarm_client; print(ajet.__file__)"
    said = _python(python, ["-c", program], 120)
    if said.rc:
        return _failed("import", said.text, "run the plan: plan.py --apply")
    return Proof("import", True, f"ajet imports from {Path(_last(said.out)).parent}")


def _version(python: str) -> Proof:
    said = _python(python, ["-c", "import importlib.metadata as m; print(m.version('agentjet'))"], 60)
    if said.rc:
        return _failed("version", said.text, "install the checkout: plan.py --apply")
    return Proof("version", True, f"AgentJet {_last(said.out)}")


def _episode(python: str, url: str, *, end: bool) -> Proof:
    asked = [str(PAYLOAD / "episode.py"), url, str(CLAIM_SECONDS), *(["--end"] if end else [])]
    said = _python(python, asked, CLAIM_SECONDS + REPLY_SECONDS)
    try:
        found = json.loads(_last(said.out))
    except ValueError:
        return _failed("episode", said.text, "see the text")
    if "waited" in found:
        told = f"not tried: no slot came free within {CLAIM_SECONDS} s"
        return Proof("episode", None, told, "other clients take them all, or the step is ending: try again later")
    if "error" in found:
        return Proof("episode", False, found["error"], "see the server's log; an episode needs ENGINE.ROLLING")
    told = f"episode {found['episode']} was claimed, answered {found['reply']!r}, and {found['gave_back']}"
    return Proof("episode", True, told)


def verify_conda(answers: Mapping[str, Any]) -> list[Proof]:
    """Return proofs for a server environment: imports in order, torch on the GPU, a kernel compared, the weights."""
    python = answers["env"] + "/bin/python"
    said = _python(python, [str(PAYLOAD / "stack_check.py")], 600)
    try:
        parts = json.loads(_last(said.out))  # libraries may have printed before it
    except ValueError:
        return [_failed("imports", said.text, "run the plan: plan.py --apply")]
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
    docker = chosen["docker"].split()
    proofs = [
        _container(docker, answers["name"], chosen["model"]),
        _image(docker, chosen["local_image"]),
        _weights(answers["model_path"]),
    ]
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


def _image(docker: list[str], name: str) -> Proof:
    said = ask([*docker, "image", "inspect", "--format", "{{json .RepoDigests}}", name], 30)
    if said.rc:
        return Proof("image", False, f"no image {name}: {_last(said.text)}", "plan.py --apply")
    digests = dict.fromkeys(re.findall(r"sha256:[0-9a-f]+", said.out))
    return Proof("image", True, f"{name}, digest {', '.join(digests) or 'unknown (a local build)'}")


def _container(docker: list[str], name: str, model: str) -> Proof:
    said = ask([*docker, "inspect", "--format", "[{{json .State}}, {{json .Mounts}}]", name], 30)
    if said.rc:
        return Proof("container", False, f"no container {name}: {_last(said.text)}", "plan.py --apply")
    try:
        state, mounts = json.loads(said.out)
        targets = [mount["Destination"] for mount in mounts]
    except (ValueError, KeyError, TypeError):
        return Proof("container", False, f"docker inspect said {_last(said.text)}", "look at `docker inspect` itself")
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
    told = _last(text)[:400]
    return Proof(name, False, f"{told} ({known.cause})" if known else told, known.mend if known else otherwise)


def _python(python: str, arguments: list[str], seconds: float) -> Answer:
    # isolated: neither the working directory nor PYTHONPATH may lend the environment what it has not
    return ask([python, "-I", *arguments], seconds)


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]
