"""Write a blueprint from what its fields shall hold."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillpack.blueprint.durations import BadDuration, format_duration, parse_duration
from skillpack.blueprint.model import parse_blueprint
from skillpack.rendering import render
from skillpack.script import BadInput

_SERVER_URL = re.compile(r"""["'](https?://[^"'\s]+:\d+)/?["']""")


@dataclass(frozen=True)
class Fields:
    """What goes into a blueprint; paths are as the user gave them."""

    purpose: str
    codebase_dir: str
    venv_exe: str
    yaml_path: str
    commands: tuple[str, ...]
    result_dir: str
    max_time: str
    server_command: str = ""
    server_url: str = ""
    notes: str = ""


def render_blueprint(fields: Fields) -> str:
    """Return the text of a blueprint, which reads back as what was given. Raises BadInput if it would not."""
    fields = replace(fields, max_time=_told(fields.max_time))
    for name in ("codebase_dir", "venv_exe", "yaml_path", "result_dir"):
        if "`" in getattr(fields, name) or "\n" in getattr(fields, name):
            raise BadInput(f"{name} holds a backtick or a line break", expected="a plain path")
    title = re.sub(r"\s+", " ", fields.purpose).strip()[:60]
    text = render("blueprint.md.jinja", title=title, **vars(fields))
    read = parse_blueprint(text, Path.cwd() / "blueprint.md")
    if read.problems or tuple(read.commands) != tuple(command.strip() for command in fields.commands):
        raise BadInput(
            f"the blueprint would not read back as given: {'; '.join(read.problems) or 'the launch command changed'}",
            expected="a purpose without lines that look like fields, commands without ``` lines",
        )
    return text


def _told(max_time: str) -> str:
    try:
        seconds = parse_duration(max_time)
    except BadDuration as error:
        raise BadInput(f"--max-time: {error}", expected="24h, 90min, 1.5 hours, or none") from None
    return "none" if seconds is None else max_time if len(max_time) < 30 else format_duration(seconds)


def from_job_script(script: Path, folder: Path | None = None) -> dict[str, Any]:
    """Return what a client script tells of its run, read and not run.

    ``folder`` is where the commands run (default: the script's own). Keys: ``commands``,
    ``yaml_path`` (the script itself: its AgentJetJob is the configuration), ``purpose`` (project
    and experiment), ``mode`` (``swarm``, ``classic`` or ``unknown``), ``server_url`` (where its
    SwarmClient goes; without one, the first URL with a port in it) and ``notes`` (the values that matter
    for the run's size). Raises BadInput.
    """
    from skillpack.blueprint.swarm_client import addresses
    from skillpack.config.sources import read_sources

    sources = read_sources(script)
    config = sources[0].config
    names = [str(config[key]) for key in ("ajet.project_name", "ajet.experiment_name") if config.get(key)]
    clients = addresses(script)
    named = None if clients else _SERVER_URL.search(script.read_text(encoding="utf-8", errors="replace"))
    url = next((client.url for client in clients if client.url), named[1] if named else "")
    folder = folder or script.parent
    name = str(script.relative_to(folder) if script.is_relative_to(folder) else script)
    told = {
        key: config[key]
        for key in (
            "ajet.model.path",
            "ajet.data.train_batch_size",
            "ajet.rollout.num_repeat",
            "ajet.rollout.max_env_worker",
        )
        if key in config
    }
    notes = [f"From the AgentJetJob of {script.name}:", "", *(f"- {key} = {value}" for key, value in told.items())]
    notes += [f"- {unknown}" for unknown in sources[0].unknown[:5]] if sources[0].unknown else []
    return {
        "commands": (f"python {shlex.quote(name)}",),
        "yaml_path": str(script),
        "codebase_dir": str(script.parent),
        "purpose": f"Train {' / '.join(names)}" if names else f"Run {script.name}",
        "mode": "swarm" if clients else sources[0].mode,
        "server_url": url,
        "notes": "\n".join(notes),
    }
