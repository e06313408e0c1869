"""``skills doctor``: what each client would load, from where, and what is wrong with it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import click

from skillpack import __version__
from skillpack.install import shelf, sources
from skillpack.install.card import NotASkill, read_card
from skillpack.install.clients import Client, chosen
from skillpack.install.command import agent_option
from skillpack.install.home import here, home
from skillpack.install.itself import skills
from skillpack.install.record import OWN
from skillpack.script import NO, YES, Command, emit, json_option

ASK_VERSION = "import skillpack; print(skillpack.__version__)"
OLDEST_PYTHON = (3, 8)
"""The oldest Python that can read the scripts, far enough to start them again under the pack's own."""


@dataclass(frozen=True)
class Seen:
    """A skill in a folder that a client reads. ``name`` is what the client calls it."""

    name: str
    path: Path
    scope: str
    kind: shelf.Kind
    version: str = ""
    source: str = ""
    python: str = ""
    loaded: bool = True
    edits: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "path": str(self.path), "edits": list(self.edits)}


@dataclass
class Health:
    """What was found: the pack that looks, per client its program and skills, what is wrong or worth knowing."""

    version: str = __version__
    interpreter: str = sys.executable
    clients: list[dict[str, Any]] = field(default_factory=list)
    problems: list[dict[str, str]] = field(default_factory=list)
    notes: list[dict[str, str]] = field(default_factory=list)

    def wrong(self, what: str, fix: str) -> None:
        """Add a problem and the command that mends it, once."""
        if {"what": what, "fix": fix} not in self.problems:
            self.problems.append({"what": what, "fix": fix})

    def note(self, what: str, fix: str = "") -> None:
        """Add what is worth knowing and wrong with nothing, once."""
        if {"what": what, "fix": fix} not in self.notes:
            self.notes.append({"what": what, "fix": fix})

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"ok": not self.problems, **asdict(self)}


