"""Where the clients look for skills."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from skillpack.install.home import expand, home

TABLE = Path(__file__).with_name("clients.yaml")


@dataclass(frozen=True)
class Root:
    """A folder of skills that a client reads. ``path`` is as the table has it; see ``Client.folders``."""

    scope: str
    path: str
    install: bool = False


@dataclass(frozen=True)
class Client:
    """An assistant. The fields are explained in ``clients.yaml``."""

    name: str
    title: str
    program: str
    homes: tuple[tuple[str, str], ...]
    identity: str
    plugins: tuple[str, ...]
    duplicates: str
    links: str
    roots: tuple[Root, ...]

    def folders(self, root: Root, cwd: Path) -> list[Path]:
        """Return the folders that a root stands for, nearest first; they need not exist."""
        path = root.path
        for variable, default in self.homes:
            path = path.replace(f"${variable}", os.environ.get(variable) or default)
        if root.scope == "project":
            return [folder / path for folder in up_to_project(cwd)]
        return [expand(path)]

    def calls(self, skill: Path, name: str) -> str:
        """Return what the client calls the skill in a folder whose SKILL.md says ``name``."""
        called = skill.name if self.identity == "folder" else name
        for folder in skill.resolve().parents:
            for manifest in self.plugins:
                try:
                    plugin = json.loads((folder / manifest).read_text(encoding="utf-8"))["name"]
                except (OSError, ValueError, KeyError, TypeError):
                    continue
                return f"{plugin}:{called}"
        return called

    def target(self, scope: str, cwd: Path) -> Path:
        """Return the folder that skills are installed into for ``user`` or ``project``."""
        root = next(root for root in self.roots if root.install and root.scope == scope)
        return self.folders(root, cwd)[-1]


@dataclass(frozen=True)
class Place:
    """A folder of skills to install into, and the clients that read it."""

    folder: Path
    scope: str
    clients: tuple[str, ...]


@lru_cache
def clients() -> dict[str, Client]:
    """Return all known clients by name."""
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return {
        name: Client(
            name=name,
            homes=tuple(entry.pop("homes").items()),
            plugins=tuple(entry.pop("plugins")),
            roots=tuple(Root(**root) for root in entry.pop("roots")),
            **entry,
        )
        for name, entry in table.items()
    }


def chosen(agent: str) -> list[Client]:
    """Return the client of that name, or every client for ``all``."""
    return list(clients().values()) if agent == "all" else [clients()[agent]]


def up_to_project(cwd: Path) -> list[Path]:
    """Return ``cwd`` and its parents up to the project's root (the nearest with ``.git``), or ``cwd`` alone.

    A home folder under version control is no project of the folders in it.
    """
    folders = [cwd, *cwd.parents]
    root = next((folder for folder in folders if (folder / ".git").exists() and folder != home()), cwd)
    return folders[: folders.index(root) + 1]


def places(agent: str, scopes: Sequence[str], cwd: Path) -> list[Place]:
    """Return where to install for a client or ``all``; clients that share a folder, by a link, share a place."""
    found: dict[Path, Place] = {}
    for scope in scopes:
        for client in chosen(agent):
            folder = client.target(scope, cwd)
            known = found.get(folder.resolve())
            names = (*known.clients, client.name) if known else (client.name,)
            found[folder.resolve()] = Place(known.folder if known else folder, scope, names)
    return list(found.values())
