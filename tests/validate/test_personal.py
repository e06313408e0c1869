"""Claude Code treats a skill in ``.claude/skills`` otherwise than a plugin's, as was seen of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpack.validate.clients.claude_code import read
from skillpack.validate.clients.reading import Reading
from skillpack.validate.discover import SkillFolder
from skillpack.validate.source import SkillFile


def reading(text: str, *, personal: bool, name: str = "s", link: bool = False) -> Reading:
    root = Path("/home/me/.claude/skills" if personal else "/plugin/skills")
    return read(SkillFile(SkillFolder(root / name, root, "SKILL.md", depth=1, file_is_link=link), text.encode()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("---\nname: s\n---\n\n## First *line*\n\nMore.\n", "First *line*"),
        ("---\nname: s\n---\n#Title\n", "#Title"),
        ("---\nname: s\n---\n" + "w " * 75, "w " * 48 + "w..."),
        ("---\nname: s\n---\n", "Skill"),
        ("", "Skill"),
        ("\ufeff# No frontmatter\n", "No frontmatter"),
        ("---\nname: s\n", "---"),
        ('---\nname: s\ndescription: "a" b\n---\nBody <i>\n', "Body &lt;i&gt;"),
        ("---\nname: s\ndescription: [a]\n---\nBody\n", "Body"),
        ('---\nname: s\ndescription: " "\nwhen_to_use: now\n---\nBody\n', "Body - now"),
    ],
)
def test_the_first_line_of_the_body_is_a_personal_skills_description_if_it_has_none(text, shown):
    told = reading(text, personal=True)
    assert told.description == shown
    assert told.verdict == "loads-with-changes"
    assert "takes the first line of the body for a description" in str(told)
    assert not any(reason.lost for reason in told.reasons)


def test_a_plugins_skill_is_lost_without_a_description_but_for_when_to_use():
    assert any(reason.lost for reason in reading("---\nname: s\n---\nBody\n", personal=False).reasons)
    told = reading("---\nname: s\nwhen_to_use: now\n---\n", personal=False)
    assert told.description == "Plugin skill - now"
    told = reading("---\nwhen_to_use: now\ndisable-model-invocation: true\n---\nB\n", personal=False)
    assert any(reason.lost for reason in told.reasons)


@pytest.mark.parametrize(("folder", "plain"), [("a.b c", "a-b-c"), ("\u6280\u80fd", "--"), (".hidden", "-hidden")])
def test_a_personal_skill_keeps_its_folders_name_as_it_is(folder, plain):
    text = "---\nname: other\ndescription: d\n---\nB\n"
    assert reading(text, personal=True, name=folder).name == folder
    assert reading(text, personal=False, name=folder).name == plain


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("other", "other"),
        ("a.b:c", "a.b:c"),
        ("\u6280\u80fd", "\u6280\u80fd"),
        ("8004", "8004"),
        ("a b", None),
        ("a/b", None),
    ],
)
def test_a_name_is_shown_beside_the_folders_if_it_is_one_word(name, title):
    assert reading(f"---\nname: {name}\ndescription: d\n---\nB\n", personal=False).title == title


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (r"a\e[31mb\e[0m", "ab"),
        (r"a\e]8;;https://x\ab\e]8;;\ac", "abc"),
        (r"a\e]0;never ends", "a"),
        (r"a\x9b1mb", "ab"),
        (r"a\x07b", "a b"),
    ],
)
def test_terminal_codes_are_taken_out(written, shown):
    assert reading(f'---\nname: s\ndescription: "{written}"\n---\nB\n', personal=False).description == shown
