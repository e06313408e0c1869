"""A blueprint, read: what a run needs to know."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillpack.blueprint.durations import BadDuration, format_duration, parse_duration
from skillpack.blueprint.fields import fields, vocabulary
from skillpack.blueprint.paths import FILE, FOLDER, kind
from skillpack.blueprint.sections import Section, split_sections
from skillpack.blueprint.values import as_commands, as_path, as_text, as_url
from skillpack.script import BadInput

SIZE_LIMIT = 1_000_000
_PREAMBLE = re.compile(r"^\s*(?:cd|source|\.|export|unset|set|ulimit|conda|module|[A-Za-z_]\w*=\S*$)(?:\s|$|=)")


@dataclass(frozen=True)
class Blueprint:
    """An experiment: paths are absolute, ``max_time`` is in seconds (None: no limit was given)."""

    source: Path
    purpose: str
    codebase_dir: Path | None
    venv_exe: Path | None
    yaml_path: Path | None
    commands: tuple[str, ...]
    """Classic: the launch command. Swarm: one command per client."""
    server_command: str | None
    server_url: str | None
    result_dir: Path | None
    max_time: float | None
    notes: str
    text: str = field(repr=False)
    problems: tuple[str, ...] = ()
    """What could not be read, and required fields that are missing."""

    @property
    def mode(self) -> str:
        """``swarm`` if a server is named or started, else ``classic``."""
        return "swarm" if self.server_command or self.server_url else "classic"

    @property
    def variables(self) -> dict[str, str]:
        """The variables by which a run's commands get its paths, such as ``$exp_yaml_path``."""
        return {name: str(path) for name, path in self._paths.items() if path}

    @property
    def _paths(self) -> dict[str, Path | None]:
        return {
            "exp_codebase_dir": self.codebase_dir,
            "exp_venv_exe": self.venv_exe,
            "exp_yaml_path": self.yaml_path,
            "exp_result_dir": self.result_dir,
        }

    def as_json(self) -> dict[str, Any]:
        """Return the document of ``blueprint.py show --json``."""
        return {
            "source": str(self.source),
            "mode": self.mode,
            "exp_purpose": self.purpose,
            **{name: str(path) if path else None for name, path in self._paths.items()},
            "exp_launch_command": list(self.commands),
            "exp_server_command": self.server_command,
            "exp_server_url": self.server_url,
            "exp_max_time": self.max_time,
            "exp_max_time_text": format_duration(self.max_time) if self.max_time else None,
            "notes": self.notes,
            "problems": list(self.problems),
        }


def read_blueprint(path: str | Path) -> Blueprint:
    """Read a blueprint file. Raises BadInput if the file cannot be read or names no field at all."""
    path = Path(path).expanduser().absolute()
    if kind(path) == FOLDER:
        path = path / "blueprint.md"
    if kind(path) != FILE:
        raise BadInput(
            f"no blueprint at {path}",
            expected="a Markdown file with exp_purpose, exp_launch_command, exp_result_dir …",
            hint="scripts/blueprint.py new --help",
        )
    if path.stat().st_size > SIZE_LIMIT:
        raise BadInput(f"{path} has more than {SIZE_LIMIT} bytes", expected="a blueprint, which is a page of text")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8: {error.reason} at byte {error.start}", hint="save it as UTF-8") from None
    blueprint = parse_blueprint(text, path)
    if not (blueprint.commands or blueprint.purpose or blueprint.result_dir):
        raise BadInput(
            f"{path} names none of the fields of a blueprint",
            expected=", ".join(name for name, known in fields().items() if known.required),
            hint="scripts/blueprint.py new --help",
        )
    return blueprint


def parse_blueprint(text: str, source: Path) -> Blueprint:
    """Parse a blueprint's text. Relative paths count from the codebase, and that from the file's folder."""
    sections = split_sections(text)
    first = _Reader(sections)
    codebase = first.path("exp_codebase_dir", source.parent)
    base = codebase or source.parent
    commands = [c for s in first.all("exp_launch_command") for c in as_commands(s)]
    servers = [c for s in first.all("exp_server_command") for c in as_commands(s)]
    commands, started = _without_server(commands)
    url = as_url(section) if (section := first.one("exp_server_url")) else None
    server = "\n".join(servers) or started
    if server is None and section and not url:
        server = "\n".join(as_commands(section)) or None
    max_time = first.duration("exp_max_time")
    if not server and not url and len(commands) > 1:
        commands = ["\n".join(commands)]
    return Blueprint(
        source=source,
        purpose=as_text(purpose) if (purpose := first.one("exp_purpose")) else "",
        codebase_dir=codebase,
        venv_exe=first.path("exp_venv_exe", base),
        yaml_path=first.path("exp_yaml_path", base),
        commands=tuple(commands),
        server_command=server,
        server_url=url,
        result_dir=first.path("exp_result_dir", base),
        max_time=max_time,
        notes=_notes(sections),
        text=text,
        problems=tuple(first.problems + _missing(first)),
    )


class _Reader:
    """Picks, for each field, the first section that holds something."""

    def __init__(self, sections: list[Section]) -> None:
        self._sections = [section for section in sections if section.name and not section.empty]
        self.problems: list[str] = []

    def all(self, name: str) -> list[Section]:
        return [section for section in self._sections if section.name == name]

    def one(self, name: str) -> Section | None:
        return next(iter(self.all(name)), None)

    def path(self, name: str, base: Path) -> Path | None:
        section = self.one(name)
        return as_path(section, base) if section else None

    def duration(self, name: str) -> float | None:
        for section in self.all(name):
            try:
                return parse_duration(as_text(section))
            except BadDuration as error:
                self.problems.append(f"{name}: {error}; write it with a unit, such as 24h or 90min")
        return None


def _missing(reader: _Reader) -> list[str]:
    return [f"{name} is missing" for name, known in fields().items() if known.required and not reader.one(name)]


def is_server_command(line: str) -> bool:
    """Tell whether a line of shell starts a swarm server."""
    return any(re.search(pattern, line) for pattern in vocabulary()["server_commands"])


def _without_server(commands: list[str]) -> tuple[list[str], str | None]:
    """Take a server's start out of the launch commands; lines like ``cd`` and ``export`` stay with both."""
    clients: list[str] = []
    server: str | None = None
    for command in commands:
        lines = command.replace("\\\n", " ").splitlines()
        starts = [line for line in lines if is_server_command(line)]
        if not starts:
            clients.append(command)
            continue
        preamble = [line for line in lines if _PREAMBLE.match(line)]
        start = re.sub(r"\s*&\s*$", "", re.sub(r"^\s*nohup\s+", "", starts[0]))
        server = "\n".join([*preamble, start])
        rest = [line for line in lines if not is_server_command(line)]
        if any(line.strip() and not _PREAMBLE.match(line) for line in rest):
            clients.append("\n".join(rest).strip())
    return clients, server


def _notes(sections: list[Section]) -> str:
    parts = []
    for section in sections:
        if section.name is None and not section.empty:
            title = f"{section.title}\n" if section.title else ""
            parts.append(title + as_text(section))
    return "\n\n".join(part.strip() for part in parts if part.strip())
