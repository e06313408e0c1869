"""The signatures themselves: well formed, found by their anchors, told in the skills."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from skillpack.config.keys import all_keys
from skillpack.pack import skills_dir
from skillpack.triage.health import checks
from skillpack.triage.reference import SKILLS, failures
from skillpack.triage.remedy import advise
from skillpack.triage.signatures import ROLES, Signature, signatures

OPS = {"set", "scale", "add", "from_match", "ratio", "sum", "multiple", "hint"}
CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("one", signatures().values(), ids=lambda one: one.id)
def test_a_signature_is_whole(one: Signature) -> None:
    assert one.role in ROLES
    if one.role == "end":
        return
    assert one.cause
    assert one.remedy


def test_remedies_name_keys_that_there_are() -> None:
    rules = [rule for one in signatures().values() for rule in one.remedy] + [check["remedy"] for check in checks()]
    for rule in rules:
        if "do" in rule:
            continue
        assert rule["op"] in OPS
        if rule["key"].startswith("ajet."):
            assert rule["key"] in all_keys(), rule["key"]


def test_most_signatures_have_a_fragment() -> None:
    told = yaml.safe_load((CORPUS / "failing.yaml").read_text(encoding="utf-8"))
    assert len(told) >= 40
    assert len(yaml.safe_load((CORPUS / "healthy.yaml").read_text(encoding="utf-8"))) >= 20
    assert len({entry["cause"] for entry in told.values()}) >= 50


@pytest.mark.parametrize("skill", SKILLS)
def test_the_skills_list_what_triage_knows(skill: str) -> None:
    path = skills_dir() / skill / "references" / "failures.md"
    assert path.read_text(encoding="utf-8") == failures(), "run: python -m skillpack.triage.reference"


@pytest.mark.parametrize(
    ("rule", "config", "groups", "value"),
    [
        ({"op": "scale", "by": 0.5, "floor": 1}, 64, {}, 32),
        ({"op": "scale", "by": 0.5, "floor": 1}, 1, {}, None),
        ({"op": "add", "by": -0.1, "floor": 0.3}, 0.85, {}, 0.75),
        ({"op": "add", "by": 0.05, "ceiling": 0.95}, 0.93, {}, 0.95),
        ({"op": "set", "to": True}, False, {}, True),
        ({"op": "set", "to": True}, True, {}, None),
        ({"op": "from_match", "group": "n"}, 1, {"n": "41840"}, 41840),
        ({"op": "from_match", "group": "n", "fallback": {"op": "scale", "by": 0.5}}, 100, {}, 50),
        ({"op": "ratio", "of": ["free", "total"], "by": 0.95}, 0.85, {"free": "40", "total": "80"}, 0.47),
        ({"op": "multiple", "of": "unit"}, 33, {"unit": "8"}, 40),
        ({"op": "scale", "by": 2}, None, {}, None),
        ({"op": "hint"}, "x", {}, None),
    ],
)
def test_values_follow_from_what_is_known(
    rule: dict[str, object], config: object, groups: dict[str, str], value: object
) -> None:
    told = advise({"key": "k", **rule}, lambda _: config, groups)
    assert told["value"] == value
    assert told["current"] == config
