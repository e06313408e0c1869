"""``--fix`` mends what is mechanical, once, and nothing else."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings

from skillpack.validate.clients import CLIENTS
from skillpack.validate.discover import SkillFolder
from skillpack.validate.fix import mend
from skillpack.validate.source import SkillFile
from tests.clients.skill_files import skill_files
from tests.validate.conftest import DESCRIPTION
from tests.validate.test_verdicts import PROBES, content

GOOD = (
    f"---\nname: word-count\ndescription: {DESCRIPTION}\nlicense: MIT # ours\n\n---\n\n# Title\n\ttab\t\u00a0\n---\nend"
)
HEAD = "---\nname: word-count\ndescription: "
TAIL = "\n---\n\n# Title\n"

BROKEN = {
    "bom": b"\xef\xbb\xbf" + GOOD.encode(),
    "utf-16": GOOD.encode("utf-16"),
    "latin-1": f"{HEAD}Zähler für Texte{TAIL}".encode("latin-1"),
    "crlf": GOOD.replace("\n", "\r\n").encode(),
    "cr": f"{HEAD}Text{TAIL}".replace("\n", "\r").encode(),
    "control": f"{HEAD}Te\x07xt{TAIL}".encode(),
    "blank line first": ("\n" + GOOD).encode(),
    "blanks behind the fence": GOOD.replace("---\n", "---  \n", 1).encode(),
    "four hyphens": b"----\nname: word-count\ndescription: Text\n----\n\nBody\n",
    "no opening fence": f"{HEAD}Text{TAIL}".removeprefix("---\n").encode(),
    "no closing fence": b"---\nname: word-count\ndescription: Text\n\n# Title\n\nBody\n",
    "no fence, a line later": b"---\nname: word-count\ndescription: Text\n\n# Title\n\nBody\n\n---\n\nmore\n",
    "dots": b"---\nname: word-count\ndescription: Text\n...\n\nBody\n",
    "indented fence": b"---\nname: word-count\ndescription: Text\n ---\n\nBody\n",
    "title behind the fence": b"---\nname: word-count\ndescription: Text\n---# Title\n\nBody\n",
    "colon": f"{HEAD}Use when: asked{TAIL}".encode(),
    "colon at the end": f"{HEAD}Use when:{TAIL}".encode(),
    "colon on two lines": f"{HEAD}Use when: asked\n  or: told{TAIL}".encode(),
    "line in column 0": f"{HEAD}Use when\nasked{TAIL}".encode(),
    "at": f"{HEAD}@scope/pkg helper{TAIL}".encode(),
    "backtick": f"{HEAD}`cmd` helper{TAIL}".encode(),
    "star": f"{HEAD}**bold** helper{TAIL}".encode(),
    "percent": f"{HEAD}%percent helper{TAIL}".encode(),
    "quoted word first": f'{HEAD}"Learn then build": help{TAIL}'.encode(),
    "open quote": f'{HEAD}"Learn then build{TAIL}'.encode(),
    "bracket": f"{HEAD}[Internal] helper{TAIL}".encode(),
    "text behind a block marker": f"{HEAD}> folded text\n  and more{TAIL}".encode(),
    "number": f"{HEAD}42{TAIL}".encode(),
    "no-break space": b"---\nname: word-count\ndescription:\xc2\xa0Text\n---\n\nBody\n",
    "quoted in column 0": f'{HEAD}"Text\nmore"{TAIL}'.encode(),
    "no name": f"---\ndescription: Text{TAIL}".encode(),
    "other name": f"---\nname: Word Count\ndescription: Text{TAIL}".encode(),
    "number for a name": f"---\nname: 3000\ndescription: Text{TAIL}".encode(),
    "flow": f"{HEAD}Text\nallowed-tools: [Read, Grep]\nmetadata: {{a: b, version: 1.0}}{TAIL}".encode(),
    "tab": f"{HEAD}Text\nmetadata:\n\tauthor: me{TAIL}".encode(),
}


def verdicts(data: bytes, folder: str = "word-count") -> dict[str, str]:
    from pathlib import Path

    skill = SkillFile(SkillFolder(Path("/skills") / folder, Path("/skills"), "SKILL.md", 1), data)
    lost = {client for client, read in CLIENTS.items() if any(reason.lost for reason in read(skill).reasons)}
    return {client: "lost" if client in lost else read(skill).verdict for client, read in CLIENTS.items()}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_mechanical_loads_in_every_client_afterwards(broken):
    data, rules = mend(BROKEN[broken], "word-count")
    assert rules
    assert not {"rejects", "lost"} & set(verdicts(data).values()), data.decode()


def test_a_file_that_breaks_no_rule_stays_byte_for_byte():
    assert mend(GOOD.encode(), "word-count") == (GOOD.encode(), [])


def test_only_what_is_broken_changes():
    head = "---\nname:   word-count   # ours\ndescription: Use when: asked\nallowed-tools: [a,  b] \n"
    data = f"{head}{TAIL}\ttabs\t: and: colons\n"
    mended, _ = mend(data.encode(), "word-count")
    assert mended.decode() == data.replace("Use when: asked", '"Use when: asked"').replace(
        " [a,  b] ", "\n  - a\n  - b "
    )


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(skill_files())
def test_mending_twice_is_mending_once(generated):
    once, _ = mend(generated.data, generated.folder)
    assert mend(once, generated.folder) == (once, [])


@pytest.mark.parametrize("probe", PROBES, ids=[f"{number}-{probe['probe']}" for number, probe in enumerate(PROBES)])
def test_no_probe_does_worse_when_it_is_mended(probe):
    ranks = {"loads": 0, "loads-with-changes": 1, "lost": 2, "rejects": 3}
    before = verdicts(content(probe), probe["folder"])
    after = verdicts(mend(content(probe), probe["folder"])[0], probe["folder"])
    assert all(ranks[after[client]] <= ranks[before[client]] for client in CLIENTS)


def test_the_command_mends_in_place_keeps_permissions_and_says_what_it_did(skill, run):
    folder = skill(text=f"{HEAD}Use when: the user asks for the number of words.{TAIL}")
    os.chmod(folder / "SKILL.md", 0o640)  # noqa: PTH101
    first = run("validate", folder, "--fix", "--no-run")
    assert first.exit_code == 0
    assert "yaml-colon" in first.stderr
    assert (folder / "SKILL.md").stat().st_mode & 0o777 == 0o640
    text = (folder / "SKILL.md").read_text()
    second = run("validate", folder, "--fix", "--no-run")
    assert second.stderr == ""
    assert (folder / "SKILL.md").read_text() == text
    assert [path.name for path in folder.iterdir()] == ["SKILL.md"]


def test_the_command_renames_a_wrong_spelling(skill, run):
    folder = skill()
    (folder / "SKILL.md").rename(folder / "skill.md")
    assert run("validate", folder, "--fix", "--no-run").exit_code == 0
    assert [path.name for path in folder.iterdir()] == ["SKILL.md"]


def test_nothing_is_written_through_a_link_that_leads_out(skill, run, tmp_path):
    outside = tmp_path / "outside.md"
    outside.write_bytes(BROKEN["colon"])
    folder = skill()
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to(outside)
    result = run("validate", folder, "--fix", "--no-run")
    assert "outside of" in result.stderr
    assert outside.read_bytes() == BROKEN["colon"]


def test_a_rule_that_the_file_leaves_out_is_not_mended(skill, run):
    text = f"---\nname: other\n# skills: ignore name-folder -- an alias\ndescription: Use when: asked{TAIL}"
    folder = skill(text=text)
    run("validate", folder, "--fix", "--no-run")
    assert (folder / "SKILL.md").read_text() == text.replace("Use when: asked", '"Use when: asked"')
