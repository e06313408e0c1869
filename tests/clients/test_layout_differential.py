"""In generated trees of folders we say which skills each real client finds.

In the ordinary run each client is asked about a few trees. ``AGENTJET_SKILLS_TREES=100`` asks about
more, ``AGENTJET_SKILLS_SEED`` about others.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from skillpack.validate.clients import CLIENTS
from skillpack.validate.discover import SKIPPED, find_skills
from skillpack.validate.source import read_skill

COUNT = int(os.environ.get("AGENTJET_SKILLS_TREES", "4"))
SEED = int(os.environ.get("AGENTJET_SKILLS_SEED", "7"))

FOLDERS = ["a", "cat", ".hid", "with blank", "v1.2", "技能", "UPPER", "x_y", "skills", "dist", "build", "references"]
SPELLINGS = ["skill.md", "Skill.md", "SKILL.MD", "SKILL.markdown", "SKILL.md.bak"]
AGENTS = [".claude/skills", ".agents/skills", "skills/.curated", ".posit/assistant/skills", ".venv-x/skills"]


class Tree:
    """A folder of skills, each with a word of its own for a description, so that it is known wherever it shows up."""

    def __init__(self, seed: int, skills: Path) -> None:
        self.chance = random.Random(seed)
        self.skills = skills
        self.outside = skills.parents[2] / "outside"
        self.words = self.folders = 0
        self.plain = self.skill(skills / "plain")
        kinds = [self.nested, self.spelled, self.as_folder, self.linked, self.linked_file, self.plugin, self.agents]
        for _ in range(self.chance.randint(3, 12)):
            self.chance.choice([*[self.nested] * 6, *kinds])()
        if self.chance.random() < 0.1:
            (skills / "SKILL.md").write_text(self.text() if self.chance.random() < 0.6 else "# No frontmatter\n")

    def text(self) -> str:
        self.words += 1
        return f"---\nname: s{self.words}\ndescription: w{self.words}\n---\n"

    def skill(self, folder: Path, file: str = "SKILL.md") -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / file).exists():
            (folder / file).write_text(self.text())
        return folder

    def folder(self, deepest: int = 8) -> Path:
        """Return a folder that is not there yet, in a new or an old one."""
        depth = self.chance.choice((1, 1, 1, 2, 2, 3, self.chance.randint(1, deepest)))
        parts = [self.chance.choice(FOLDERS) for _ in range(depth)]
        self.folders += 1
        return self.skills.joinpath(*parts[:-1], f"{parts[-1]}{self.folders}")

    def nested(self) -> None:
        folder = self.skill(self.folder())
        if self.chance.random() < 0.2:
            self.skill(folder / self.chance.choice(("inner", "skills/inner", ".inner", "references/deep/inner")))
        if self.chance.random() < 0.1:
            self.skill(folder.parent / self.chance.choice(sorted(SKIPPED)))

    def spelled(self) -> None:
        folder = self.skill(self.folder(), self.chance.choice(SPELLINGS))
        if self.chance.random() < 0.3:
            self.skill(folder)

    def as_folder(self) -> None:
        folder = self.folder(3) / "SKILL.md"
        folder.mkdir(parents=True)
        if self.chance.random() < 0.5:
            self.skill(folder)

    def linked(self) -> None:
        link = self.folder(7)
        link.parent.mkdir(parents=True, exist_ok=True)
        there = self.outside / f"o{self.words}"
        target = self.chance.choice(
            (there, there, there / "in" / "it", self.plain, self.skills, link.parent, self.outside / "gone")
        )
        if target.is_relative_to(there):
            self.skill(target)
        link.symlink_to(there if target.is_relative_to(there) else target, target_is_directory=True)

    def linked_file(self) -> None:
        folder = self.folder(2)
        folder.mkdir(parents=True)
        outside = self.skill(self.outside / f"f{self.words}") / "SKILL.md"
        real = folder / "real.md"
        real.write_text(self.text())
        target = self.chance.choice((outside, real, self.plain / "SKILL.md", folder / "gone.md"))
        (folder / "SKILL.md").symlink_to(target)

    def plugin(self) -> None:
        folder = self.skill(self.folder(4))
        manifest = folder / self.chance.choice((".claude-plugin", ".codex-plugin")) / "plugin.json"
        manifest.parent.mkdir()
        manifest.write_text(self.chance.choice((json.dumps({"name": "p"}), "{", "{}", '{"name": 5}')))

    def agents(self) -> None:
        self.skill(self.skills / self.chance.choice(AGENTS) / f"g{self.words}")


def plant(root: Path, where: str) -> Iterable[tuple[int, Path]]:
    """Yield the seed and the folder of skills of each tree."""
    for seed in range(SEED * 1000, SEED * 1000 + COUNT):
        skills = root / str(seed) / where
        skills.mkdir(parents=True)
        Tree(seed, skills)
        yield seed, skills


def ours(client: str, skills: Path) -> set[str]:
    """Return the words of the skills that we say a client shows."""
    readings = (CLIENTS[client](read_skill(folder)) for folder in find_skills(skills))
    shown = (reading for reading in readings if reading.verdict != "rejects")
    return {str(reading.description) for reading in shown if not any(reason.lost for reason in reading.reasons)}


def told(skills: Path, ours: set[str], theirs: set[str]) -> str:
    files = sorted(str(path.relative_to(skills)) for path in skills.rglob("*") if path.is_symlink() or path.is_file())
    return f"we say {sorted(ours - theirs)} too, it says {sorted(theirs - ours)} too, of\n" + "\n".join(files)


@pytest.mark.parametrize(
    ("client", "where"),
    [
        ("codex", "project/.agents/skills"),
        ("claude-code", "plugin/a/skills"),
        ("npx-skills", "some/where/skills"),
    ],
)
def test_a_client_finds_the_skills_that_we_say(client, where, request, tmp_path):
    ask = ASK[client](request.getfixturevalue(client.replace("-", "_")))
    for seed, skills in plant(tmp_path, where):
        theirs, we = ask(skills), ours(client, skills)
        assert we == theirs, f"seed {seed}: {told(skills, we, theirs)}"


def _ask_codex(codex) -> Callable[[Path], set[str]]:
    def ask(skills: Path) -> set[str]:
        project = skills.parents[1]
        (project / ".git").mkdir()
        found = [skill for entry in codex.skills_list(project)["data"] for skill in entry["skills"]]
        places = {skill["description"]: Path(skill["path"]) for skill in found if skill["description"][0] == "w"}
        return {word for word, path in places.items() if not SKIPPED & set(path.parent.parent.parts)}

    return ask


def _ask_claude_code(claude_code) -> Callable[[Path], set[str]]:
    def ask(skills: Path) -> set[str]:
        answer = claude_code.ask(claude_code.plugin(skills.parent))
        return {description for _, description in answer.listed.values()}

    return ask


def _ask_npx_skills(npx_skills) -> Callable[[Path], set[str]]:
    def ask(skills: Path) -> set[str]:
        return {description for _, description in npx_skills.ask(skills).listed.values()}

    return ask


ASK = {"codex": _ask_codex, "claude-code": _ask_claude_code, "npx-skills": _ask_npx_skills}
