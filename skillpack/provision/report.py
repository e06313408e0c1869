"""What the install scripts print: one document each, and its short text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillpack.provision.plan import Step
    from skillpack.provision.survey import Survey
    from skillpack.provision.verify import Proof

MACHINE = (
    "arch", "kernel", "os", "wsl", "container", "glibc", "cpus", "memory_gib", "free_memory_gib", "cgroup_gib",
    "shm_mib", "gpus", "driver", "cuda", "mig", "nvcc", "python", "conda", "uv", "docker", "toolkit", "selinux", "ajet",
    "disks", "proxies",
)  # fmt: skip
"""What of a machine a report shows; the rest is in a recording."""
SAYING = {"ok": "ok    ", "warn": "warn  ", "blocks": "BLOCKS"}
ORDER = ("blocks", "warn", "ok")


def preflight(found: Survey, questions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the document of preflight.py."""
    return {
        "recipe": found.recipe,
        "verdict": found.verdict,
        "checks": [{key: value for key, value in verdict.items() if value} for verdict in found.verdicts],
        "ask": list(questions),
        "root_steps": [step.title for step in found.plan.steps if step.root],
        "machine": {
            **{name: found.machine[name] for name in MACHINE},
            "gpus": _counted(found.machine["gpus"]),
            "network": {name: seen["seconds"] for name, seen in found.machine["network"].items() if seen["reachable"]},
        },
    }


