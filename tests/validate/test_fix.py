"""``--fix`` mends what is mechanical, once, and nothing else."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from skillpack.validate.clients import CLIENTS
from skillpack.validate.discover import SkillFolder
from skillpack.validate.fix import mend, plan
from skillpack.validate.mend.fences import split
from skillpack.validate.mend.layers import mend_encoding, mend_line_ends
from skillpack.validate.mend.left import rank
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
    "two hyphens at the end": b"---\nname: word-count\ndescription: Text\n--\n\nBody\n",
    "fence at the end of a value": b"---\nname: word-count\ndescription: Text---\n\n# Title\n\nBody\n",
    "wide blank behind the fence": f"{HEAD}Text{TAIL}".replace("---", "---\u3000").encode(),
    "terminal codes": f"{HEAD}\x1b[1mText\x1b[0m and \x1b]8;;https://x.io\x07link{TAIL}".encode(),
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
    "utf-16 without a mark": GOOD.encode("utf-16-le"),
    "windows quotes": f"{HEAD}Text “quoted” – café{TAIL}".encode("cp1252"),
    "long dashes for fences": f"{HEAD}Text{TAIL}".replace("---", "\u2014-").encode(),
    "comment on the fence": f"{HEAD}Text{TAIL}".replace("---", "--- # ours", 1).encode(),
    "two hyphens": f"{HEAD}Text{TAIL}".replace("---", "--", 1).encode(),
    "no closing fence, a field-like line": b"---\nname: word-count\ndescription: Text\n\nUsage: run it\n\nBody\n",
    "wide colon": "---\nname：word-count\ndescription：技能\n---\n\nBody\n".encode(),
    "no blank behind the colon": b"---\nname:word-count\ndescription:Use it\n---\n\nBody\n",
    "tab behind the colon": f"---\nname:\tword-count\ndescription: a:\tb{TAIL}".encode(),
    "separator": f"{HEAD}Text\u2028more\x85{TAIL}".encode(),
    "placeholder": f"{HEAD}{{{{TEXT}}}}{TAIL}".encode(),
    "list for a description": f"{HEAD}\n- Counts words\n- Counts lines{TAIL}".encode(),
    "mapping for a description": f"{HEAD}\n  what: Counts words\n  when: asked{TAIL}".encode(),
    "description behind a hash": f"{HEAD}# counts words{TAIL}".encode(),
    "unindented block": f"{HEAD}|\nCounts words.\n\nUse when: asked.\nlicense: MIT{TAIL}".encode(),
    "unindented list in brackets": f"{HEAD}Text\nallowed-tools: [\nRead,\nGrep\n]{TAIL}".encode(),
    "indented field": b"---\nname: word-count\n  description: Text\n---\n\nBody\n",
    "capitals": f"---\nName: word-count\nDescription: Text{TAIL}".encode(),
    "same field twice": f"{HEAD}Text\nlicense: MIT\nlicense: MIT{TAIL}".encode(),
    "two names": f"---\nname: word-count\nname: other\ndescription: Text{TAIL}".encode(),
    "empty field and the same field": f"{HEAD}\ndescription: Text{TAIL}".encode(),
    "anchors": f"---\nname: &n word-count\ndescription: &d Text\nmetadata: &m\n  a: *n\n  b: *d{TAIL}".encode(),
    "tags": f"---\nname: !!str word-count\ndescription: !text Text\nmetadata:\n  v: !!str 1{TAIL}".encode(),
    "braces around all": b'---\n{"name": "word-count",\n "description": "Text",\n "metadata": {"v": 1}}\n---\n\nBody\n',
    "a list of fields": f"---\n- name: word-count\n- description: Text{TAIL}".encode(),
    "list for compatibility": f"{HEAD}Text\ncompatibility: [git, curl]{TAIL}".encode(),
    "metadata in a text": f"{HEAD}Text\nmetadata: '{{\"v\": 1}}'{TAIL}".encode(),
    "list of metadata": f"{HEAD}Text\nmetadata:\n  - author: me\n  - version: 1.0{TAIL}".encode(),
    "deep braces": f"{HEAD}Text\nmetadata: {{a: {{b: [c, {{d: e}}], f: {{}}}}}}{TAIL}".encode(),
    "mappings side by side": f"{HEAD}Text\nmetadata:\n  a:\n      b: c\n  d:\n    e: f{TAIL}".encode(),
    "unknown keys": f"{HEAD}Text\nversion: 1.0\ntags: [a, b]\nnotes: |\n  one\n  two\nmore:\n  a: b{TAIL}".encode(),
    "unknown keys beside metadata": f"{HEAD}Text\nversion: 1\nmetadata:\n    author: me\nauthor: me{TAIL}".encode(),
    "dashes in values": f"{HEAD}One --- two\n# --- tools ---\nmetadata:\n  a: '-----'{TAIL}".encode(),
    "dashes in a block": f"{HEAD}|\n  one\n  ---\n  two{TAIL}".encode(),
    "blanks that make it too long": f'{HEAD}"{"x" * 1020}{" " * 9}yyy"{TAIL}'.encode(),
}


def verdicts(data: bytes, folder: str = "word-count") -> dict[str, str]:
    skill = laid(data, folder)
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


def laid(data: bytes, folder: str, file: str = "SKILL.md") -> SkillFile:
    root = Path("/no/such/skills")
    return SkillFile(SkillFolder(root / folder, root, file, 1, hidden=folder.startswith(".")), data)


def words(text: str | None) -> str:
    """What people see of a text: clients fold blanks, each in its way, and control characters are no words."""
    return re.sub("[\\s\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]+", "", text or "")


def check_properties(skill: SkillFile) -> None:
    """Assert what holds for any file: mended once for all, for no client worse, the body and the words kept."""
    done = plan(skill)
    if done is None:
        return
    after = done.skill
    assert plan(after) is None
    original, fenced = mend_encoding(skill.data), split(after.text)
    if original is not None and fenced is not None:
        tail = fenced[1].removeprefix("---").removeprefix("\n")
        assert mend_line_ends(original[0])[0].endswith(tail)
    said, says = ({client: read(one) for client, read in CLIENTS.items()} for one in (skill, after))
    assert [client for client in CLIENTS if rank(says[client]) > rank(said[client])] == []
    shown = {words(said[client].description) for client in CLIENTS if client != "claude-code"} - {""}
    if not any("\ufffd" in text for text in shown):  # bytes that are not UTF-8
        now = {words(reading.description) for reading in says.values()}
        assert not shown or any(old in text for text in now for old in shown), shown


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(skill_files())
def test_any_file_is_mended_once_for_all_and_for_no_client_worse(generated):
    check_properties(laid(generated.data, generated.folder))


@pytest.mark.parametrize("probe", PROBES, ids=[f"{number}-{probe['probe']}" for number, probe in enumerate(PROBES)])
def test_no_probe_does_worse_when_it_is_mended(probe):
    check_properties(laid(content(probe), probe["folder"], probe.get("file", "SKILL.md")))


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


def test_a_file_that_asks_to_be_left_alone_is(skill, run, tmp_path):
    text = f"\n---\nname: other\n# skills: ignore -- written by a generator\ndescription: Use when: asked{TAIL}"
    folder = skill(text=text)
    wide = skill("wide", text=text.encode("utf-16"))
    (folder / "SKILL.md").rename(folder / "skill.md")
    assert run("validate", tmp_path / "skills", "--fix", "--no-run").stderr == ""
    assert (folder / "skill.md").read_text() == text
    assert (wide / "SKILL.md").read_bytes() == text.encode("utf-16")


def test_a_read_only_file_stays_and_the_next_is_mended(skill, run, tmp_path):
    locked, other = (skill(name, text=BROKEN["colon"]) for name in ("locked", "word-count"))
    (locked / "SKILL.md").chmod(0o444)
    told = run("validate", tmp_path / "skills", "--fix", "--no-run").stderr
    assert f"left {locked}/SKILL.md: it is read-only; chmod u+w" in told
    assert f"mended {other}/SKILL.md: yaml-colon" in told
    assert (locked / "SKILL.md").read_bytes() == BROKEN["colon"]


def test_a_file_that_cannot_be_written_is_told_in_a_line(skill, run, monkeypatch):
    folder = skill(text=BROKEN["colon"])

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("skillpack.validate.fix.write_atomically", fail)
    told = run("validate", folder, "--fix", "--no-run")
    assert "cannot be written (No space left on device)" in told.stderr
    assert told.exception is None or isinstance(told.exception, SystemExit)
    assert (folder / "SKILL.md").read_bytes() == BROKEN["colon"]


def test_an_untouched_file_keeps_its_time(skill, run):
    folder = skill()
    os.utime(folder / "SKILL.md", (1, 1))
    run("validate", folder, "--fix", "--no-run")
    assert (folder / "SKILL.md").stat().st_mtime == 1


@pytest.mark.parametrize(
    ("folder", "name", "renamed"),
    [
        ("Word-Count", "word-count", "word-count"),
        ("Word_Count", "Word Count", "word-count"),
        ("计数", "word-count", "word-count"),
        ("Word-Count", "Counter", "Word-Count"),
        (".word-count", "word-count", ".word-count"),
        ("计数", "计数", "计数"),
    ],
)
def test_a_folder_takes_the_name_that_the_specification_asks_for(skill, run, tmp_path, folder, name, renamed):
    skill(folder, text=f"---\nname: {name}\ndescription: {DESCRIPTION}{TAIL}")
    result = run("validate", tmp_path / "skills", "--fix", "--no-run")
    assert [path.name for path in (tmp_path / "skills").iterdir()] == [renamed]
    assert (folder != renamed) == (f"the folder was {folder}" in result.stderr)
    assert ("left" in result.stderr) == (name in ("Counter",) or folder.startswith("."))


def test_a_folder_stays_that_is_named_elsewhere_or_would_cover_another(skill, run, tmp_path):
    for name in ("Word_Count", "Line_Count", "Page_Count"):
        skill(name, text=f"---\nname: {name}\ndescription: {DESCRIPTION}{TAIL}")
    skill("line-count")
    skill("guide", body="See [the other](../Page_Count/SKILL.md).\n", files={"line.md": "Word_Count is a skill."})
    told = run("validate", tmp_path / "skills", "--fix", "--no-run").stderr
    there = {path.name for path in (tmp_path / "skills").iterdir()}
    assert there == {"word-count", "Line_Count", "Page_Count", "line-count", "guide"}
    assert "Rename the folder to line-count; --fix does not, for there is a line-count already." in told
    assert "Rename the folder to page-count; --fix does not, for guide/SKILL.md names it." in told


def test_the_folder_that_was_asked_for_is_not_taken_away(skill, run):
    folder = skill("Word_Count", text=f"---\nname: word-count\ndescription: {DESCRIPTION}{TAIL}")
    told = run("validate", folder, "--fix", "--no-run")
    assert "--fix does not, for it is the folder that was asked for" in told.stderr
    assert folder.is_dir()


def test_a_checkout_does_not_give_the_skill_its_name(skill, run):
    folder = skill("main", text=f"---\nname: word-count\ndescription: Use when: asked{TAIL}")
    (folder / ".git").mkdir()
    told = run("validate", folder, "--fix", "--no-run").stderr
    assert "name: word-count\n" in (folder / "SKILL.md").read_text()
    assert "mended" in told
    assert "Call the folder by the skill's name where it is installed" in told


LEFT = {
    "no description": (f"---\nname: word-count{TAIL}", "Write what the skill does"),
    "two descriptions": (f"{HEAD}One\ndescription: Two{TAIL}", "Decide which description is meant"),
    "too long": (f"{HEAD}{'x' * 1025}{TAIL}", "Shorten the description from 1,025 characters to 1,024."),
    "compatibility too long": (f"{HEAD}Text\ncompatibility: {'x' * 501}{TAIL}", "Shorten the compatibility from 501"),
    "no frontmatter": ("# Title\n", "Begin the file with `---`"),
    "a text for metadata": (f"{HEAD}Text\nmetadata: hello{TAIL}", "`key: value` lines below `metadata:`"),
    "a key of Claude Code": (f"{HEAD}Text\nmodel: opus\nversion: 1{TAIL}", "Keep model (the model that the skill"),
    "a key twice": (f"{HEAD}Text\nx: 1\nx: 2{TAIL}", "Decide which x is meant"),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_only_a_person_can_know_is_left_and_told_in_one_line(case, skill, run):
    text, advice = LEFT[case]
    folder = skill(text=text)
    told = run("validate", folder, "--fix", "--no-run").stderr.splitlines()
    assert len(told) == 1
    assert told[0].startswith(f"left {folder}/SKILL.md: ")
    assert advice in told[0]
    assert (folder / "SKILL.md").read_text() == text


def test_what_is_left_is_told_for_the_chosen_client_only(skill, run):
    folder = skill(text=LEFT["a key of Claude Code"][0])
    assert run("validate", folder, "--fix", "--no-run", "--client", "codex").stderr == ""


@pytest.mark.parametrize("other", ["Текст об этом", "你好世界"])
def test_bytes_of_another_script_are_not_taken_for_western_letters(other):
    data = f"{HEAD}{other}{TAIL}".encode("cp1251" if other < "Ҁ" else "gbk")
    assert mend(data, "word-count") == (data, [])


def test_a_changed_name_and_a_moved_key_are_told(skill, run):
    folder = skill(text=f"---\nname: counter\ndescription: {DESCRIPTION}\nversion: 1.0{TAIL}")
    told = run("validate", folder, "--fix", "--no-run").stderr
    assert "name-folder (was counter), key-unknown (version to metadata)" in told
    assert 'metadata:\n  version: "1.0"\n---' in (folder / "SKILL.md").read_text()
