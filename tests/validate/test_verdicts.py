"""Our verdict on every observed file is what the client did."""

from __future__ import annotations

import base64
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpack.validate.check import check_skills
from skillpack.validate.clients import CLIENTS
from skillpack.validate.clients.portable import portable
from skillpack.validate.clients.reading import Reading
from skillpack.validate.discover import SkillFolder, find_skills
from skillpack.validate.source import SkillFile

DATA = Path(__file__).parent / "data"
PROBES = yaml.load((DATA / "probes.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
NEAR_PLAIN = int(os.environ.get("AGENTJET_SKILLS_NEAR_PLAIN", "20000"))
CASES = yaml.load((DATA / "cases.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def content(entry: dict[str, Any]) -> bytes:
    if "base64" in entry:
        return base64.b64decode(entry["base64"])
    return unfold(entry["text"]).encode()


def unfold(text: str) -> str:
    return re.sub(r"(.)\{x(\d+)\}", lambda match: match[1] * int(match[2]), text)


def told(reading: Reading) -> str:
    """Put a reading in the words of the observations: only Claude Code keeps a skill that its model never sees."""
    if reading.verdict == "rejects":
        return "rejects"
    return "unlisted" if any(reason.lost for reason in reading.reasons) else "loads"


def agrees(client: str, observed: str, reading: Reading) -> bool:
    if client == "claude-code":
        observed = {"listed": "loads", "absent": "rejects"}.get(observed, observed)
    return told(reading) == observed


@pytest.mark.parametrize("probe", PROBES, ids=[f"{number}-{probe['probe']}" for number, probe in enumerate(PROBES)])
def test_each_probe_gets_the_observed_verdict_and_shows_the_observed_words(probe):
    root = Path("/skills")
    hidden = probe["folder"].startswith(".")
    folder = SkillFolder(root / probe["folder"], root, probe.get("file", "SKILL.md"), depth=1, hidden=hidden)
    skill = SkillFile(folder, content(probe))
    for client, observed in probe["observed"].items():
        reading = CLIENTS[client](skill)
        assert agrees(client, observed, reading), f"{client}: {observed}, not {reading}"
        if client in probe["shown"]:
            assert f"{reading.name} {reading.description}" == unfold(probe["shown"][client])


PLAIN = """---
name: word-count
description: "Counts words (of a file): lines, too. Use when asked - or not."
license: Complete terms in LICENSE.txt
compatibility: "needs git: 2.40"
allowed-tools: Bash(git:*) Read
metadata:
  author: me
  version: "1.0"
---

# Title

Text --- \u4e2d
"""
TAIL = len(PLAIN) - PLAIN.index("\n# Title")
SLIPS = [
    *"abzZ019 -_.,:;#'\"`@%&*!|>?=~^$/\\()[]{}<\t\n\r\0\x1b\x7f\x85\xa0\u2028\ufeff\u200b\u4e2d\xe9",
    "--",
    "  ",
    "---",
    ": ",
]
NAMES = [
    "word-count",
    "null",
    "true",
    "yes",
    "no",
    "on",
    "y",
    "1e5",
    "0x1f",
    "1x",
    "x1",
    "a--b",
    "-a",
    "a-",
    "inf",
    "n" * 65,
]


def near_plain(chance: random.Random) -> tuple[str, str]:
    """Return a folder's name, and a plain file with some lines gone and up to two characters changed."""
    name = chance.choice(NAMES) if chance.random() < 0.1 else NAMES[0]
    lines = PLAIN.replace(NAMES[0], name).splitlines(keepends=True)
    text = "".join(line for number, line in enumerate(lines) if number in (0, 1, 2, 9) or chance.random() < 0.9)
    for _ in range(chance.choice((0, 1, 1, 1, 2))):
        at = chance.randrange(len(text) - TAIL)
        text = text[:at] + chance.choice(("", *SLIPS)) + text[at + chance.choice((0, 1)) :]
    return chance.choice((name, name, NAMES[0], "Word-Count")), text


def test_what_needs_no_model_is_what_all_models_take_unchanged():
    root = Path("/skills")
    chance = random.Random(7)
    quick = set()
    for folder, text in dict.fromkeys(near_plain(chance) for _ in range(NEAR_PLAIN)):
        skill = SkillFile(SkillFolder(root / folder, root, "SKILL.md", depth=1), text.encode())
        shown = portable(skill)
        if shown is not None and text not in quick:
            quick.add(text)
            for client, read in CLIENTS.items():
                assert read(skill) == Reading(*shown), (client, text)
    assert len(quick) > NEAR_PLAIN / 10


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("cases")
    for case in CASES:
        folder = root / "skills" / case["case"]
        if "folder_link" in case:
            real = root / "outside" / folder.name
            real.mkdir(parents=True)
            (real / "SKILL.md").write_bytes(content(case))
            folder.symlink_to(real)
            continue
        folder.mkdir(parents=True)
        file = folder / case.get("file", "SKILL.md")
        if "link" in case:
            file.symlink_to(case["link"])
        else:
            file.write_bytes(content(case))
    return root / "skills"


def test_each_case_of_the_tree_gets_the_observed_verdict(tree):
    reports = {str(report.path.relative_to(tree)): report for report in check_skills(find_skills(tree))}
    assert len(reports) == len(CASES)
    wrong = [
        f"{case['case']} {client}: {observed}, not {reading}"
        for case in CASES
        for client, observed in case["observed"].items()
        if not agrees(client, observed, reading := reports[case["case"]].clients[client])
    ]
    assert wrong == []


def test_every_verdict_begins_with_one_of_three_words(tree):
    for report in check_skills(find_skills(tree)):
        for reading in report.clients.values():
            assert re.match(r"loads$|loads-with-changes: |rejects: ", str(reading)), str(reading)
