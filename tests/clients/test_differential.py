"""Over generated files our verdict equals what each real client does.

In the ordinary run each client is asked about 250 files in one batch. ``AGENTJET_SKILLS_FILES=2000``
asks about more, ``AGENTJET_SKILLS_SEED`` about others.
"""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import skills_ref.parser
import skills_ref.validator

from skillpack.validate.clients import CLIENTS
from skillpack.validate.clients.reading import Reading
from skillpack.validate.discover import find_skills
from skillpack.validate.source import read_skill
from tests.clients.skill_files import Generated, generate

COUNT = int(os.environ.get("AGENTJET_SKILLS_FILES", "250"))
SEED = int(os.environ.get("AGENTJET_SKILLS_SEED", "7"))
AT_ONCE = 1500
"""Files that one Codex is asked about: it looks into 2,000 folders below a root and no further."""
TAKEN = frozenset({"run", "review"})
"""Words of the generator that are commands of Claude Code's own: no skill of a project shows them as its title."""


@pytest.fixture(scope="module")
def files() -> list[Generated]:
    return generate(COUNT, SEED)


def lay(files: list[Generated], skills: Path, first: int = 0) -> Path:
    """Write each file into a folder of its own, named by its number, which counts from ``first``."""
    for number, file in enumerate(files, first):
        folder = skills / f"f{number:05d}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(file.data)
    return skills


def readings(client: str, skills: Path) -> dict[str, Reading]:
    return {folder.path.name: CLIENTS[client](read_skill(folder)) for folder in find_skills(skills)}


def words(text: str) -> str:
    """Return a shown text with every run of blanks as one: the lists that the clients print leave no other trace."""
    return " ".join(text.split())


def differences(files: list[Generated], ours: dict[str, object], theirs: dict[str, object]) -> list[str]:
    return [
        f"{folder}: we say {ours[folder]!r}, it says {theirs.get(folder)!r} of\n{files[int(folder[1:])].data!r}"
        for folder in ours
        if ours[folder] != theirs.get(folder)
    ]


def test_codex_lists_and_refuses_what_we_say(files, codex, tmp_path):
    ours: dict[str, object] = {}
    listed: dict[str, object] = {}
    refused: set[str] = set()
    for first in range(0, len(files), AT_ONCE):
        project = tmp_path / str(first) / "project"
        skills = lay(files[first : first + AT_ONCE], project / ".agents" / "skills", first)
        answer = codex.ask(project)
        listed |= answer.listed
        refused |= set(answer.refused)
        for folder, reading in readings("codex", skills).items():
            ours[folder] = None if reading.verdict == "rejects" else (reading.name, reading.description)
    assert differences(files, ours, listed) == []
    assert refused == {folder for folder in ours if ours[folder] is None}


@pytest.mark.parametrize("where", ["plugin/skills", "project/.claude/skills"])
def test_claude_code_tells_its_model_what_we_say(where, files, claude_code, tmp_path):
    skills = lay(files, tmp_path / where)
    root = tmp_path / Path(where).parts[0]
    answer = claude_code.ask(claude_code.plugin(root) if root.name == "plugin" else root)
    told = readings("claude-code", skills)
    ours = {folder: not any(reason.lost for reason in reading.reasons) for folder, reading in told.items()}
    assert differences(files, ours, {folder: folder in answer.listed for folder in ours}) == []
    shown = {folder: words(str(told[folder].description)) for folder in ours if ours[folder]}
    assert differences(files, shown, {folder: words(answer.listed[folder][1]) for folder in shown}) == []
    beside = {folder: title for folder, (title, _) in answer.listed.items() if folder in ours and title}
    assert differences(files, {folder: told[folder].title for folder in beside}, beside) == []
    titles = Counter(reading.title for reading in told.values())  # of several skills with one only the first shows it
    alone = {folder for folder in shown if titles[told[folder].title] == 1 and told[folder].title not in TAKEN}
    assert differences(files, {folder: told[folder].title for folder in alone}, beside) == []


def test_claude_plugin_validate_fails_to_parse_what_we_say(files, claude_code, tmp_path):
    skills = lay(files, tmp_path / "plugin" / "skills")
    report = claude_code.validate(claude_code.plugin(tmp_path / "plugin"))
    unparsed = {
        Path(content["file"]).parent.name
        for content in report["contents"]
        if any("failed to parse" in error["message"] for error in content["errors"])
    }
    ours = {
        folder: any(reason.text.startswith("cannot read the YAML") for reason in reading.reasons)
        for folder, reading in readings("claude-code", skills).items()
    }
    assert differences(files, ours, {folder: folder in unparsed for folder in ours}) == []


def test_npx_skills_offers_and_skips_what_we_say(files, npx_skills, tmp_path):
    skills = lay(files, tmp_path / "skills")
    answer = npx_skills.ask(skills)
    told = readings("npx-skills", skills)
    hidden = {folder for folder, reading in told.items() if any(r.rule == "metadata-internal" for r in reading.reasons)}
    ours = {folder: reading.verdict == "rejects" for folder, reading in told.items() if folder not in hidden}
    assert differences(files, ours, {folder: folder in answer.refused for folder in ours}) == []
    offered = {
        words(f"{reading.name} {reading.description}") for reading in told.values() if reading.verdict != "rejects"
    }
    shown = {words(f"{name} {description}") for name, description in answer.listed.values()}
    assert shown - offered == set()
    names = {words(str(reading.name)) for reading in told.values() if reading.verdict != "rejects"}
    assert names == {words(name) for name in answer.listed}  # of several skills with one name only the first is offered


def test_skills_ref_accepts_refuses_and_shows_what_we_say(files, tmp_path):
    ours: dict[str, object] = {}
    theirs: dict[str, object] = {}
    for number, file in enumerate(files):
        path = tmp_path / f"f{number:05d}" / file.folder
        path.mkdir(parents=True)
        (path / "SKILL.md").write_bytes(file.data)
        [folder] = find_skills(path)
        reading = CLIENTS["spec"](read_skill(folder))
        ours[path.parent.name] = None if reading.verdict == "rejects" else (reading.name, reading.description)
        theirs[path.parent.name] = _shown_by_skills_ref(path)
    assert differences(files, ours, theirs) == []


def _shown_by_skills_ref(path: Path) -> tuple[str, str] | None:
    try:
        if skills_ref.validator.validate(path):
            return None
    except Exception:  # it ends so on bytes that are not UTF-8, control characters and some comments
        return None
    properties = skills_ref.parser.read_properties(path)
    return unicodedata.normalize("NFKC", properties.name), properties.description