@click.command(
    "doctor",
    cls=Command,
    example="skills doctor --agent codex --json",
    exit_codes={NO: "something is wrong"},
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@agent_option
@json_option
def doctor_command(names: tuple[str, ...], agent: str, as_json: bool) -> int:
    """Check what each assistant will load in this folder, and that the scripts can run.

    With NAMEs, those skills must be among it.
    """
    health = examine(chosen(agent), names, here())
    emit(health.to_dict(), as_json=as_json, text=lambda: _text(health))
    return YES if not health.problems else NO


def examine(clients: Sequence[Client], names: Sequence[str], cwd: Path) -> Health:
    """Return what the clients would load in ``cwd``, and all that is wrong with it."""
    health = Health()
    for client in clients:
        seen = list(_see(client, cwd, health))
        seen = _load(client, seen)
        health.clients.append(
            {
                "client": client.name,
                "title": client.title,
                "program": shutil.which(client.program),
                "skills": [skill.to_dict() for skill in seen],
            }
        )
        _check_names(client, seen, names, health)
        for skill in seen:
            _check_skill(skill, health)
    _check_machine(health)
    if not any(entry["program"] for entry in health.clients):
        _check_programs(health)
    return health


def _see(client: Client, cwd: Path, health: Health) -> Iterator[Seen]:
    """Give the skills in all folders that the client reads, in its order of precedence."""
    visited = set()
    users = {folder.resolve() for root in client.roots if root.scope == "user" for folder in client.folders(root, cwd)}
    for root in client.roots:
        for folder in client.folders(root, cwd):
            if folder.resolve() in visited or (root.scope == "project" and folder.resolve() in users):
                continue
            visited.add(folder.resolve())
            try:
                yield from _see_folder(client, folder, root.scope, health)
            except OSError as error:
                health.wrong(f"{folder} cannot be read: {error.strerror}", f"chmod u+rx {shlex.quote(str(folder))}")


def _see_folder(client: Client, folder: Path, scope: str, health: Health) -> Iterator[Seen]:
    if not folder.is_dir():
        return
    for left in shelf.leftovers(folder):
        health.wrong(f"{left} was left by an installation that was killed", skills("update"))
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or not (path.is_dir() or path.is_symlink()):
            continue
        found = shelf.look(folder, path.name)
        try:
            card = read_card(path)
        except NotASkill as error:
            if path.is_symlink() and not path.exists():
                health.wrong(f"{path} is a link to nothing", _mend_link(found, scope))
            elif found.kind != "foreign":
                health.wrong(str(error), skills("install", "--force", path.name))
            continue
        name = client.calls(path, card.name)
        if name not in (card.name, path.name) and found.kind != "foreign":
            what = f"{client.title} calls {path} {name}, for it lies in that plugin"
            health.note(what, skills("install", "--copy", path.name) if found.kind == "link" else "")
        record = found.record
        yield Seen(
            name=name,
            path=path,
            scope=scope,
            kind=found.kind,
            version=record.version if record else card.version,
            source=record.source if record else "",
            python=record.python if record else "",
            edits=found.edits,
        )


def _mend_link(found: shelf.Found, scope: str) -> str:
    """Return the command that mends a link to nothing: one of ours is made anew, if its source is still there."""
    known = found.record
    if known is None:
        return f"rm {shlex.quote(str(found.path))}"
    verb = "update" if sources.again(known.source, found.path.name) else "uninstall"
    return skills(verb, found.path.name, "--scope", scope)


def _load(client: Client, seen: list[Seen]) -> list[Seen]:
    """Mark the skills that the client would not load because another has their name, or is the same folder."""
    folders: dict[Path, Seen] = {}
    for skill in seen if client.links == "last" else reversed(seen):
        folders[skill.path.resolve()] = skill
    kept = [skill for skill in seen if folders[skill.path.resolve()] is skill]
    names = {skill.name: skill for skill in reversed(kept)}
    return [
        replace(skill, loaded=skill in kept and (client.duplicates == "all" or names[skill.name] is skill))
        for skill in seen
    ]


def _check_names(client: Client, seen: list[Seen], names: Sequence[str], health: Health) -> None:
    """Complain of names that are met twice, and of ours that are missing."""
    for name in sorted({skill.name for skill in seen}):
        same = list({skill.path.resolve(): skill for skill in reversed(seen) if skill.name == name}.values())[::-1]
        if len(same) > 1 and any(skill.kind != "foreign" for skill in same):
            first, *others = same
            what = f"{client.title} loads {name} from {first.path} and not from {others[0].path}"
            if client.duplicates == "all":
                what = f"{client.title} lists {name} twice, from {first.path} and from {others[0].path}"
            health.wrong(what, _remove(others[0]))
    present = {skill.path.name for skill in seen}
    missing = [name for name in names if name not in present]
    if missing:
        health.wrong(
            f"{client.title} would not find {', '.join(missing)}",
            skills("install", *missing, "--agent", client.name),
        )
    elif not any(skill.kind != "foreign" for skill in seen):
        health.wrong(f"{client.title} has no skill of this pack", skills("install", "--agent", client.name))


def _remove(skill: Seen) -> str:
    if skill.kind == "foreign":
        return f"rm -r {shlex.quote(str(skill.path))}"
    return skills("uninstall", skill.path.name, "--scope", skill.scope)


def _check_skill(skill: Seen, health: Health) -> None:
    """Complain of a skill of ours that is out of date or whose interpreter is gone; note edits."""
    if skill.kind == "foreign":
        own = sources.own(skill.path.name)
        if own is not None:
            health.note(
                f"{skill.path} was not installed by `skills`: its scripts may not find the pack's interpreter",
                skills("install", "--force", skill.path.name),
            )
        return
    update = skills("update", skill.path.name, "--scope", skill.scope)
    version = pack_version(skill.python)
    if version is None:
        health.wrong(f"{skill.path} runs its scripts by {skill.python}, which does not hold the pack", update)
    elif version != __version__:
        health.wrong(f"{skill.path} runs its scripts by {skill.python}, which holds version {version}", update)
    if skill.source == OWN and skill.version != __version__:
        health.wrong(f"{skill.path} is of version {skill.version}, this pack is {__version__}", update)
    if skill.edits:
        health.note(f"{skill.path} was edited: {', '.join(skill.edits)}", f"{update} --force")


@lru_cache
def pack_version(python: str) -> str | None:
    """Return the version of the pack that an interpreter imports, shut off from the caller's settings; None if none."""
    try:
        answer = subprocess.run(
            [python, "-E", "-s", "-B", "-c", ASK_VERSION],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            cwd="/",
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _check_machine(health: Health) -> None:
    python = shutil.which("python3")
    version = _python_version(python) if python else None
    if python is None:
        health.wrong("there is no python3 on PATH, by which assistants call the scripts", _system_install("python3"))
    elif version is None:
        health.wrong(f"{python}, by which assistants call the scripts, does not run", f"{python} --version")
    elif version < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        health.wrong(f"{python} is older than Python {wanted}, and cannot read the scripts", _system_install("python3"))
    if shutil.which("tmux") is None:
        health.wrong("there is no tmux, the window into runs that are under way", _system_install("tmux"))


def _system_install(package: str) -> str:
    """Return the command that installs a package of the system."""
    if shutil.which("brew"):
        return f"brew install {package}"
    return f"{'' if os.geteuid() == 0 else 'sudo '}apt-get install -y {package}"


def _python_version(python: str) -> tuple[int, ...] | None:
    ask = "import sys; print(*sys.version_info[:2])"
    answer = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return tuple(map(int, answer.stdout.split())) if answer.returncode == 0 else None


def _check_programs(health: Health) -> None:
    titles = " nor ".join(entry["title"] for entry in health.clients)
    what = f"neither {titles} is on PATH" if " nor " in titles else f"{titles} is not on PATH"
    if shutil.which("node") is None:
        health.note(
            f"{what}, and there is no Node to install them by npm", "https://claude.ai/install.sh needs no Node"
        )
    else:
        health.note(what, "npm install -g @anthropic-ai/claude-code @openai/codex")


def _text(health: Health) -> str:
    lines = [f"this pack: {health.version} under {health.interpreter}"]
    for entry in health.clients:
        lines.append(f"{entry['title']} ({entry['program'] or 'not on PATH'})")
        for skill in entry["skills"]:
            marks = [
                skill["scope"],
                {"foreign": "not installed by skills", "link": "link"}.get(skill["kind"], ""),
                "" if skill["loaded"] else "SHADOWED",
                "edited" if skill["edits"] else "",
            ]
            path = skill["path"].replace(str(home()), "~", 1)
            lines.append(f"  {skill['name']} {skill['version']}  {path}  ({', '.join(filter(None, marks))})")
    for label, found in (("wrong", health.problems), ("note", health.notes)):
        for item in found:
            lines.append(f"{label}: {item['what']}")
            lines += [f"  try: {item['fix']}"] if item["fix"] else []
    lines.append("all is well" if not health.problems else f"{len(health.problems)} wrong")
    return "\n".join(lines)
