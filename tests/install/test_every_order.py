"""Whatever is done in whatever order, no edit of a user is lost and nothing stray is left."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skillpack.install import actions, shelf
from skillpack.install.actions import Action, How
from skillpack.install.clients import Place, places
from skillpack.install.record import LINKS, NAME
from skillpack.install.sources import Source, find
from tests.install.interruption import stopped_at
from tests.install.kit import below, make_skill

SKILLS = ["count-things", "weigh-things"]
FILES = ["SKILL.md", "scripts/count.py", "references/numbers.md", "references/mine.md", "my notes/.todo"]

Content = dict[str, tuple[str, bool]]


def content(folder: Path) -> Content | None:
    """Return {relative path: (text, whether it is executable)} of a skill, its record left out; None if it is absent.

    Of what is no folder, itself by the name "".
    """
    if folder.is_symlink():
        return {"": (f"-> {folder.readlink()}", False)}
    if folder.is_file():
        return {"": (folder.read_text(), False)}
    if not folder.is_dir():
        return None
    return {name: (text, _executable(folder / name)) for name, text in below(folder).items() if name != NAME}


def _executable(path: Path) -> bool:
    return not path.is_symlink() and bool(path.stat().st_mode & stat.S_IXUSR)


class Shelves(RuleBasedStateMachine):
    """A user with two clients and a project, two skills, an editor, other installers, and a bad power supply."""

    name = st.sampled_from(SKILLS)
    shelf = st.integers(0, 3)
    how = st.builds(How, force=st.booleans(), dry_run=st.booleans())
    operation = st.sampled_from(["copy", "link", "update", "uninstall"])

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="shelves-"))
        self.home = self.root / "home"
        self.environment = mock.patch.dict(os.environ, {"HOME": str(self.home)})
        self.environment.start()
        for variable in ("CLAUDE_CONFIG_DIR", "XDG_STATE_HOME"):
            os.environ.pop(variable, None)
        self.written: set[str] = set()
        self.count = 0

    @initialize()
    def start(self) -> None:
        for name in SKILLS:
            make_skill(self.root / "pack", name)
        (self.home / "work" / ".git").mkdir(parents=True)
        self.shelves: list[Place] = places("all", ["user", "project"], self.home / "work")
        assert len(self.shelves) == 4

    def teardown(self) -> None:
        self.environment.stop()
        shutil.rmtree(self.root)

    def source(self, name: str) -> Source:
        return find([str(self.root / "pack" / name)])[0]

    def place(self, shelf: int, name: str) -> Path:
        return self.shelves[shelf].folder / name

    def edited(self, at: int, name: str) -> bool:
        """Tell whether a copy has edits that are not in its source."""
        found = shelf.look(self.shelves[at].folder, name)
        return bool(found.edits) and content(found.path) != content(self.root / "pack" / name)

    def unique(self) -> str:
        """Return a text that stands nowhere else."""
        self.count += 1
        return f"line number {self.count} of the user\n"

    def do(self, operation: str, at: int, name: str, how: How) -> Action | None:
        """Carry an operation out as the command line does; None if there is nothing to update."""
        place = self.shelves[at]
        if operation == "uninstall":
            return actions.uninstall(name, place, how)
        if operation != "update":
            return actions.install(self.source(name), place, how, link=operation == "link")
        found = shelf.look(place.folder, name)
        return actions.update(found, place, how) if found.record is not None else None

    @rule(at=shelf, name=name, operation=operation, how=how)
    def operate(self, at: int, name: str, operation: str, how: How) -> None:
        before, there, edited = below(self.home), content(self.place(at, name)), self.edited(at, name)
        action = self.do(operation, at, name, how)
        if action is None:
            return
        after = below(self.home)
        assert action.action == "refused" or how.force or not edited
        if how.dry_run or action.action in ("refused", "unchanged", "absent"):
            assert after == before
            assert content(self.place(at, name)) == there
        elif action.backup:
            assert content(Path(action.backup)) == there
        inside = f"{self.place(at, name).relative_to(self.home)}"
        records = f"{self.shelves[at].folder.relative_to(self.home)}/{LINKS}/{name}.json"
        assert {
            path
            for path in before.keys() | after.keys()
            if before.get(path) != after.get(path)
            and not (path in (records, inside) or path.startswith((f"{inside}/", ".local/")))
        } == set()
        if how.dry_run:
            return
        if action.action in ("installed", "updated", "replaced"):
            found = shelf.look(self.shelves[at].folder, name)
            assert found.edits == ()
            assert content(found.path.resolve()) == content(self.root / "pack" / name)
            if operation != "update":
                assert found.kind == operation
        if action.action == "removed":
            assert not os.path.lexists(self.place(at, name))

    @rule(
        at=shelf,
        name=name,
        operation=operation,
        force=st.booleans(),
        change=st.integers(0, 40),
        for_good=st.booleans(),
    )
    def is_stopped(self, at: int, name: str, operation: str, force: bool, change: int, for_good: bool) -> None:
        """An operation is killed, or interrupted, at one of its changes. What is there then is the old or the new."""
        place = self.place(at, name)
        old = content(place)
        with stopped_at(change, for_good=for_good):
            self.do(operation, at, name, How(force=force))
        source = content(self.root / "pack" / name)
        new: list[Content | None] = [source, {"": (f"-> {self.root / 'pack' / name}", False)}]
        assert content(place) in [old, None, *new]
        if self.shelves[at].folder.is_dir():
            shelf.settle(self.shelves[at].folder)
        assert content(place) in [old, *([None] if operation == "uninstall" else new)]
        for empty in (self.shelves[at].folder, self.shelves[at].folder.parent):
            if empty.is_dir() and not any(empty.iterdir()):
                empty.rmdir()  # a folder without a file is no stray file

    @rule(at=shelf, name=name, file=st.sampled_from(FILES))
    def edit(self, at: int, name: str, file: str) -> None:
        """The user writes a line of his own into an installed copy, into a new file of it maybe."""
        place = self.place(at, name)
        if place.is_symlink() or not place.is_dir():
            return
        path = place / file
        path.parent.mkdir(parents=True, exist_ok=True)
        line = self.unique()
        self.written.add(line)
        old = path.read_text() if path.exists() else ""
        path.write_text(old + line)

    @rule(at=shelf, name=name, file=st.sampled_from(FILES))
    def change_mode(self, at: int, name: str, file: str) -> None:
        """The user makes a file of an installed copy executable, or no longer so."""
        path = self.place(at, name) / file
        if not self.place(at, name).is_symlink() and path.is_file():
            path.chmod(path.stat().st_mode ^ stat.S_IXUSR)

    @rule(at=shelf, name=name, file=st.sampled_from([*FILES, NAME]))
    def delete(self, at: int, name: str, file: str) -> None:
        """The user deletes a file of an installed copy that he has written nothing into, its record maybe."""
        path = self.place(at, name) / file
        if self.place(at, name).is_symlink() or not path.is_file() or "of the user" in path.read_text():
            return
        path.unlink()

    @rule(at=shelf, name=name)
    def delete_all(self, at: int, name: str) -> None:
        """The user deletes a skill that he has written nothing into."""
        place = self.place(at, name)
        if place.is_symlink():
            place.unlink()
        elif place.is_dir() and "of the user" not in "".join(below(place).values()):
            shutil.rmtree(place)
        shelf.settle(self.shelves[at].folder)

    @rule(at=shelf, name=name, kind=st.sampled_from(["folder", "file", "link", "dangling"]))
    def put_by_others(self, at: int, name: str, kind: str) -> None:
        """Something that is not ours comes to lie in a skill's place."""
        place = self.place(at, name)
        if os.path.lexists(place):
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        line = self.unique()
        if kind == "folder":
            make_skill(place.parent, name, body=line)
        elif kind == "file":
            place.write_text(line)
        else:
            target = self.home / "theirs" / f"{self.count}"
            if kind == "link":
                make_skill(target, name, body=line)
            place.symlink_to(target / name)
            if kind == "dangling":
                return
        self.written.add(line)

    @rule(name=name, script=st.booleans())
    def publish(self, name: str, script: bool) -> None:
        """The source of a skill gets a new version, or another mode of its script."""
        path = self.root / "pack" / name / ("scripts/count.py" if script else "SKILL.md")
        if script:
            path.chmod(path.stat().st_mode ^ stat.S_IXUSR)
            return
        path.write_text(path.read_text() + f"version {self.count}\n")
        self.count += 1

    @invariant()
    def no_line_is_lost(self) -> None:
        everything = "".join(below(self.home).values())
        assert [line for line in self.written if line not in everything] == []

    @precondition(lambda self: hasattr(self, "shelves"))
    @invariant()
    def nothing_is_stray(self) -> None:
        for place in self.shelves:
            if not place.folder.exists():
                continue
            names = {path.name for path in place.folder.iterdir()}
            links = {path.name for path in place.folder.iterdir() if path.is_symlink()}
            assert names - {LINKS} <= set(SKILLS)
            if LINKS in names:
                records = {path.name for path in (place.folder / LINKS).iterdir()}
                assert records
                assert records <= {f"{link}.json" for link in links}
            ours = [found for found in shelf.installed(place.folder) if found.kind == "link"]
            assert bool(ours) == (LINKS in names)


TestEveryOrder = Shelves.TestCase
TestEveryOrder.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
