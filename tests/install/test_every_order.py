"""Whatever is done in whatever order, no edit of a user is lost and nothing stray is left."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skillpack.install import actions, shelf
from skillpack.install.actions import How
from skillpack.install.clients import Place, places
from skillpack.install.record import LINKS, NAME
from skillpack.install.sources import Source, find
from tests.install.kit import below, installed, make_skill

SKILLS = ["count-things", "weigh-things"]
FILES = ["SKILL.md", "scripts/count.py", "references/numbers.md", "references/mine.md"]


class Shelves(RuleBasedStateMachine):
    """A user with two clients, two skills, an editor, and other installers."""

    name = st.sampled_from(SKILLS)
    client = st.sampled_from([0, 1])
    how = st.builds(How, force=st.booleans(), dry_run=st.booleans())

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="shelves-"))
        self.environment = mock.patch.dict(os.environ, {"HOME": str(self.root / "home")})
        self.environment.start()
        for variable in ("CLAUDE_CONFIG_DIR", "XDG_STATE_HOME"):
            os.environ.pop(variable, None)
        self.written: set[str] = set()
        self.count = 0

    @initialize()
    def start(self) -> None:
        for name in SKILLS:
            make_skill(self.root / "pack", name)
        self.shelves: list[Place] = places("all", ["user"], self.root)

    def teardown(self) -> None:
        self.environment.stop()
        shutil.rmtree(self.root)

    def source(self, name: str) -> Source:
        return find([str(self.root / "pack" / name)])[0]

    def place(self, client: int, name: str) -> Path:
        return self.shelves[client].folder / name

    def edited(self, client: int, name: str) -> bool:
        """Tell whether a copy has edits that are not in its source."""
        found = shelf.look(self.shelves[client].folder, name)
        source = below(self.root / "pack" / name)
        return bool(found.edits) and installed(found.path) != source

    def unique(self) -> str:
        """Return a text that stands nowhere else."""
        self.count += 1
        return f"line number {self.count} of the user\n"

    @rule(client=client, name=name, link=st.booleans(), how=how)
    def install(self, client: int, name: str, link: bool, how: How) -> None:
        before = below(self.root / "home")
        edited = self.edited(client, name)
        action = actions.install(self.source(name), self.shelves[client], how, link=link)
        assert (action.action == "refused") or how.force or not edited
        self.check(action, client, how, before)
        if action.action in ("installed", "updated", "replaced") and not how.dry_run:
            found = shelf.look(self.shelves[client].folder, name)
            assert found.kind == ("link" if link else "copy")
            assert not found.edits
            wanted = below(self.root / "pack" / name)
            assert {file: text for file, text in below(found.path.resolve()).items() if file != NAME} == wanted

    @rule(client=client, name=name, how=how)
    def uninstall(self, client: int, name: str, how: How) -> None:
        before = below(self.root / "home")
        edited = shelf.look(self.shelves[client].folder, name).edits
        action = actions.uninstall(name, self.shelves[client], how)
        assert (action.action == "refused") or how.force or not edited
        self.check(action, client, how, before)
        if action.action == "removed" and not how.dry_run:
            assert not os.path.lexists(self.place(client, name))

    @rule(client=client, how=how)
    def update(self, client: int, how: How) -> None:
        for found in shelf.installed(self.shelves[client].folder):
            before = below(self.root / "home")
            edited = self.edited(client, found.path.name)
            action = actions.update(found, self.shelves[client], how)
            assert (action.action == "refused") or how.force or not edited
            self.check(action, client, how, before)

    def check(self, action: actions.Action, client: int, how: How, before: dict[str, str]) -> None:
        """Nothing changes in a dry run, or if it was refused, or if there was nothing to do, and never elsewhere."""
        if how.dry_run or action.action in ("refused", "unchanged", "absent"):
            assert below(self.root / "home") == before
        if action.backup and not how.dry_run:
            assert os.path.lexists(action.backup)
        others = f"{self.shelves[1 - client].folder.relative_to(self.root / 'home')}/"
        after = below(self.root / "home")
        assert {k: v for k, v in after.items() if k.startswith(others)} == {
            k: v for k, v in before.items() if k.startswith(others)
        }

    @rule(client=client, name=name, file=st.sampled_from(FILES))
    def edit(self, client: int, name: str, file: str) -> None:
        """The user writes a line of his own into an installed copy."""
        place = self.place(client, name)
        if place.is_symlink() or not place.is_dir():
            return
        path = place / file
        path.parent.mkdir(parents=True, exist_ok=True)
        line = self.unique()
        self.written.add(line)
        old = path.read_text() if path.exists() else ""
        path.write_text(old + line)

    @rule(client=client, name=name, file=st.sampled_from(FILES[1:3]))
    def delete(self, client: int, name: str, file: str) -> None:
        """The user deletes a file of an installed copy that he has written nothing into."""
        path = self.place(client, name) / file
        if self.place(client, name).is_symlink() or not path.exists() or "of the user" in path.read_text():
            return
        path.unlink()

    @rule(client=client, name=name, kind=st.sampled_from(["folder", "file", "link", "dangling"]))
    def put_by_others(self, client: int, name: str, kind: str) -> None:
        """Something that is not ours comes to lie in a skill's place."""
        place = self.place(client, name)
        if os.path.lexists(place):
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        line = self.unique()
        if kind == "folder":
            make_skill(place.parent, name, body=line)
        elif kind == "file":
            place.write_text(line)
        else:
            target = self.root / "home" / "theirs" / f"{self.count}"
            if kind == "link":
                make_skill(target, name, body=line)
            place.symlink_to(target / name)
            if kind == "dangling":
                return
        self.written.add(line)

    @rule(name=name)
    def publish(self, name: str) -> None:
        """The source of a skill gets a new version."""
        path = self.root / "pack" / name / "SKILL.md"
        path.write_text(path.read_text() + f"version {self.count}\n")
        self.count += 1

    @rule(client=client, name=name)
    def killed(self, client: int, name: str) -> None:
        """An installation was killed between its two renames."""
        place = self.place(client, name)
        if not os.path.lexists(place):
            return
        stage = place.parent / f"{shelf.STAGE}{name}.k1ll3d"
        (stage / "new").mkdir(parents=True)
        place.rename(stage / "old")
        with shelf.held(place.parent):  # what the next installation begins with
            pass

    @invariant()
    def no_line_is_lost(self) -> None:
        everything = "".join(below(self.root / "home").values())
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
                records = {path.stem for path in (place.folder / LINKS).iterdir()}
                assert records
                assert records <= links
            ours = [found for found in shelf.installed(place.folder) if found.kind == "link"]
            assert bool(ours) == (LINKS in names)


TestEveryOrder = Shelves.TestCase
TestEveryOrder.settings = settings(
    max_examples=150,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
