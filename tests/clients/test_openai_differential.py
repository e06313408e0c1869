"""Over generated agents/openai.yaml files we say what Codex shows of each, and our check names what it drops."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from skillpack.validate.checks import openai
from skillpack.validate.checks.skill import Skill
from skillpack.validate.clients import CLIENTS, openai_yaml
from skillpack.validate.discover import find_skills
from skillpack.validate.source import OPENAI_FILE, read_skill
from tests.clients.skill_files import SLIPS

COUNT = int(os.environ.get("AGENTJET_SKILLS_FILES", "250"))
SEED = int(os.environ.get("AGENTJET_SKILLS_SEED", "7"))
AT_ONCE = 500

TEXTS = [
    "Word count",
    '"Use $f to count: all"',
    "'it''s'",
    "技能 🚀",
    "a" * 64,
    "a" * 65,
    "b " * 512,
    "c" * 1025,
    "42",
    "true",
]
ICONS = [
    "./assets/a.png",
    "assets/a.png",
    "a.png",
    "/assets/a.png",
    "assets/../a.png",
    ".//assets//b c.png",
    '""',
    "assets",
]
COLORS = ['"#12aB9f"', "'#123'", "red", '" #123456 "', "#123456"]
FLAGS = ["true", "false", "True", "FALSE", "yes", "no", '"true"', "1", "", "~"]
PRODUCTS = ["[codex]", "[chatgpt]", "[CODEX, atlas]", "[]", "codex", "[Codex]", "", "~", "\n  - codex", "[codex: x]"]
USUAL = {"display_name": TEXTS, "short_description": TEXTS, "default_prompt": TEXTS, "icon_small": ICONS}
USUAL |= {"icon_large": ICONS, "brand_color": COLORS}
TOOL = ["type", "value", "description", "transport", "command", "url", "x"]


def written(chance: random.Random) -> str:
    """Return the text of a file, mostly as it should be."""
    parts = []
    keys = chance.sample(sorted(USUAL), chance.randint(0, 6))
    lines = [f"  {key}: {odd(chance, USUAL[key])}" for key in keys]
    parts.append("\n".join(["interface:", *lines]))
    if chance.random() < 0.4:
        tools = []
        for _ in range(chance.randint(0, 3)):
            keys = chance.sample(TOOL, chance.randint(1, 7)) if chance.random() < 0.5 else TOOL[:3]
            tools.append("  - " + "\n    ".join(f"{key}: {odd(chance, TEXTS)}" for key in keys))
        parts.append("\n".join(["dependencies:", "  tools:", *tools]))
    if chance.random() < 0.4:
        parts.append(f"policy:\n  allow_implicit_invocation: {odd(chance, FLAGS)}")
        if chance.random() < 0.6:
            parts[-1] += f"\n  products: {odd(chance, PRODUCTS)}"
    chance.shuffle(parts)
    text = "\n".join(parts) + "\n"
    if chance.random() < 0.15:
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice([*SLIPS["slips"], "\n", "\r\n", ""]) + text[at + chance.choice((0, 1)) :]
    if chance.random() < 0.1:
        lines = text.split("\n")
        lines.insert(chance.randrange(len(lines)), chance.choice(lines))
        text = "\n".join(lines)
    return text


def odd(chance: random.Random, usual: list[str]) -> str:
    value: str = chance.choice(usual if chance.random() < 0.97 else [*SLIPS["values"], *FLAGS])
    return value


@pytest.fixture(scope="module")
def texts() -> list[str]:
    chance = random.Random(SEED)
    return list(dict.fromkeys(written(chance) for _ in range(COUNT)))


def lay(texts: list[str], skills: Path) -> Path:
    for number, text in enumerate(texts):
        folder = skills / f"f{number:05d}"
        (folder / "agents").mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: d\n---\n")
        (folder / OPENAI_FILE).write_bytes(text.encode())
    return skills


def shown_by_codex(answer: dict[str, Any], skills: Path) -> dict[str, dict[str, Any]]:
    """Return interface and tools of each skill by its folder, with the keys of the file."""
    shown = {}
    for skill in (skill for entry in answer["data"] for skill in entry["skills"]):
        folder = Path(skill["path"]).parent
        if folder.is_relative_to(skills):
            interface = {key: (skill.get("interface") or {}).get(camel(key)) for key in USUAL}
            interface = {key: value for key, value in interface.items() if value is not None}
            for key in {"icon_small", "icon_large"} & set(interface):
                interface[key] = str(Path(interface[key]).relative_to(folder))
            tools = (skill.get("dependencies") or {"tools": []})["tools"]
            shown[folder.name] = {"interface": interface, "tools": tools}
    return shown


def camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.title() for word in rest)


def test_codex_shows_what_we_say(texts, codex, tmp_path):
    for first in range(0, len(texts), AT_ONCE):
        project = tmp_path / str(first) / "project"
        skills = lay(texts[first : first + AT_ONCE], project / ".agents" / "skills")
        (project / ".git").mkdir()
        theirs = shown_by_codex(codex.skills_list(project), skills)
        for folder in find_skills(skills):
            skill = read_skill(folder)
            taken = openai_yaml.read(skill)
            text = texts[first + int(folder.name[1:])]
            ours = {"interface": {}, "tools": []}
            if isinstance(taken, openai_yaml.OpenAI):
                ours = {"interface": taken.interface, "tools": taken.tools}
            listed = CLIENTS["codex"](skill).verdict != "rejects"
            assert (ours if listed else None) == theirs.get(folder.name), text
            if listed and ours["interface"] == {} and "interface:\n  " in text:
                assert list(openai.check(Skill(skill))), text
