"""Each lint rule finds its example, tells where, and clean files pass."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from ajet.utils.config_utils import default_path
from skillpack.config.keys import VERL_SECTIONS
from skillpack.config.lint import Finding, lint, rules
from skillpack.config.sources import read_source
from skillpack.pack import SCHEMAS

EXAMPLES = Path(__file__).parent / "lint"


def example(rule: str) -> Path:
    found = [path for path in EXAMPLES.iterdir() if path.stem == rule]
    assert len(found) == 1, f"{rule} needs exactly one failing example in {EXAMPLES.name}/, not {len(found)}"
    return found[0]


def findings(path: Path) -> list[Finding]:
    return lint(read_source(path))


@pytest.mark.parametrize("rule", rules())
def test_a_rule_finds_its_example(rule: str) -> None:
    found = [one for one in findings(example(rule)) if one.rule == rule]
    assert found, f"{rule} does not fire on its example"
    for one in found:
        assert "{" not in one.message + one.mend
        assert one.severity == rules()[rule]["severity"]


@pytest.mark.parametrize("rule", rules())
def test_an_example_has_no_error_beside_its_own(rule: str) -> None:
    others = {one.rule for one in findings(example(rule)) if one.severity == "error"} - {rule}
    allowed = {"kwarg-over-yaml": {"two-places"}}  # what is set in both places is also set in two places
    assert others <= allowed.get(rule, set())


def test_every_example_is_of_a_rule() -> None:
    names = {path.stem for path in EXAMPLES.iterdir() if path.is_file()}
    assert names == set(rules())


@pytest.mark.parametrize("path", sorted((EXAMPLES / "clean").iterdir()), ids=lambda path: path.name)
def test_a_clean_file_has_no_findings(path: Path) -> None:
    assert findings(path) == []


def test_the_rules_follow_their_schema() -> None:
    schema = json.loads((SCHEMAS / "config-rules.schema.json").read_text())
    jsonschema.validate(list(rules().values()), schema)


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("misspelled-key", 4),
        ("duplicate-key", 6),
        ("verl-key-overwritten", 8),
        ("ignored-attribute", 4),
        ("lora-kwargs-incomplete", 3),
        ("write-over-kwarg", 4),
    ],
)
def test_a_finding_names_the_line_at_fault(rule: str, line: int) -> None:
    path = example(rule)
    (found,) = [one for one in findings(path) if one.rule == rule]
    assert (found.file, found.line) == (str(path), line)


def test_a_misspelled_key_is_told_what_it_was_meant_to_be() -> None:
    (found,) = findings(example("misspelled-key"))
    assert "did you mean ajet.rollout.max_env_worker?" in found.message
    assert found.mend == "rename it to ajet.rollout.max_env_worker"


def write(tmp_path: Path, text: str, name: str = "job.yaml") -> Path:
    preamble = "hydra: {searchpath: []}\ndefaults: [ajet_swarm_default, _self_]\n"
    path = tmp_path / name
    path.write_text(text + (preamble if name.endswith(".yaml") else ""))
    return path


@pytest.mark.parametrize(
    ("line", "rule", "mend"),
    [
        ("rollout: {num_repeat: '8'}", "wrong-type", "write it without quotes: 8"),
        ("rollout: {num_repeat: 8.0}", "wrong-type", "write 8"),
        ("rollout: {num_repeat: }", "wrong-type", "give it a value, or remove the line"),
        ("rollout: {num_repeat: 0}", "out-of-range", "choose a value in that range"),
        ("rollout: {temperature: .nan}", "out-of-range", "choose a value in that range"),
        ("trainer_common: {optim: {lr: .inf}}", "out-of-range", "choose a value in that range"),
        ("rollout: 5", "wrong-type", "write a value of this kind: mapping"),
        ("project_name: yes", "wrong-type", "put the word in quotes: YAML reads yes, no, on and off as true/false"),
        ("trainer_common: {logger: swanlb}", "bad-value", "did you mean swanlab?"),
        ("trainer_common: {logger: [swanlb]}", "bad-value", "did you mean swanlab?"),
        ("trainer_common: {logger: 3}", "wrong-type", "choose one of them"),
        ("rollout: {compute_madness_checklist: [nonsens]}", "bad-value", "did you mean nonsense?"),
        ("interchange_server: {interchange_server_port: atuo}", "bad-value", "did you mean auto?"),
        ("trainer_common: {optim: {betas: [0.9]}}", "out-of-range", "choose a value in that range"),
        ("rollout: {top_p: true}", "wrong-type", "write a value of this kind: number, above 0, at most 1"),
    ],
)
def test_wrong_values_are_told_apart(tmp_path: Path, line: str, rule: str, mend: str) -> None:
    path = write(tmp_path, f"ajet:\n  experiment_name: example\n  {line}\n")
    found = [one for one in findings(path) if one.rule in ("wrong-type", "bad-value", "out-of-range")]
    assert [(one.rule, one.mend) for one in found] == [(rule, mend)]


def test_a_wrongly_typed_value_does_not_upset_the_rules_across_keys(tmp_path: Path) -> None:
    text = "ajet:\n  experiment_name: x\n  data: {train_batch_size: many}\n"
    text += "  rollout: {max_env_worker: [1], max_model_len: x}\n"
    assert {one.rule for one in findings(write(tmp_path, text))} == {"wrong-type"}


def test_a_known_word_in_the_wrong_section_is_led_home(tmp_path: Path) -> None:
    (found,) = findings(write(tmp_path, "ajet:\n  experiment_name: x\n  trainer_common: {num_repeat: 8}\n"))
    assert (found.rule, found.mend) == ("misspelled-key", "rename it to ajet.rollout.num_repeat")


def test_a_value_that_is_not_known_raises_no_finding(tmp_path: Path) -> None:
    script = "import os\nfrom ajet import AgentJetJob\nN = int(os.environ['N'])\n"
    script += "job = AgentJetJob(experiment_name='x', num_repeat=N, max_env_worker=130, batch_size=7)\n"
    assert findings(write(tmp_path, script, "train.py")) == []


def test_lengths_are_not_called_incomplete_where_kwargs_are_spread(tmp_path: Path) -> None:
    script = "import sys\nfrom ajet import AgentJetJob\n"
    script += "job = AgentJetJob(experiment_name='x', max_model_len=18000, **load(sys.argv))\n"
    assert findings(write(tmp_path, script, "train.py")) == []


def test_two_places_needs_two(tmp_path: Path) -> None:
    write(tmp_path, "ajet:\n  rollout: {temperature: 1.0}\n", "base.yaml")
    named = write(
        tmp_path,
        "from ajet import AgentJetJob\nAgentJetJob(base_yaml_config='base.yaml', experiment_name='x')\n",
        "a.py",
    )
    assert findings(named) == []
    both = "from ajet import AgentJetJob\njob = AgentJetJob(base_yaml_config='base.yaml', experiment_name='x')\n"
    both += "job.config.ajet.trainer_common.save_freq = 5\n"
    (found,) = findings(write(tmp_path, both, "b.py"))
    assert found.rule == "two-places"
    assert "ajet.rollout.temperature" in found.message
    assert "ajet.trainer_common.save_freq" in found.message


def test_more_than_one_node_by_kwarg_is_no_ipc_trouble(tmp_path: Path) -> None:
    script = "from ajet import AgentJetJob\njob = AgentJetJob(experiment_name='x', nnodes=2)\n"
    assert findings(write(tmp_path, script, "train.py")) == []


def test_cap_and_neighbours_are_told_for_workers_that_do_not_divide() -> None:
    (found,) = findings(example("workers-not-divisible"))
    assert "capped at 136" in found.message
    assert found.mend == "set ajet.rollout.max_env_worker to 128 or 136"


def test_a_copy_of_the_default_file_that_was_edited_is_hand_edited(tmp_path: Path) -> None:
    text = default_path("swarm").read_text().replace("max_env_worker: 128", "max_env_worker: 256")
    copied = tmp_path / "ajet_swarm_default.yaml"
    copied.write_text(text)
    script = "from ajet import AgentJetJob\n"
    script += "job = AgentJetJob(base_yaml_config='ajet_swarm_default.yaml', experiment_name='x', num_repeat=8)\n"
    found = findings(write(tmp_path, script, "train.py"))
    assert [one.rule for one in found if one.severity == "error"] == ["two-places"]


def test_a_kwarg_that_repeats_the_yaml_is_no_second_place(tmp_path: Path) -> None:
    write(tmp_path, "ajet:\n  rollout: {temperature: 1.0, num_repeat: 8}\n", "base.yaml")
    text = "from ajet import AgentJetJob\njob = AgentJetJob(base_yaml_config='base.yaml', experiment_name='x', "
    assert findings(write(tmp_path, f"{text}algorithm='grpo', num_repeat=8)\n", "same.py")) == []
    (found,) = findings(write(tmp_path, f"{text}max_env_worker=256)\n", "other.py"))
    assert (found.rule, "ajet.rollout.max_env_worker" in found.message) == ("two-places", True)


def test_hand_edits_below_the_base_file_count(tmp_path: Path) -> None:
    write(tmp_path, "ajet:\n  rollout: {num_repeat: 4, temperature: 1.0}\n", "team.yaml")
    (tmp_path / "base.yaml").write_text("ajet: {}\nhydra: {}\ndefaults: [team, _self_]\n")
    script = "from ajet import AgentJetJob\n"
    script += "job = AgentJetJob(base_yaml_config='base.yaml', experiment_name='x', num_repeat=8)\n"
    assert [one.rule for one in findings(write(tmp_path, script, "train.py"))] == ["two-places"]


@pytest.mark.parametrize("key", ["ajet.debug.debug_port", "ajet.rollout.mode", "ajet.judge_llm"])
def test_keys_of_other_releases_are_no_misspellings(tmp_path: Path, key: str) -> None:
    section, _, last = key.rpartition(".")
    nested = f"  {section.rpartition('.')[2]}: {{{last}: 1}}" if section != "ajet" else f"  {last}: 1"
    (found,) = findings(write(tmp_path, f"ajet:\n  experiment_name: x\n{nested}\n"))
    assert (found.rule, found.severity, found.key) == ("unknown-key", "warning", key)


def test_a_dump_with_all_of_verls_defaults_is_not_blamed_for_them(tmp_path: Path) -> None:
    verl = "".join(f"{name}: {{}}\n" for name in sorted(VERL_SECTIONS - {"actor_rollout_ref"}))
    verl += "actor_rollout_ref: {rollout: {n: 1}, actor: {fsdp_config: {_target_: x}}}\n"
    assert findings(write(tmp_path, f"ajet: {{experiment_name: x}}\n{verl}")) == []
