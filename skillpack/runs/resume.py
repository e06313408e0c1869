"""Pick a run up again: after a reboot, a lost session, a killed tmux server or a dead supervisor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillpack.runs import process
from skillpack.runs.process import Identity
from skillpack.runs.progress import Progress
from skillpack.runs.rundir import RunDir
from skillpack.runs.status import Status, observe
from skillpack.runs.tmux import Tmux


def resume(run: RunDir) -> tuple[Status, dict[str, Any]]:
    """Return a run's state and a document: what is alive, whether its window could be opened again, what to do."""
    status = observe(run)
    record = status.record
    progress = Progress.of(run, record)
    progress.refresh(whole=not status.alive)
    window = _window_again(run, status) if status.alive else "closed"
    supervisor = Identity.from_json(record.get("supervisor"))
    document = {
        "dir": str(run.path),
        "state": status.state,
        "reason": status.reason,
        "rebooted": record.get("boot") not in (None, process.boot_id()),
        "supervisor_alive": bool(supervisor and supervisor.alive()),
        "processes": status.processes,
        "window": window,
        "session": record.get("session"),
        "last_step": progress.main.last_step,
        "checkpoint": _checkpoint(run, record),
    }
    document["summary"] = _summary(document)
    document["todo"] = _todo(run, status, document)
    return status, document


def _window_again(run: RunDir, status: Status) -> str:
    """Open the run's tmux session anew if it is gone; the window only follows the logs."""
    session = status.record.get("session")
    if not session or not Tmux.installed():
        return "none"
    tmux = Tmux(status.record.get("socket"))
    if tmux.has(session):
        return "open"
    parts = status.record["parts"]
    logs = [str(run.log_of(part["name"], len(parts)).relative_to(run.path)) for part in parts]
    follow = ["tail", "-n", "1000", "-F"]
    tmux.open_session(session, parts[0]["name"], [*follow, logs[0]], {}, folder=str(run.path))
    for part, log in zip(parts[1:], logs[1:], strict=True):
        tmux.open_window(session, part["name"], [*follow, log], folder=str(run.path))
    return "reopened"


def _checkpoint(run: RunDir, record: dict[str, Any]) -> str | None:
    """Return the newest ``global_step_<n>`` folder where the run's configuration puts its checkpoints."""
    from skillpack.triage.remedy import config_lookup

    lookup = config_lookup(run.configuration(record))
    base, project, name = (
        lookup(f"ajet.{key}") for key in ("trainer_common.checkpoint_base_dir", "project_name", "experiment_name")
    )
    if not base or not project:
        return None
    root = Path(record["spec"].get("codebase_dir") or ".") / str(base) / str(project)
    pattern = "*" if name in (None, "read_yaml_name") else str(name)
    found = [path for path in root.glob(f"{pattern}/global_step_*") if path.name.rsplit("_", 1)[-1].isdigit()]
    newest = max(found, key=lambda path: (path.parent.stat().st_mtime, int(path.name.rsplit("_", 1)[-1])), default=None)
    return str(newest) if newest else None


def _summary(document: dict[str, Any]) -> str:
    step = f"last step {document['last_step']}" if document["last_step"] is not None else "no step"
    alive = f"{len(document['processes'])} processes alive" if document["processes"] else "no process alive"
    reason = f" ({document['reason']})" if document["reason"] else ""
    return f"{document['state']}{reason}: {alive}, {step}, window {document['window']}"


def _todo(run: RunDir, status: Status, document: dict[str, Any]) -> list[str]:
    if status.alive and status.supervised:
        return [f"go on: scripts/run.py watch {run.quoted}"]
    if status.alive:
        return [
            f"it goes on unsupervised: watch it (scripts/run.py watch {run.quoted}) and end it yourself at "
            f"exp_max_time, or scripts/run.py stop {run.quoted}"
        ]
    if run.finish_flag.exists():
        return [f"nothing: {run.finish_flag} closes it"]
    if status.state == "finished":
        return [f"collect: scripts/run.py collect {run.quoted}"]
    again = f'scripts/run.py attempt {run.quoted} --tried "the same again"'
    if document["checkpoint"]:
        return [
            f"start again: {again}",
            f"it resumes from {document['checkpoint']} if project and experiment name are the same",
        ]
    return [f"why: scripts/triage.py {run.quoted}", f"start again: {again}"]
