"""Each operation is stopped at each of its changes, one after the other: the old is there then, or the new."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from skillpack.install import actions, shelf
from skillpack.install.actions import How
from skillpack.install.clients import Place
from skillpack.install.sources import find
from tests.install.interruption import stopped_at
from tests.install.kit import below, make_skill
from tests.install.test_every_order import content

STATES = ["absent", "copy", "edited copy", "old copy", "link", "link elsewhere", "theirs", "their link"]
OPERATIONS = ["copy", "link", "uninstall"]
MOST = 200
"""Changes that no operation comes to."""


def lay(state: str, place: Place, skill: Path) -> None:
    """Bring a shelf into a state."""
    if state.startswith("their"):
        place.folder.mkdir(parents=True)
        mine = make_skill(
            place.folder if state == "theirs" else place.folder.parent / "mine", skill.name, body="# Mine\n"
        )
        if state == "their link":
            (place.folder / skill.name).symlink_to(mine)
    elif state != "absent":
        source = skill
        if state == "link elsewhere":
            source = Path(shutil.copytree(skill, skill.parent / "before" / skill.name))
        actions.install(find([str(source)])[0], place, How(), link=state.startswith("link"))
    if state == "edited copy":
        (place.folder / skill.name / "references" / "numbers.md").write_text("my own line\n")
    if state == "old copy":
        (skill / "SKILL.md").write_text((skill / "SKILL.md").read_text() + "new\n")


@pytest.mark.parametrize("for_good", [True, False], ids=["killed", "interrupted"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("state", STATES)
def test_stopped_at_each_change(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, operation: str, for_good: bool
) -> None:
    skill = make_skill(tmp_path / "elsewhere")
    template = home / "template" / "skills"
    lay(state, Place(template, "user", ("codex",)), skill)
    new = {"copy": content(skill), "link": {"": (f"-> {skill}", False)}, "uninstall": None}[operation]
    for change in range(MOST):
        folder = home / f"{change}" / "skills"
        if template.exists():
            shutil.copytree(template.parent, folder.parent, symlinks=True)
        place = Place(folder, "user", ("codex",))
        monkeypatch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
        old, before = content(folder / skill.name), below(folder.parent)
        done = False
        with stopped_at(change, for_good=for_good):
            if operation == "uninstall":
                actions.uninstall(skill.name, place, How(force=True))
            else:
                actions.install(find([str(skill)])[0], place, How(force=True), link=operation == "link")
            done = True
        assert content(folder / skill.name) in [old, new, None], change
        if folder.is_dir():
            shelf.settle(folder)
        there = content(folder / skill.name)
        assert there in [old, new], change
        if folder.is_dir():
            found = shelf.look(folder, skill.name)
            assert shelf.leftovers(folder) == []
            if there == old != new and state in ("copy", "link", "link elsewhere", "old copy"):
                assert found.kind == state.split()[-1 if state == "old copy" else 0], (
                    change
                )  # it is still known as ours
                assert found.edits == ()
        mine = {text for text in before.values() if "my own" in text or "# Mine" in text}
        assert mine <= set(below(folder.parent).values()), change
        if done:
            return
    raise AssertionError(f"not done after {MOST} changes")
