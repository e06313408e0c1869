"""Give verdicts on a machine: ok, warn or blocks, each with what mends it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillpack.provision.data import load
from skillpack.provision.docker_choices import job_model
from skillpack.provision.expressions import holds, render, version_key
from skillpack.provision.gpus import asked_gpus
from skillpack.provision.machine import names_of
from skillpack.provision.observe import nearest_that_exists
from skillpack.provision.payload.check_weights import examine
from skillpack.provision.workdir import inside_skill

ORDER = ("ok", "warn", "blocks")


def assess(
    context: Mapping[str, Any], *, root_steps: Sequence[str], begun: Sequence[str], here: bool
) -> list[dict[str, Any]]:
    """Return a verdict for every check of the recipe, in the order of the table.

    ``context`` is the templates' own (recipe, r, a, m, c, s). ``root_steps`` are the steps that need root,
    ``begun`` the ids of those that a plan in this folder began already. ``here`` is False for a recorded
    machine, whose files cannot be looked at. Each verdict is {id, verdict, reason, mend, mended_by, follows};
    ``follows`` names the check whose trouble is the cause.
    """
    recipe = context["recipe"]
    known = {**context, **_summaries(context, here=here), "steps": list(root_steps), "begun": list(begun)}
    verdicts: list[dict[str, Any]] = []
    for check in load("checks"):
        if recipe not in check.get("for", [recipe]):
            continue
        case = next(case for case in check["cases"] if holds(case["when"], known))
        verdict = {
            "id": check["id"],
            "verdict": case["verdict"],
            "reason": render(case["reason"], known),
            "mend": render(case.get("mend", ""), known),
            "mended_by": case.get("mended_by"),
            "follows": None,
        }
        cause = next((v for v in verdicts if v["id"] == check.get("follows")), None)
        if cause and verdict["verdict"] == "blocks" and cause["verdict"] == "blocks":
            verdict.update(follows=cause["id"], mend=f"see {cause['id']}")
        verdicts.append(verdict)
    return verdicts


def overall(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """Return the worst verdict; what the plan itself mends counts as a warning."""
    ranks = [ORDER.index("warn" if v["mended_by"] else v["verdict"]) for v in verdicts]
    return ORDER[max(ranks, default=0)]


def _summaries(context: Mapping[str, Any], *, here: bool) -> dict[str, Any]:
    m, a, r = context["m"], context["a"], context["r"]
    capabilities = sorted((gpu["compute_cap"] for gpu in m["gpus"] if gpu["compute_cap"]), key=version_key)
    memories = [gpu["memory_mib"] for gpu in m["gpus"] if gpu["memory_mib"]]
    uses = [gpu["used_mib"] / gpu["memory_mib"] for gpu in m["gpus"] if gpu["used_mib"] and gpu["memory_mib"]]
    root = m["docker"]["root"] or ""
    python = m["env"]["python"] if m["env"]["kind"] and m["env"]["python"] else context["s"]["python"]
    return {
        "cards": names_of(m["gpus"]),
        "asked_gpus": _cards_for(a.get("gpus", "all")),
        "oldest": capabilities[0] if capabilities else None,
        "newest": capabilities[-1] if capabilities else None,
        "smallest": min(memories, default=None),
        "busiest": max(uses, default=0.0),
        **_disks(m["disks"], r["disk"]),
        "docker_root_home": bool(re.match(r"/(home|root)/", root)),
        "job_path": job_model(a.get("job", "")),
        "weights": examine(a["model_path"]) if here and a.get("model_path") else None,
        "keys": key_file(a.get("env_file", "")) if here else {"names": [], "open": False},
        "checkout_fault": _checkout_fault(Path(context["c"].get("checkout", ""))) if here else "",
        "wheel_fault": _wheel_fault(a.get("flash_attn_wheel", ""), python, here=here),
        "barred": _barred(_folders(context)) if here else [],
        "in_skill": [folder for folder in _folders(context) if inside_skill(Path(folder))] if here else [],
        "hub": context["c"].get("hub") or _hub(a, m),
    }


def _cards_for(asked: str) -> int:
    """Return how many cards a machine must have for an answer: a count, or one more than the highest index."""
    count, ids = asked_gpus(asked)
    indices = [int(index.partition(":")[0]) for index in ids if index[0].isdigit()]
    return count or max((index + 1 for index in indices), default=1)


def _checkout_fault(folder: Path) -> str:
    """Return what is wrong with a folder as an AgentJet checkout, or an empty text."""
    if not folder.is_dir():
        return "is no folder" if folder.exists() else "is not there"
    try:
        project = (folder / "pyproject.toml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "has no pyproject.toml"
    name = re.search(r"""^\s*name\s*=\s*["']([^"']*)""", project, re.MULTILINE)
    return f"is the project {name.group(1)}" if name and name.group(1).lower() != "agentjet" else ""


def _wheel_fault(path: str, python: str, *, here: bool) -> str:
    """Return why pip could not install a flash-attn wheel into an environment of this Python, or an empty text."""
    if not path:
        return ""
    tags = re.fullmatch(r"flash_attn-[^-]+(?:-[^-]+)?-([^-]+)-[^-]+-[^-]+\.whl", Path(path).name)
    if not tags:
        return "is not named as a flash-attn wheel (flash_attn-VERSION-cp310-cp310-linux_x86_64.whl)"
    if here and not Path(path).is_file():
        return "is not there"
    wanted = "cp{}{}".format(*version_key(python))
    return "" if wanted in tags.group(1).split(".") else f"is for {tags.group(1)}, the environment gets {wanted}"


def _folders(context: Mapping[str, Any]) -> list[str]:
    """Return the folders that a plan writes in."""
    a = context["a"]
    env = ("env",) if not Path(a.get("env", "")).is_file() else ()  # a file there is the business of the check env
    names = (*env, "logs", "experiments", *(("model_path",) if a.get("model_id") else ()))
    env_file = [str(Path(a["env_file"]).parent)] if a.get("env_file") else []
    return [context["workdir"], *(a[name] for name in names if a.get(name)), *env_file]


def _barred(folders: Sequence[str]) -> list[str]:
    """Return what keeps this user from making folders or writing in them, with the folders."""
    kept: dict[str, list[str]] = {}
    for folder in dict.fromkeys(folders):
        nearest = nearest_that_exists(folder)
        if not Path(nearest).is_dir():
            kept.setdefault(f"{nearest} is a file", []).append(folder)
        elif not os.access(nearest, os.W_OK | os.X_OK):
            kept.setdefault(f"no right to write in {nearest}", []).append(folder)
    return [f"{reason} (for {', '.join(names)})" for reason, names in kept.items()]


def _hub(answers: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    from skillpack.provision.mirrors import choose

    return choose("weights", answers["china"], machine["network"])


def _disks(disks: Mapping[str, Mapping[str, Any]], needs: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Sort the places into short, tight, unknown and room; places on one file system add up."""
    groups: dict[Any, list[str]] = {}
    for name in needs:
        groups.setdefault(disks[name]["mount"] or name, []).append(name)
    found: dict[str, list[str]] = {"short": [], "tight": [], "unknown_disks": [], "room": []}
    for mount, names in groups.items():
        free = disks[names[0]]["free_gib"]
        what = " and ".join(needs[name]["what"] for name in names)
        if free is None:
            found["unknown_disks"].append(disks[names[0]]["path"])
            continue
        need, want = (sum(needs[name][key] for name in names) for key in ("need_gib", "want_gib"))
        told = f"{free:g} GiB free on {mount} for {what}"
        if free < need:
            found["short"].append(f"{told}, {need} needed")
        elif free < want:
            found["tight"].append(f"{told}, {want} advised")
        else:
            found["room"].append(told)
    return found


def key_file(path: str) -> dict[str, Any]:
    """Return the names (never the values) that an env file sets, and whether others may read it."""
    try:
        mode = Path(path).stat().st_mode if path else 0
        lines = Path(path).read_text(encoding="utf-8").splitlines() if path else []
    except (OSError, UnicodeDecodeError):
        return {"names": [], "open": False}
    names = [found.group(1) for line in lines if (found := re.match(r"\s*([A-Za-z_]\w*)=\s*\S", line))]
    return {"names": names, "open": bool(names) and bool(mode & (stat.S_IRGRP | stat.S_IROTH))}
