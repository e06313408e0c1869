"""AgentJetJob: kwargs, precedence, the rules of a released one, provenance, dumping."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ajet.copilot.job import AgentJetJob
from ajet.default_config import kwarg_table
from ajet.default_config.ajet_config_schema import AjetTaskReader, Config, HuggingfaceDatRepo
from ajet.utils.config_tree import ConfigError
from ajet.utils.config_utils import load_config

FACTS: dict[str, Any] = json.loads((Path(__file__).parent.parent / "data" / "job_kwargs.json").read_text())
MAPPED = {name: row for name, row in FACTS.items() if row["yaml_key"]}

PREAMBLE = "hydra: {searchpath: []}\ndefaults: [ajet_swarm_default, _self_]\n"


def line_here() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def base(tmp_path: Path, text: str, name: str = "base.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text + PREAMBLE)
    return path


def test_the_kwargs_have_the_released_order_and_defaults() -> None:
    parameters = inspect.signature(AgentJetJob).parameters
    assert list(parameters) == list(FACTS)
    assert {name: one.default for name, one in parameters.items()} == {
        name: row["signature_default"] for name, row in FACTS.items()
    }


def test_the_kwarg_table_is_the_released_one() -> None:
    assert {name: row["key"] for name, row in kwarg_table().items()} == {
        name: row["yaml_key"] for name, row in FACTS.items()
    }


@pytest.mark.parametrize("name", MAPPED)
def test_a_kwarg_that_is_not_given_leaves_the_yaml(name: str) -> None:
    job = AgentJetJob()
    assert getattr(job, name) == MAPPED[name]["effective_default"]
    assert job.config.get(MAPPED[name]["yaml_key"]) == MAPPED[name]["effective_default"]


@pytest.mark.parametrize("name", sorted(set(MAPPED) - {"lora_rank", "backbone"}))
def test_a_kwarg_wins_over_the_yaml(name: str, tmp_path: Path) -> None:
    key, value = MAPPED[name]["yaml_key"], _another(MAPPED[name])
    lengths = {"max_prompt_length": 10, "max_response_length": 20, "max_model_len": 30}
    lengths["max_response_length_in_one_turn"] = 5
    together = {**lengths, name: lengths[name]} if name in lengths else {name: value}
    job = AgentJetJob(base_yaml_config=base(tmp_path, "ajet: {}\n"), **together)
    assert job.config.get(key) == getattr(job, name) == together[name]
    origin = job.config.provenance(key)
    assert origin is not None
    assert (origin.layer, origin.kwarg) == ("kwarg", name)


def _another(row: dict[str, Any]) -> Any:
    kind = row["python_type"].removesuffix(" | None")
    return {"int": 7, "float": 0.25, "bool": not row["effective_default"], "str": "other", "List[str]": []}[kind]


def test_a_yaml_value_wins_over_the_default(tmp_path: Path) -> None:
    job = AgentJetJob(base_yaml_config=base(tmp_path, "ajet: {rollout: {num_repeat: 16}}\n"))
    assert job.num_repeat == 16
    assert AgentJetJob(base_yaml_config=job.base_yaml_config, num_repeat=3).num_repeat == 3


def test_false_and_zero_are_given(tmp_path: Path) -> None:
    path = base(tmp_path, "ajet: {lora: {lora_rank: 8, load_format: safetensors, layered_summon: true}}\n")
    job = AgentJetJob(base_yaml_config=path, use_kl_loss=False, lora_rank=0, compute_madness_checklist=[])
    assert (job.use_kl_loss, job.lora_rank, job.compute_madness_checklist) == (False, 0, [])


def test_a_new_experiment_gets_a_timestamp(tmp_path: Path) -> None:
    name = AgentJetJob(ensure_new_experiment=True, experiment_name="run").config.ajet.experiment_name
    prefix, _, stamp = name.partition("_")
    assert prefix == "run"
    assert len(stamp) == len("20260526-101112")
    from_yaml = base(tmp_path, "ajet: {experiment_name: mine}\n")
    assert AgentJetJob(ensure_new_experiment=True, base_yaml_config=from_yaml).experiment_name.startswith("mine_")
    assert AgentJetJob(ensure_new_experiment=True).experiment_name == "read_yaml_name"


def test_several_nodes_speak_tcp_in_swarm_mode() -> None:
    swarm = AgentJetJob(nnodes=2).config
    assert swarm.ajet.interchange_server.interchange_method == "tcp"
    assert "node" in str(swarm.provenance("ajet.interchange_server.interchange_method"))
    classic = AgentJetJob(nnodes=2, swarm_mode=False).config
    assert classic.ajet.interchange_server.interchange_method == "ipc"


LENGTHS = {
    "max_prompt_length": 3000,
    "max_response_length": 15000,
    "max_model_len": 18000,
    "max_response_length_in_one_turn": 4096,
}
LORA: dict[str, Any] = {"lora_rank": 16, "lora_load_format": "safetensors", "layered_summon": True, "lr": 1e-4}


def without(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


RULES: list[tuple[str, dict[str, Any], type[Exception], list[str]]] = [
    ("base YAML is missing", {"base_yaml_config": "no/such.yaml"}, ValueError, ["base_yaml_config", "no/such.yaml"]),
    *(
        (f"lengths without {name}", without(LENGTHS, name), ValueError, [name, MAPPED[name]["yaml_key"]])
        for name in LENGTHS
    ),
    (
        "prompt and response exceed the window",
        {**LENGTHS, "max_model_len": 17999},
        AssertionError,
        ["max_prompt_length=3000", "max_response_length=15000", "max_model_len=17999", "ajet.rollout.max_model_len"],
    ),
    (
        "a turn exceeds the response",
        {**LENGTHS, "max_response_length_in_one_turn": 15001},
        AssertionError,
        ["max_response_length_in_one_turn=15001", "ajet.rollout.max_response_length_in_one_turn", "15000"],
    ),
    (
        "LoRA, load format not given",
        without(LORA, "lora_load_format"),
        ValueError,
        ["lora_rank=16", "lora_load_format", "ajet.lora.load_format"],
    ),
    ("LoRA, load format auto", {**LORA, "lora_load_format": "auto"}, ValueError, ["lora_load_format", "'auto'"]),
    (
        "LoRA, layered summon not given",
        without(LORA, "layered_summon"),
        ValueError,
        ["layered_summon", "ajet.lora.layered_summon"],
    ),
    ("LoRA, layered summon off", {**LORA, "layered_summon": False}, ValueError, ["layered_summon", "False"]),
    ("LoRA, lr not given", without(LORA, "lr"), ValueError, ["lr", "ajet.trainer_common.optim.lr"]),
    ("LoRA, lr at the bound", {**LORA, "lr": 1e-5}, ValueError, ["lr", "1e-05"]),
    ("trinity", {"backbone": "trinity"}, NotImplementedError, ["backbone='trinity'", "ajet.backbone"]),
    ("unknown kwarg", {"max_env_workers": 3}, TypeError, ["max_env_workers"]),
    ("a length that is no number", {**LENGTHS, "max_prompt_length": "many"}, ValueError, ["max_prompt_length='many'"]),
]


@pytest.mark.parametrize(("kwargs", "error", "said"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_a_rule_raises_what_a_released_job_raises(
    kwargs: dict[str, Any], error: type[Exception], said: list[str]
) -> None:
    with pytest.raises(error) as caught:
        AgentJetJob(**kwargs)
    for text in said:
        assert text in str(caught.value)


def test_the_rules_are_met_at_their_bounds() -> None:
    assert AgentJetJob(**LENGTHS).max_model_len == 18000
    assert AgentJetJob(**LORA).lora_rank == 16
    assert AgentJetJob(**{**LORA, "lr": 1.1e-5}).lr == 1.1e-5


def test_lora_in_the_yaml_does_not_stand_for_kwargs(tmp_path: Path) -> None:
    path = base(tmp_path, "ajet: {lora: {load_format: safetensors, layered_summon: true}}\n")
    with pytest.raises(ValueError, match="the YAML's value does not count here"):
        AgentJetJob(base_yaml_config=path, lora_rank=16, lr=1e-4)


@pytest.mark.parametrize("kwargs", [{"max_prompt_length": 3001}, {"max_prompt_length": 0}])
def test_length_kwargs_ignore_the_yaml_when_incomplete(kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="go together"):
        AgentJetJob(**kwargs)


def test_lengths_of_the_yaml_are_checked_too(tmp_path: Path) -> None:
    path = base(tmp_path, "ajet: {rollout: {max_model_len: 100}}\n")
    with pytest.raises(AssertionError, match=r"set by YAML file, .*base.yaml:1"):
        AgentJetJob(base_yaml_config=path)


@pytest.mark.parametrize("key", ["defaults", "hydra"])
def test_a_base_file_without_preamble_is_a_key_error(tmp_path: Path, key: str) -> None:
    path = tmp_path / "base.yaml"
    other = {"defaults": "hydra: {}\n", "hydra": "defaults: [ajet_swarm_default, _self_]\n"}[key]
    path.write_text("ajet: {}\n" + other)
    with pytest.raises(KeyError, match=f"no top-level `{key}`"):
        AgentJetJob(base_yaml_config=path)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"algorithm": "no-such"},
        {"backbone": "no-such"},
        {"swarm_mode_sample_collection_method": "no-such"},
        {"kl_penalty_type": "no-such"},
        {"timeline_compare_level": "no-such"},
        {"batch_size": -1},
        {"num_repeat": "8"},
        {"nnodes": "2"},
    ],
)
def test_what_a_released_job_accepts_is_accepted(kwargs: dict[str, Any]) -> None:
    ((name, value),) = kwargs.items()
    assert getattr(AgentJetJob(**kwargs), name) == value


def test_errors_carry_key_and_value() -> None:
    with pytest.raises(ConfigError) as caught:
        AgentJetJob(backbone="trinity")
    assert (caught.value.key, caught.value.value) == ("ajet.backbone", "trinity")


def test_attribute_writes_reach_the_dump_with_their_line(tmp_path: Path) -> None:
    job = AgentJetJob()
    job.config.ajet.rollout.temperature = 0.5
    line = line_here() - 1
    origin = job.config.provenance("ajet.rollout.temperature")
    assert origin is not None
    assert (origin.layer, origin.file, origin.line) == ("write", __file__, line)
    assert load_config(job.dump_job_as_yaml(tmp_path / "out.yaml")).ajet.rollout.temperature == 0.5


def test_a_kwarg_knows_its_line() -> None:
    job = AgentJetJob(num_repeat=8)
    origin = job.config.provenance("ajet.rollout.num_repeat")
    assert origin is not None
    assert (origin.layer, origin.file, origin.line) == ("kwarg", __file__, line_here() - 3)


def test_an_alias_and_items_write_too() -> None:
    job = AgentJetJob()
    rollout = job.config.ajet.rollout
    rollout.top_k = 5
    job.config["ajet"]["debug"]["debug_max_parallel"] = 9
    job.config.ajet.rollout.multi_turn = {"max_steps": 3}
    assert job.config.get("ajet.rollout.top_k") == 5
    assert job.config.ajet.debug.debug_max_parallel == 9
    assert job.config.ajet.rollout.multi_turn.max_steps == 3


def test_a_misspelt_read_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match="did you mean 'max_env_worker'"):
        AgentJetJob().config.ajet.rollout.max_env_workers  # noqa: B018


def test_an_assigned_attribute_takes_effect_and_warns() -> None:
    job = AgentJetJob()
    with pytest.warns(UserWarning, match=r"released AgentJet ignores it; write job\.config\.ajet\.data"):
        job.batch_size = 64
    assert job.batch_size == job.config.ajet.data.train_batch_size == 64


def test_other_attributes_are_free() -> None:
    job = AgentJetJob()
    job.note = "mine"
    assert job.note == "mine"
    with pytest.raises(AttributeError):
        job.no_such  # noqa: B018


def test_values_of_other_types_become_plain(tmp_path: Path) -> None:
    job = AgentJetJob(model=Path("/models/m"), num_repeat=np.int64(8), lr=np.float64(0.5))  # type: ignore[arg-type]
    job.config.ajet.task_reader = AjetTaskReader(huggingface_dat_repo=HuggingfaceDatRepo(dataset_path="mine"))
    job.config.ajet.trainer_common.optim.betas = (0.9, 0.95)
    loaded = load_config(job.dump_job_as_yaml(tmp_path / "out.yaml"))
    assert (loaded.ajet.model.path, loaded.ajet.rollout.num_repeat) == ("/models/m", 8)
    assert loaded.ajet.task_reader.huggingface_dat_repo.dataset_path == "mine"
    assert loaded.ajet.trainer_common.optim.betas == [0.9, 0.95]


def test_a_value_that_yaml_cannot_hold_is_named(tmp_path: Path) -> None:
    job = AgentJetJob()
    job.config.ajet.rollout.user_workflow = print
    with pytest.raises(ConfigError, match=r"ajet\.rollout\.user_workflow is <built-in function print>"):
        job.dump_job_as_yaml(tmp_path / "out.yaml")
    assert list(tmp_path.iterdir()) == []


def test_a_job_copies_and_pickles() -> None:
    job = AgentJetJob(num_repeat=8)
    for twin in (copy.deepcopy(job), pickle.loads(pickle.dumps(job))):
        twin.config.ajet.rollout.num_repeat = 3
        assert (twin.num_repeat, job.num_repeat) == (3, 8)


def test_the_dump_has_the_released_order(tmp_path: Path) -> None:
    path = base(tmp_path, "trainer: {x: 1}\nactor_rollout_ref: {b: {z: 1, a: 2}}\najet: {mine: {y: 1}}\n")
    text = Path(AgentJetJob(base_yaml_config=path).dump_job_as_yaml(tmp_path / "out.yaml")).read_text()
    dumped = yaml.safe_load(text)
    assert list(dumped) == ["ajet", "trainer", "actor_rollout_ref", "defaults", "hydra"]
    assert str(dumped["actor_rollout_ref"]) == "{'b': {'z': 1, 'a': 2}}"
    assert list(dumped["ajet"])[:7] == [
        "project_name",
        "experiment_name",
        "experiment_dir",
        "backbone",
        "model",
        "data",
        "rollout",
    ]
    assert dumped["ajet"]["mine"] == {"y": 1}


def test_a_job_without_verl_keys_dumps_none(tmp_path: Path) -> None:
    dumped = yaml.safe_load(Path(AgentJetJob().dump_job_as_yaml(tmp_path / "out.yaml")).read_text())
    assert list(dumped) == ["ajet", "defaults", "hydra"]
    assert dumped["defaults"] == ["verl_default", "ajet_default", "_self_"]
    assert dumped["hydra"] == {"searchpath": ["file://ajet/default_config", "file://ajet/default_config/verl"]}


def test_dumping_makes_folders_and_returns_the_path(tmp_path: Path) -> None:
    target = str(tmp_path / "a" / "b" / "job.yaml")
    assert AgentJetJob().dump_job_as_yaml(target) == target
    assert [path.name for path in Path(target).parent.iterdir()] == ["job.yaml"]


def test_dumping_a_bare_name_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert AgentJetJob().dump_job_as_yaml("job.yaml") == "job.yaml"
    assert (tmp_path / "job.yaml").is_file()


KWARGS = st.fixed_dictionaries(
    {},
    optional={
        "project_name": st.text(min_size=1),
        "experiment_name": st.text(min_size=1),
        "model": st.text(),
        "n_gpu": st.integers(),
        "num_repeat": st.integers(),
        "max_env_worker": st.integers(),
        "lr": st.floats(allow_nan=False),
        "gpu_memory_utilization": st.floats(allow_nan=False),
        "use_kl_loss": st.booleans(),
        "swarm_mode": st.booleans(),
        "compute_madness_checklist": st.lists(st.text()),
        "total_training_steps": st.integers(),
        "timeline_compare_level": st.sampled_from(
            ["text", "token", "3e-5", "1_000", "yes", "null", "2026-05-26", "~", "0x1f"]
        ),
    },
)


@settings(max_examples=60, deadline=None)
@given(kwargs=KWARGS, extra=st.dictionaries(st.text(), st.one_of(st.none(), st.integers(), st.text()), max_size=3))
def test_a_dump_loads_back_equal(
    tmp_path_factory: pytest.TempPathFactory, kwargs: dict[str, Any], extra: dict[str, Any]
) -> None:
    job = AgentJetJob(**kwargs)
    job.config.ajet.extra = extra
    path = tmp_path_factory.mktemp("dump") / "job.yaml"
    job.dump_job_as_yaml(path)
    assert load_config(path) == job.config
    assert yaml.safe_load(path.read_text(encoding="utf-8")) == job.config.to_dict()
    again = AgentJetJob(base_yaml_config=path)
    assert again.config == job.config
    assert list(again.config.flat()) == list(job.config.flat())


def test_build_job_from_yaml_takes_effect_and_warns(tmp_path: Path) -> None:
    job = AgentJetJob(num_repeat=8)
    path = base(tmp_path, "ajet: {rollout: {num_repeat: 6}}\n")
    with pytest.warns(UserWarning, match="released AgentJet goes on dumping the old one"):
        returned = job.build_job_from_yaml(path)
    assert returned["ajet"]["rollout"]["num_repeat"] == 6
    assert load_config(job.dump_job_as_yaml(tmp_path / "out.yaml")).ajet.rollout.num_repeat == 6


class MyWorkflow:
    """A stand-in for a workflow class."""


def test_set_workflow() -> None:
    job = AgentJetJob()
    assert job.set_workflow(MyWorkflow, ensure_reward_in_workflow=True) is job
    assert job.config.ajet.rollout.user_workflow == f"{__name__}->MyWorkflow"
    job.set_workflow("pkg.mod->Other")
    assert job.config.ajet.rollout.user_workflow == "pkg.mod->Other"


def test_set_workflow_of_the_main_script_names_its_file(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(
        "from ajet import AgentJetJob\nclass W: pass\n"
        "print(AgentJetJob().set_workflow(W).config.ajet.rollout.user_workflow)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{script}->W"


@pytest.mark.parametrize("kind", ["hf", "huggingface", "huggingface_dat_repo"])
def test_set_data_huggingface(kind: str) -> None:
    reader = AgentJetJob().set_data(kind, "openai/gsm8k", training_split="a").config.ajet.task_reader
    assert reader.type == "huggingface_dat_repo"
    assert reader.huggingface_dat_repo.dataset_path == "openai/gsm8k"
    assert (reader.huggingface_dat_repo.training_split, reader.huggingface_dat_repo.validation_split) == ("a", "test")


@pytest.mark.parametrize("kind", ["dummy", "random_dummy"])
def test_set_data_dummy(kind: str, tmp_path: Path) -> None:
    job = AgentJetJob(base_yaml_config=base(tmp_path, "ajet: {task_reader: {type: env_service}}\n"))
    assert job.set_data(kind, "").config.ajet.task_reader.type == "random_dummy"


def test_set_data_refuses_other_types() -> None:
    with pytest.raises(NotImplementedError, match="set_data"):
        AgentJetJob().set_data("jsonl", "x")


def test_construction_is_silent_and_leaves_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = base(tmp_path, "ajet: {}\n")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.chdir(scratch)
    monkeypatch.setenv("TMPDIR", str(scratch))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AgentJetJob(base_yaml_config=path, num_repeat=8, ensure_new_experiment=True)
    assert capfd.readouterr() == ("", "")
    assert list(scratch.iterdir()) == []


def test_a_job_needs_pyyaml_only() -> None:
    code = """