def _counted(gpus: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return like cards once, with their count; used_mib is the most that one of them uses."""
    kinds: dict[tuple[Any, ...], dict[str, Any]] = {}
    for gpu in gpus:
        key = (gpu["name"], gpu["memory_mib"], gpu["compute_cap"])
        kind = kinds.setdefault(key, {**gpu, "count": 0})
        kind["count"] += 1
        kind["used_mib"] = max((use for use in (kind["used_mib"], gpu["used_mib"]) if use is not None), default=None)
    return [{name: value for name, value in kind.items() if name != "index"} for kind in kinds.values()]


def preflight_text(document: Mapping[str, Any]) -> str:
    """Return verdicts as lines, what blocks first."""
    checks = sorted(document["checks"], key=lambda check: ORDER.index(check["verdict"]))
    lines = []
    for check in checks:
        lines.append(f"{SAYING[check['verdict']]} {check['id']}: {check['reason']}")
        if check["verdict"] != "ok" and check.get("mend"):
            by = f" (step {check['mended_by']})" if check.get("mended_by") else ""
            lines.append(f"       mend: {check['mend']}{by}")
    for question in document["ask"]:
        need = ", needed" if question["required"] else f", else {question['default']}" if question["default"] else ""
        lines.append(f"ask    {question['question']} ({question['option']}{need})")
    lines.append(
        {
            "ok": "the plan can start",
            "warn": "the plan can start; mind the warnings",
            "blocks": "the plan cannot start",
        }[document["verdict"]]
    )
    return "\n".join(lines)


def plan(found: Survey) -> dict[str, Any]:
    """Return the document of plan.py: exact commands; of files that are laid down the names only."""
    steps = [_step(step) for step in found.plan.steps]
    return {
        "recipe": found.recipe,
        "title": found.plan.title,
        "verdict": found.verdict,
        "blocks": [
            {key: v[key] for key in ("id", "reason", "mend", "mended_by")}
            for v in found.verdicts
            if v["verdict"] == "blocks"
        ],
        "workdir": found.plan.workdir,
        "root_steps": [step.title for step in found.plan.steps if step.root],
        "minutes": round(sum(step.minutes for step in found.plan.steps), 1),
        "disk_gib": round(sum(step.disk_gib for step in found.plan.steps), 1),
        "steps": steps,
    }


def _step(step: Step) -> dict[str, Any]:
    """Return a step without what can be told from the rest: a verify like its check, an undo that does nothing."""
    told = {"id": step.id, "title": step.title, "root": step.root, "why": step.why}
    cost = {"minutes": step.minutes, "disk_gib": step.disk_gib}
    undo = {"undo": step.undo} if step.undo != "true" else {}
    if step.files:
        return {**told, "files": list(step.files), **undo, **cost}
    verify = {"verify": step.verify} if step.verify != step.check else {}
    return {**told, "check": step.check, "run": step.run, **verify, **undo, **cost}


def plan_text(document: Mapping[str, Any]) -> str:
    """Return a plan as a person reads it: root first, then each step with its commands."""
    lines = [f"{document['title']}, in {document['workdir']}"]
    if document["root_steps"]:
        lines.append(f"Root is needed for: {', '.join(document['root_steps'])}")
    lines.append(f"About {document['minutes']:g} minutes and {document['disk_gib']:g} GiB, by estimate.")
    for block in document["blocks"]:
        lines.append(
            f"BLOCKS {block['id']}: {block['reason']}; "
            + (f"step {block['mended_by']} mends it" if block["mended_by"] else block["mend"])
        )
    for number, step in enumerate(document["steps"], 1):
        lines.append(f"\n{number}. {step['title']}{' [root]' if step['root'] else ''}\n   {step['why']}")
        lines.extend(f"   writes {path}" for path in step.get("files", ()))
        lines.extend(f"     {line}" for line in step.get("run", "").splitlines())
    lines.append("\nThe whole as a script: --script. To run it: --apply.")
    return "\n".join(lines)


def refused(recipe: str, stops: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what --apply answers when something blocks that no step mends."""
    return {
        "recipe": recipe,
        "state": "refused",
        "blocks": [{key: stop[key] for key in ("id", "reason", "mend")} for stop in stops],
        "steps": [],
    }


def refused_text(document: Mapping[str, Any]) -> str:
    """Return a refusal as lines."""
    lines = ["nothing was done; this blocks:"]
    lines.extend(f"  {block['id']}: {block['reason']}\n    mend: {block['mend']}" for block in document["blocks"])
    return "\n".join([*lines, "to go on all the same: --ignore CHECK"])


def progress(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of --apply and --status; a refused plan is its own document."""
    if state["state"] == "refused":
        return dict(state)
    steps = [
        {"id": name, "title": step["title"], "state": step["state"], "seconds": step.get("seconds")}
        for name, step in state["steps"].items()
    ]
    kept = {name: state[name] for name in ("recipe", "state", "log", "failed")}
    return {**kept, "steps": steps}


def progress_text(document: Mapping[str, Any]) -> str:
    """Return how far a plan is, and what to do about a failure."""
    if document["state"] == "refused":
        return refused_text(document)
    lines = [f"{step['state']:8} {step['title']}" for step in document["steps"]]
    if failed := document["failed"]:
        lines.extend(f"  | {line}" for line in failed["tail"])
        lines += [f"cause: {failed['cause']}", f"mend: {failed['mend']}"]
    return "\n".join([*lines, f"{document['state']}; log {document['log']}"])


def preview_text(steps: Sequence[Mapping[str, str]]) -> str:
    """Return a dry run as lines."""
    return "\n".join(f"{step['state']:10} {step['title']}" for step in steps)


def proofs(recipe: str, found: Sequence[Proof]) -> dict[str, Any]:
    """Return the document of verify.py; it works when nothing that was tried failed and something was tried."""
    tried = [proof.ok for proof in found if proof.ok is not None]
    return {"recipe": recipe, "works": bool(tried) and all(tried), "proofs": [proof._asdict() for proof in found]}


def proofs_text(document: Mapping[str, Any]) -> str:
    """Return proofs as lines."""
    saying = {True: "yes ", False: "NO  ", None: "-   "}
    lines = []
    for proof in document["proofs"]:
        lines.append(f"{saying[proof['ok']]}{proof['id']}: {proof['text']}")
        if proof["mend"] and proof["ok"] is not True:
            lines.append(f"      {proof['mend']}")
    return "\n".join([*lines, "it works" if document["works"] else "it does not work yet"])
