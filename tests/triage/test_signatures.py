"""The signatures themselves: well formed, found by their anchors, told in the skills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ajet.default_config import verl_mapping
from skillpack.config.keys import all_keys
from skillpack.pack import skills_dir
from skillpack.triage.health import checks
from skillpack.triage.reference import SKILLS, failures
from skillpack.triage.remedy import advices, advise, config_lookup
from skillpack.triage.signatures import ROLES, Signature, signatures

CORPUS = Path(__file__).parent / "corpus"
OPS = {"set", "scale", "add", "from_match", "ratio", "sum", "rest", "multiple", "hint"}


def changes() -> list[dict[str, Any]]:
    """Return every rule that names a key."""
    rules = [rule for one in signatures().values() for rule in one.remedy] + [check["remedy"] for check in checks()]
    rules += [other for rule in rules for other in rule.get("and", ())]
    return [rule for rule in rules if "do" not in rule]


@pytest.mark.parametrize("one", signatures().values(), ids=lambda one: one.id)
def test_a_signature_is_whole(one: Signature) -> None:
    assert one.role in ROLES
    if one.role == "end":
        return
    assert one.cause
    assert one.remedy


def test_remedies_name_keys_that_there_are() -> None:
    for rule in changes():
        assert rule["op"] in OPS
        if rule["key"].startswith("ajet."):
            assert rule["key"] in all_keys(), rule["key"]


def test_remedies_name_no_key_that_agentjet_overwrites() -> None:
    targets = {target for names in verl_mapping().values() for target in names}
    assert not [rule["key"] for rule in changes() if rule["key"] in targets]


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
        ({"op": "add", "by": -0.1, "floor": 0.3}, 0.85, {}, 0.75),
        ({"op": "add", "by": 0.05, "ceiling": 0.95}, 0.93, {}, 0.95),
        ({"op": "set", "to": True}, False, {}, True),
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
    assert told
    assert told["value"] == value
    assert told["current"] == config


@pytest.mark.parametrize(
    ("rule", "config"),
    [
        ({"op": "scale", "by": 0.5, "floor": 1}, 1),
        ({"op": "scale", "by": 0.5, "floor": 512}, 256),
        ({"op": "add", "by": 0.05, "ceiling": 0.95}, 0.97),
        ({"op": "set", "to": True}, True),
        ({"op": "from_match", "group": "n"}, 8),
        ({"op": "sum", "of": ["a", "b"]}, 8),
    ],
)
def test_what_the_run_has_already_is_not_advised(rule: dict[str, object], config: object) -> None:
    known = {"k": config, "a": 4, "b": 4}
    assert advise({"key": "k", **rule}, known.get, {"n": "8"}) is None


LENGTHS = {
    "ajet.data.max_prompt_length": 3000,
    "ajet.data.max_response_length": 7000,
    "ajet.rollout.max_model_len": 10000,
    "ajet.rollout.max_response_length_in_one_turn": 4096,
}


def after(advice: dict[str, Any]) -> dict[str, Any]:
    """Return the lengths when an advice was followed."""
    return LENGTHS | {change["key"]: change["value"] for change in [advice, *advice.get("and", [])]}


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("gpu-oom-train", {}),
        ("kv-too-small-for-one", {"fits": "9728"}),
        ("kv-too-small-for-one", {"fits": "5000"}),
        ("kv-too-small-for-one", {}),
        ("max-model-len-derived", {"derived": "8192"}),
        ("prompt-too-long", {"asked": "6768"}),
    ],
)
def test_lengths_are_advised_so_that_agentjet_accepts_them(name: str, groups: dict[str, str]) -> None:
    first = advices(signatures()[name].remedy, LENGTHS.get, groups)[0]
    lengths = after(first)
    prompt, response, window, turn = lengths.values()
    assert lengths != LENGTHS
    assert prompt + response <= window
    assert 0 < turn <= response


def test_a_window_that_leaves_no_room_for_a_response_is_not_advised() -> None:
    told = advices(signatures()["kv-too-small-for-one"].remedy, LENGTHS.get, {"fits": "2048"})
    assert "ajet.rollout.max_model_len" not in [one.get("key") for one in told]


def test_a_run_that_has_all_that_is_advised_is_told_so() -> None:
    known = {"ajet.rollout.gpu_memory_utilization": 0.3, "ajet.trainer_common.fsdp_config.param_offload": True}
    known |= {"ajet.trainer_common.fsdp_config.optimizer_offload": True}
    told = advices(signatures()["gpu-oom-wake-up"].remedy, known.get, {})
    assert len(told) == 1
    assert "gpu_memory_utilization" in told[0]["do"]


def test_the_first_remedies_for_memory_change_what_the_run_has(tmp_path: Path) -> None:
    config = tmp_path / "job.yaml"
    config.write_text("ajet: {model: {path: x}}\n", encoding="utf-8")
    told = advices(signatures()["gpu-oom-train"].remedy, config_lookup(config), {})
    assert [(one["key"], one["current"], one["value"]) for one in told] == [
        ("ajet.rollout.max_model_len", 18000, 13500),
        ("ajet.trainer_common.ulysses_sequence_parallel_size", 1, 2),
        ("ajet.rollout.gpu_memory_utilization", 0.85, 0.75),
    ]
    assert told[0]["and"] == [{"key": "ajet.data.max_response_length", "current": 15000, "value": 10500}]