import sys
before = set(sys.modules)
from ajet import AgentJetJob
AgentJetJob(num_repeat=8)
from importlib.metadata import packages_distributions
tops = {name.split(".")[0] for name in set(sys.modules) - before}
foreign = {top for top in tops if "site-packages" in (getattr(sys.modules.get(top), "__file__", None) or "")}
print(sorted(foreign - {"yaml", "_yaml", "ajet"}))
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_ajet_imports_nothing_else() -> None:
    code = "import sys, importlib, typing\nbefore = set(sys.modules)\nimport ajet\nprint(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"ajet", "__future__"}


def test_ajet_says_what_it_does_not_offer() -> None:
    import ajet

    assert ajet.__version__ == "0.1.0"
    assert ajet.AgentJetJob is AgentJetJob
    with pytest.raises(AttributeError, match="AgentJetJob"):
        ajet.NoSuch  # noqa: B018


def test_config_is_a_tree_of_the_swarm_defaults() -> None:
    config = Config()
    assert isinstance(AgentJetJob().config, Config)
    assert config.ajet.rollout.max_env_worker == 128
    same = Config.update_from_dict_recursive(config, {"ajet": {"rollout": {"num_repeat": 2}, "mine": {"a": 1}}, "x": 1})
    assert same is config
    assert (config.ajet.rollout.num_repeat, config.ajet.mine.a, config.x) == (2, 1, 1)
    assert config.ajet.rollout.max_env_worker == 128


@pytest.mark.parametrize("form", [str, Path])
def test_paths_of_both_forms(form: Callable[[str], Any], tmp_path: Path) -> None:
    path = base(tmp_path, "ajet: {}\n")
    assert AgentJetJob(base_yaml_config=form(str(path))).base_yaml_config == str(path)
