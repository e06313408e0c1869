"""What ``--fix`` mends loads in the real clients, and of what does not it says what a person must do."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import skills_ref.validator

from skillpack.validate.clients import CLIENTS
from skillpack.validate.discover import find_skills
from skillpack.validate.fix import fix_skill
from skillpack.validate.source import read_skill
from tests.clients import real
from tests.validate.test_verdicts import CASES, PROBES, content

BY_WISH = {
    ("meta-internal", "npx-skills"),
    ("disable-model", "claude-code"),
    ("c51-claude-keys", "claude-code"),
}
"""Files whose authors ask a client to leave them out."""

LOAD_IN_ALL = 207
"""How many of the files load in all four clients when they are mended; 57 do before."""


def entries() -> list[dict[str, Any]]:
    """Return the probes and the cases, but for those that are about links."""
    plain = [case for case in CASES if "link" not in case and "folder_link" not in case]
    return [
        *({**probe, "title": probe["probe"]} for probe in PROBES),
        *({**case, "title": case["case"], "folder": Path(case["case"]).name} for case in plain),
    ]


def lay(files: Path, skills: Path) -> Path:
    """Copy each skill into a folder that its number names, a leading dot kept: skills may have one name."""
    for place in sorted(files.iterdir()):
        [folder] = place.iterdir()
        shutil.copytree(folder, skills / ("." * folder.name.startswith(".") + place.name))
    return skills


class Ask:
    """Ask the real clients which skills below ``files/NUMBER/NAME`` they load."""

    def __init__(self, claude_code: real.ClaudeCode, codex: real.Codex, npx_skills: real.NpxSkills) -> None:
        self.claude, self.codex, self.npx = claude_code, codex, npx_skills

    def all(self, files: Path, scratch: Path) -> dict[str, set[str]]:
        """Return the numbers of the skills that each client loads."""
        lay(files, scratch / "project" / ".agents" / "skills")
        lay(files, scratch / "plugin" / "skills")
        told = {
            "codex": set(self.codex.ask(scratch / "project").listed),
            "claude-code": set(self.claude.ask(self.claude.plugin(scratch / "plugin")).listed),
            "npx-skills": self.offered(lay(files, scratch / "npx" / "skills")),
            "spec": {place.name for place in files.iterdir() if self.accepted(place)},
        }
        return {client: {name.lstrip(".-") for name in names} for client, names in told.items()}

    def offered(self, skills: Path) -> set[str]:
        """Return the folders that npx skills neither skips with a word nor leaves out without one."""
        answer = self.npx.ask(skills)
        names = {re.sub(r"\s+", " ", name) for name in answer.listed}
        named = {
            folder.path.name: re.sub(r"\s+", " ", CLIENTS["npx-skills"](read_skill(folder)).name or "")
            for folder in find_skills(skills)
            if folder.file_name == "SKILL.md"
        }
        return {folder for folder, name in named.items() if folder not in answer.refused and name in names}

    def accepted(self, place: Path) -> bool:
        [folder] = place.iterdir()
        try:
            return not skills_ref.validator.validate(folder)
        except (UnicodeDecodeError, AttributeError):  # how it takes bytes that are not UTF-8, and control characters
            return False


def test_what_was_mended_loads_and_the_rest_is_told(claude_code, codex, npx_skills, tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    titles, told = {}, {}
    for number, entry in enumerate(entries()):
        folder = before / f"f{number:03d}" / entry["folder"]
        folder.mkdir(parents=True)
        (folder / entry.get("file", "SKILL.md")).write_bytes(content(entry))
        titles[f"f{number:03d}"] = entry["title"]
    shutil.copytree(before, after)
    for place in sorted(after.iterdir()):
        [folder] = find_skills(place)
        told[place.name] = " ".join(line for line in fix_skill(folder) if line.startswith("left "))
    ask = Ask(claude_code, codex, npx_skills)
    was, now = ask.all(before, tmp_path / "asked-before"), ask.all(after, tmp_path / "asked-after")
    assert {client: was[client] - now[client] for client in CLIENTS} == {client: set() for client in CLIENTS}
    silent = [
        (title, client)
        for number, title in titles.items()
        for client in CLIENTS
        if (number in now[client]) == (client in told[number]) and (title, client) not in BY_WISH
    ]
    assert silent == [], "loads although something is left to do, or does not although nothing is"
    assert len(set.intersection(*now.values())) == LOAD_IN_ALL
