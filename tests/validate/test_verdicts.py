"""Our verdict on every observed file is what the client did."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpack.validate.check import check_skills
from skillpack.validate.clients import CLIENTS
from skillpack.validate.clients.portable import portable
from skillpack.validate.clients.reading import Reading
from skillpack.validate.discover import SkillFolder, find_skills
from skillpack.validate.source import SkillFile

DATA = Path(__file__).parent / "data"
PROBES = yaml.load((DATA / "probes.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
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


def test_what_needs_no_model_is_what_all_models_take_unchanged():
    root = Path("/skills")
    quick = 0
    plain = st.text(st.sampled_from("abz A1:#-,()*\\\"'.@[]{}<>\t\n&!|%é"), max_size=12)
    names = st.sampled_from([*["a-b"] * 9, "true", "null", "yes", "x1", "1x", "a--b", "e5", "n" * 65])
    tails = st.lists(
        st.sampled_from(
            [
                "license: MIT\n",
                "license: Complete terms in LICENSE.txt\n",
                "allowed-tools: Bash(git:*) Read\n",
                "compatibility: needs git: yes\n",
                "compatibility: " + "long " * 110 + "\n",
                'metadata:\n  version: "1.0"\n  author: me\n',
                "metadata:\n  internal: true\n",
                "metadata:\n  a: b\n  a: c\n",
                "metadata: text\n",
                "version: one\n",
            ]
        ),
        max_size=3,
    )

    @settings(max_examples=500, deadline=None)
    @given(names, st.one_of(plain, *[st.just("Counts words. Use when asked.")] * 3), tails)
    def compare(name: str, description: str, tail: list[str]) -> None:
        nonlocal quick
        text = f'---\nname: {name}\ndescription: "{description}"\n{"".join(tail)}---\n\nBody --- \u4e2d\n'
        skill = SkillFile(SkillFolder(root / name, root, "SKILL.md", depth=1), text.encode())
        shown = portable(skill)
        if shown is not None:
            quick += 1
            for read in CLIENTS.values():
                assert read(skill) == Reading(*shown)

    compare()
    assert quick > 20


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
