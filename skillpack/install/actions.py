"""Install, update and uninstall one skill in one place, without ever losing what a user wrote."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from skillpack.install import shelf, sources, tree
from skillpack.install.clients import Place
from skillpack.install.itself import skills
from skillpack.install.origin import origin_to_record
from skillpack.install.record import OWN, Record
from skillpack.install.shelf import Found
from skillpack.install.sources import Source
from skillpack.script import BadInput

REFUSED = "refused"


@dataclass(frozen=True)
class Action:
    """What was, or would be, done with a skill in a place.

    ``action`` is ``installed``, ``updated``, ``replaced`` (what others had put there), ``removed``,
    ``unchanged``, ``absent`` or ``refused``; ``reason`` says why if that is not plain, ``try_`` what
    mends it, ``diff`` what an overwrite would change, ``backup`` where the old content went.
    """

    skill: str
    clients: tuple[str, ...]
    scope: str
    path: str
    action: str
    reason: str = ""
    try_: str = ""
    diff: str = ""
    backup: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, empty texts left out."""
        return {key.rstrip("_"): value for key, value in asdict(self).items() if value}


@dataclass(frozen=True)
class How:
    """How to go about it: ``force`` overwrites, with a backup, what would be refused."""

    force: bool = False
    dry_run: bool = False


def install(source: Source, place: Place, how: How, *, link: bool) -> Action:
    """Put a skill in a place. Raises OSError; BadInput for a skill that cannot be copied."""
    with nullcontext() if how.dry_run else shelf.held(place.folder):
        return _install(source, place, how, link=link)


def _install(source: Source, place: Place, how: How, *, link: bool) -> Action:
    found = shelf.look(place.folder, source.name)
    action = _action(found, place)
    new = Record(python=sys.executable, version=source.version, source=source.origin, origin=origin_to_record())
    if source.path.parent.resolve() == place.folder.resolve():
        raise BadInput(
            f"{source.path} lies where it would be installed", expected="a skill from elsewhere", hint=skills("doctor")
        )
    if _is_current(found, source, new, link):
        return replace(action, action="unchanged")
    why = found.why or _other_source(found, source)
    if why and not _is_same(found, source.path):
        if not how.force:
            given = source.name if source.origin == OWN else str(source.path)
            return _refuse(action, found, why, ["install", given], source.path)
        action = _with_backup(action, found, how)
    done = {"absent": "installed", "foreign": "replaced"}.get(found.kind, "updated")
    if not how.dry_run:
        put = shelf.put_link if link else shelf.put_copy
        put(place.folder, source.name, source.path, new)
    return replace(action, action=done)


def update(found: Found, place: Place, how: How) -> Action:
    """Bring an installed skill to what its source is now. Raises OSError, BadInput."""
    assert found.record is not None
    source = sources.again(found.record.source, found.path.name)
    if source is None:
        return replace(
            _action(found, place),
            action=REFUSED,
            reason=f"its source, {found.record.source}, does not have it any more",
            try_=skills("uninstall", found.path.name),
        )
    return install(source, place, how, link=found.kind == "link")


def uninstall(name: str, place: Place, how: How) -> Action:
    """Take a skill out of a place. Raises OSError."""
    with nullcontext() if how.dry_run or not place.folder.is_dir() else shelf.held(place.folder):
        return _uninstall(name, place, how)


def _uninstall(name: str, place: Place, how: How) -> Action:
    found = shelf.look(place.folder, name)
    action = _action(found, place)
    if found.kind == "absent":
        return replace(action, action="absent")
    if found.kind == "foreign":
        return replace(action, action=REFUSED, reason=found.why, try_=f"rm -r {shlex.quote(action.path)}")
    if found.edits:
        if not how.force:
            return _refuse(action, found, found.why, ["uninstall", name], _origin(found))
        action = _with_backup(action, found, how)
    if not how.dry_run:
        shelf.take_out(place.folder, name)
    return replace(action, action="removed")


def _action(found: Found, place: Place) -> Action:
    return Action(found.path.name, place.clients, place.scope, str(found.path), "")


def _is_current(found: Found, source: Source, new: Record, link: bool) -> bool:
    """Tell whether the very skill is there already, installed the same way by the same interpreter."""
    known = found.record
    if (
        known is None
        or found.edits
        or (known.python, known.version, known.source) != (new.python, new.version, new.source)
    ):
        return False
    if link:
        return found.kind == "link" and known.link == str(source.path)
    return (
        found.kind == "copy"
        and known.files == tree.fingerprints(source.path)
        and known.executable == tree.executables(source.path)
    )


def _other_source(found: Found, source: Source) -> str:
    """Return the complaint about a skill of the same name that was installed from elsewhere; empty if it was not."""
    if found.record is None or found.record.source == source.origin:
        return ""
    return f"it was installed from {found.record.source}, not from {source.origin}"


def _is_same(found: Found, source: Path) -> bool:
    """Tell whether the very same is there, so that nothing is lost: a folder with the same files, or a link to one.

    Other installers may have changed who may execute them; in a copy of ours the user has.
    """
    there = found.path.resolve()
    if not there.is_dir() or tree.fingerprints(there) != tree.fingerprints(source):
        return False
    return found.kind != "copy" or tree.executables(there) == tree.executables(source)


def _refuse(action: Action, found: Found, why: str, command: list[str], other: Path | None) -> Action:
    """Return the refusal, with what separates the user's files from those that would replace them."""
    comparable = other is not None and found.path.is_dir() and not found.path.is_symlink()
    return replace(
        action,
        action=REFUSED,
        reason=f"{why}; --force overwrites it and keeps a backup",
        try_=skills(*command, "--force", *_where(action)),
        diff=tree.diff(found.path, other) if comparable and other else "",
    )


def _where(action: Action) -> list[str]:
    """Return the options that point a command at the place of this action alone."""
    agent = ["--agent", action.clients[0]] if len(action.clients) == 1 else []
    return agent + (["--scope", action.scope] if action.scope != "user" else [])


def _origin(found: Found) -> Path | None:
    assert found.record is not None
    source = sources.again(found.record.source, found.path.name)
    return source.path if source else None


def _with_backup(action: Action, found: Found, how: How) -> Action:
    return replace(action, backup="(a new folder)" if how.dry_run else str(shelf.back_up(found.path)))
