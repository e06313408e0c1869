"""Loading: layers, unknown keys, provenance, and what is said of files that cannot be used."""

from __future__ import annotations

import codecs
import copy
import json
import pickle
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ajet.default_config import schema
from ajet.utils.config_tree import ConfigError, ConfigTree
from ajet.utils.config_utils import (
    align_parameters,
    default_path,
    expand_ajet_hierarchical_config,
    load_config,
    prepare_experiment_config,
    read_ajet_config,
    read_ajet_hierarchical_config,
)

DEFAULTS: dict[str, Any] = json.loads((Path(__file__).parent.parent / "data" / "config_defaults.json").read_text())


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("mode", ["swarm", "classic"])
def test_the_defaults_are_the_released_ones(mode: str) -> None:
    expected = {key: row[mode] for key, row in DEFAULTS.items() if not row.get("only_via_AgentJetJob")}
    flat = load_config(mode=mode).flat()
    assert {key: value for key, value in flat.items() if key.startswith("ajet.")} == expected
    assert {key: type(flat[key]) for key in expected} == {key: type(value) for key, value in expected.items()}


@pytest.mark.parametrize("mode", ["swarm", "classic"])
def test_the_defaults_follow_the_schema(mode: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(load_config(mode=mode).to_dict(), schema())


def test_every_default_is_described() -> None:
    def leaves(node: dict[str, Any], prefix: str = "") -> dict[str, str]:
        found = {}
        for name, inner in node.get("properties", {}).items():
            assert inner["description"].endswith((".", ")")), f"{prefix}{name}"
            found |= leaves(inner, f"{prefix}{name}.") if "properties" in inner else {f"{prefix}{name}": ""}
        return found

    assert set(leaves(schema())) == set(DEFAULTS)


def test_every_default_knows_its_line() -> None:
    for mode in ("swarm", "classic"):
        for key, _, origin in load_config(mode=mode).leaves():
            assert origin is not None
            assert origin.file is not None
            assert origin.line is not None
            text = Path(origin.file).read_text().splitlines()[origin.line - 1]
            assert text.lstrip("- ").startswith(f"{key.rpartition('.')[2]}:"), key


def test_a_file_lies_on_what_its_defaults_name(tmp_path: Path) -> None:
    classic = write(
        tmp_path / "c.yaml", "ajet: {rollout: {num_repeat: 7}}\ndefaults: [verl_default, ajet_default, _self_]\n"
    )
    config = load_config(classic)
    assert (config.ajet.rollout.num_repeat, config.ajet.rollout.max_env_worker) == (7, 64)
    assert config.ajet.enable_swarm_mode is False
    swarm = write(tmp_path / "s.yaml", "ajet: {}\ndefaults: [ajet_swarm_default, _self_]\n")
    assert load_config(swarm).ajet.rollout.max_env_worker == 128


def test_without_defaults_the_mode_decides() -> None:
    text = "ajet:\n  rollout: {num_repeat: 7}\n"
    assert load_config(text).ajet.rollout.max_env_worker == 128
    assert load_config(text, mode="classic").ajet.rollout.max_env_worker == 64


def test_a_chain_of_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        tmp_path / "lab" / "team.yaml",
        "ajet: {rollout: {num_repeat: 3, top_k: 1}}\ndefaults: [ajet_swarm_default, _self_]\n",
    )
    own = write(
        tmp_path / "runs" / "mine.yaml",
        "ajet:\n  rollout:\n    num_repeat: 5\nhydra:\n  searchpath: [file://lab]\ndefaults: [team, _self_]\n",
    )
    monkeypatch.chdir(tmp_path)
    config = load_config("runs/mine.yaml")
    assert (config.ajet.rollout.num_repeat, config.ajet.rollout.top_k, config.ajet.rollout.max_env_worker) == (
        5,
        1,
        128,
    )
    first, second = config.provenance("ajet.rollout.num_repeat"), config.provenance("ajet.rollout.top_k")
    assert first is not None
    assert second is not None
    assert (first.layer, first.file, first.line) == ("file", str(own.relative_to(tmp_path)), 3)
    assert (second.layer, second.file, second.line) == ("file", str(tmp_path / "lab" / "team.yaml"), 1)


def test_self_may_stand_below(tmp_path: Path) -> None:
    below = write(tmp_path / "b.yaml", "ajet: {rollout: {num_repeat: 9}}\ndefaults: [_self_, ajet_default]\n")
    assert load_config(below).ajet.rollout.num_repeat == 4


def test_without_self_the_file_is_on_top(tmp_path: Path) -> None:
    path = write(tmp_path / "b.yaml", "ajet: {rollout: {num_repeat: 9}}\ndefaults: [ajet_default]\n")
    assert load_config(path).ajet.rollout.num_repeat == 9


def test_groups_and_packages(tmp_path: Path) -> None:
    write(tmp_path / "trainer" / "fast.yaml", "steps: 5\n")
    write(tmp_path / "piece.yaml", "top_k: 3\n")
    entries = "ajet_default, {trainer: fast}, piece@ajet.rollout, {optional gone: x}, {override hydra/job: y}, _self_"
    path = write(tmp_path / "g.yaml", f"ajet: {{}}\ndefaults: [{entries}]\n")
    config = load_config(path)
    assert (config.trainer.steps, config.ajet.rollout.top_k) == (5, 3)


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ("piece", "top_k"),
        ("piece@mine", "mine.top_k"),
        ("group/piece", "group.top_k"),
        ("{group: piece}", "group.top_k"),
        ("{group@other.place: piece}", "other.place.top_k"),
        ("{group@_global_: piece}", "top_k"),
        ("{group@_here_: piece}", "top_k"),
        ("headed", "a.b.top_k"),
        ("headed@mine", "mine.top_k"),
        ("late", "top_k"),
        ("{group: everywhere}", "top_k"),
        ("chained@mine", "mine.top_k"),
        ("{group: chained}", "group.top_k"),
    ],
)
def test_where_the_content_of_a_default_goes(tmp_path: Path, entry: str, key: str) -> None:
    """The keys are those that Hydra 1.3 gives."""
    for folder in (tmp_path, tmp_path / "group"):
        write(folder / "piece.yaml", "top_k: 3\n")
        write(folder / "headed.yaml", "\n# @package a.b\ntop_k: 3\n")
        write(folder / "late.yaml", "# of ours\n# @package a.b\ntop_k: 3\n")
        write(folder / "everywhere.yaml", "# @package _global_\ntop_k: 3\n")
        write(folder / "chained.yaml", "defaults: [piece, _self_]\nother: 1\n")
    config = load_config(write(tmp_path / "main.yaml", f"ajet: {{}}\ndefaults: [ajet_default, {entry}, _self_]\n"))
    assert config.get(key) == 3
    assert [name for name in config if name not in ("ajet", "defaults")] == [key.split(".")[0]]


def test_a_package_is_a_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "somepackage" / "conf" / "base_of_mine.yaml", "ajet: {rollout: {top_k: 8}}\n")
    write(tmp_path / "somepackage" / "__init__.py", "raise SystemExit('not to be imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    preamble = "hydra: {searchpath: ['pkg://somepackage.conf', 'pkg://', 'pkg://__main__', 'pkg://no.such']}\n"
    path = write(tmp_path / "p.yaml", f"ajet: {{}}\n{preamble}defaults: [ajet_default, base_of_mine, _self_]\n")
    assert load_config(path).ajet.rollout.top_k == 8


@pytest.mark.parametrize("name", ["secret", "../secret", "/SECRET"])
def test_text_opens_no_file_but_the_packaged_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    write(tmp_path / "secret.yaml", "password: 1\n")
    monkeypatch.chdir(tmp_path)
    name = name.replace("/SECRET", str(tmp_path / "secret"))
    text = f"ajet: {{}}\nhydra: {{searchpath: ['file://{tmp_path}', 'file://.']}}\ndefaults: ['{name}', _self_]\n"
    assert "password" not in load_config(text)


def test_verls_defaults_are_not_needed_and_kept_in_the_list() -> None:
    text = "ajet: {}\nhydra: {a: 1}\ndefaults: [verl_default, trinity_default, ajet_default, _self_]\n"
    config = load_config(text)
    assert config["defaults"] == ["verl_default", "trinity_default", "ajet_default", "_self_"]
    assert config["hydra"].to_dict() == {"a": 1}


def test_sections_merge_and_lists_are_replaced() -> None:
    config = load_config("ajet:\n  rollout:\n    compute_madness_checklist: []\n    val_kwargs: {top_k: 3}\n")
    assert config.ajet.rollout.compute_madness_checklist == []
    assert config.ajet.rollout.val_kwargs.to_dict() == {
        "temperature": 0.0,
        "top_k": 3,
        "top_p": 1.0,
        "do_sample": False,
    }


def test_unknown_keys_are_kept() -> None:
    text = """
ajet:
  mine: {a: [1, {b: 2}], 7: seven, "dotted.key": 1}
actor_rollout_ref:
  rollout: {n: 9, custom: "${ajet.rollout.num_repeat}"}
trinity: {x: null}
"""
    config = load_config(text).to_dict()
    assert config["ajet"]["mine"] == {"a": [1, {"b": 2}], 7: "seven", "dotted.key": 1}
    assert config["actor_rollout_ref"] == {"rollout": {"n": 9, "custom": "${ajet.rollout.num_repeat}"}}
    assert config["trinity"] == {"x": None}
    assert list(config) == ["ajet", "actor_rollout_ref", "trinity", "defaults", "hydra"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-5", 3e-5),
        ("1E6", 1e6),
        ("-2.5e+3", -2500.0),
        ("1e-5x", "1e-5x"),
        ("'3e-5'", "3e-5"),
        ("2026-05-26", "2026-05-26"),
        ("yes", True),
        ("1_000", 1000),
        ("0x10", 16),
        ("~", None),
    ],
)
def test_values_are_read_as_agentjet_reads_them(text: str, value: Any) -> None:
    read = load_config(f"ajet:\n  x: {text}\n").ajet.x
    assert (read, type(read)) == (value, type(value))


def test_anchors_and_merge_keys() -> None:
    config = load_config("base: &b {a: 1, c: 2}\najet:\n  x:\n    <<: *b\n    a: 3\n  y: {<<: [*b, {a: 9, d: 4}]}\n")
    assert config.ajet.x.to_dict() == {"a": 3, "c": 2}
    assert config.ajet.y.to_dict() == {"a": 1, "d": 4, "c": 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ajet:\n  rollout:\n    num_repeat: 8\n   batch: 3\n", "job.yaml:4:4: malformed YAML"),
        ("ajet:\n\trollout: 1\n", "indent with spaces, not tabs"),
        ("ajet:\n  a: b: c\n", "one `key: value` per line"),
        ("ajet:\n  a: [1, 2\nb: 3\n", "malformed YAML"),
        ("ajet:\n  a: *gone\n", "quote text that starts with *"),
        ("ajet: 'open\n", "malformed YAML"),
        ("ajet: {}\n---\najet: {}\n", "keep one document per file"),
        ("", "is empty"),
        ("# nothing\n", "is empty"),
        ("- ajet\n", "holds a list"),
        ("ajet\n", "holds a single value"),
        ("rollout: {}\n", "has no `ajet` mapping (its keys are rollout)"),
        ("ajet:\n", "has no `ajet` mapping (`ajet` is None)"),
        ("ajet: [1]\n", "has no `ajet` mapping"),
        ("ajet: {a: !!python/object/apply:os.system [x]}\n", "not plain YAML"),
        ("ajet: {a: !mine 3}\n", "job.yaml:1: the tag !mine"),
        ("ajet: {a: !!int many}\n", "job.yaml:1: 'many' cannot be read as int"),
        ("ajet: {a: !!bool 38}\n", "cannot be read as bool"),
        ("ajet: {a: !!timestamp 2020-99-99}\n", "cannot be read as timestamp"),
        ("ajet: {? [1] : 2}\n", "cannot be a key"),
        ("ajet: &a {b: *a}\n", "contains itself"),
        ("ajet: {<<: 3}\n", "`<<` takes a mapping"),
        ("ajet: {}\ndefaults: ajet_default\n", "`defaults` is 'ajet_default'; expected a list"),
        ("ajet: {}\ndefaults: [3]\n", "has the entry 3"),
        ("ajet: {}\ndefaults: [no_such, _self_]\n", "no_such.yaml is in none of"),
        ("ajet: {}\nhydra: {searchpath: here}\ndefaults: [_self_]\n", "expected a list of file://"),
        ("ajet: {a: \x01}\n", "a character that YAML does not allow"),
    ],
)
def test_a_bad_file_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path / "job.yaml", text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert said in str(caught.value)
    assert "job.yaml" in str(caught.value)


def test_missing_files_and_folders_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml: there is no such file"):
        load_config(tmp_path / "gone.yaml")
    with pytest.raises(ConfigError, match="is a folder"):
        load_config(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks_are_understood(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes("ajet: {project_name: 强化学习}\n".encode(encoding))
    assert load_config(path).ajet.project_name == "强化学习"


@pytest.mark.parametrize("data", ["ajet:\n  project_name: 强化\n".encode("gb18030"), codecs.BOM_UTF16_LE + b"a"])
def test_other_encodings_are_told(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="save it as UTF-8"):
        load_config(path)


def test_circles_are_told(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "ajet: {}\ndefaults: [b, _self_]\n")
    write(tmp_path / "b.yaml", "ajet: {}\ndefaults: [a, _self_]\n")
    with pytest.raises(ConfigError, match=r"runs in a circle: .*a\.yaml -> .*b\.yaml -> .*a\.yaml"):
        load_config(tmp_path / "a.yaml")
    with pytest.raises(ConfigError, match="circle"):
        load_config(write(tmp_path / "self.yaml", "ajet: {}\ndefaults: [self]\n"))


def test_bombs_are_refused() -> None:
    lines = ["ajet:", "  l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError, match="aliases multiply"):
        load_config("\n".join(lines))
    with pytest.raises(ConfigError, match=r"nest|deep"):
        load_config("ajet:\n  a: " + "[" * 50_000)


def test_the_tree_reads_and_writes_by_all_three_forms() -> None:
    tree = load_config()
    tree.set("ajet.new.section.key", 1)
    assert tree.ajet.new.section.key == tree["ajet"]["new"]["section"]["key"] == tree.get("ajet.new.section.key") == 1
    assert tree.get("ajet.no.such", 5) == 5
    assert tree.get("ajet.rollout.num_repeat.deeper") is None
    assert "rollout" in tree.ajet
    del tree.ajet.new
    assert tree.get("ajet.new") is None
    with pytest.raises(KeyError):
        tree.provenance("ajet.new")


def test_the_tree_copies_pickles_and_compares() -> None:
    tree = load_config()
    for twin in (copy.deepcopy(tree), pickle.loads(pickle.dumps(tree)), tree.copy()):
        assert twin == tree
        assert twin.provenance("ajet.backbone") == tree.provenance("ajet.backbone")
        twin.ajet.rollout.compute_madness_checklist.append("x")
        assert twin != tree
    assert tree == tree.to_dict()


def test_loading_twice_gives_independent_trees() -> None:
    first = load_config()
    first.ajet.rollout.compute_madness_checklist.append("changed")
    first.ajet.rollout.num_repeat = 99
    assert load_config().ajet.rollout.compute_madness_checklist == ["nonsense"]
    assert load_config().ajet.rollout.num_repeat == 4


def test_keys_named_like_methods_are_reached_by_item() -> None:
    tree = load_config("ajet:\n  items: 3\n  get: {to_dict: 1}\n")
    assert tree.ajet["items"] == 3
    assert tree.ajet["get"]["to_dict"] == 1
    assert tree.to_dict()["ajet"]["items"] == 3


def test_hierarchical_config_is_the_file_with_replacements(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", "ajet: {rollout: {num_repeat: 2}}\nhydra: {}\ndefaults: [ajet_default, _self_]\n")
    out = tmp_path / "out.yaml"
    config = read_ajet_hierarchical_config(
        path,
        experiment_name="n",
        backbone="debug",
        experiment_dir="/d",
        write_to=out,
        override_param_callback=lambda read: {**read, "extra": 1},
    )
    expected = {"rollout": {"num_repeat": 2}, "experiment_name": "n", "experiment_dir": "/d", "backbone": "debug"}
    assert config["ajet"] == expected
    assert yaml.safe_load(out.read_text()) == config
    assert config["extra"] == 1
    expanded = expand_ajet_hierarchical_config(config)
    assert (expanded["ajet"]["rollout"]["num_repeat"], expanded["ajet"]["rollout"]["max_env_worker"]) == (2, 64)
    assert list(expanded) == ["ajet", "extra", "defaults", "hydra"]
    assert read_ajet_config(path).ajet.rollout.num_repeat == 2


@pytest.mark.parametrize(
    ("backbone", "left"), [("verl", "verl"), ("debug", "verl"), ("trinity", "trinity"), (None, "verl trinity")]
)
def test_the_other_backbones_defaults_leave_the_preamble(tmp_path: Path, backbone: str | None, left: str) -> None:
    folders = "[file://ajet/default_config/verl, file://ajet/default_config/trinity]"
    text = f"ajet: {{}}\nhydra: {{searchpath: {folders}}}\ndefaults: [verl_default, trinity_default, _self_]\n"
    config = read_ajet_hierarchical_config(write(tmp_path / "a.yaml", text), backbone=backbone)
    assert config["defaults"] == [*(f"{name}_default" for name in left.split()), "_self_"]
    assert config["hydra"]["searchpath"] == [f"file://ajet/default_config/{name}" for name in left.split()]


def test_hierarchical_config_of_nothing_is_a_preamble() -> None:
    config = read_ajet_hierarchical_config(None)
    assert config["ajet"] == {}
    assert expand_ajet_hierarchical_config(config)["ajet"]["backbone"] == "verl"


def test_aligning_keeps_verls_other_keys(tmp_path: Path) -> None:
    source = write(tmp_path / "a.yaml", yaml.safe_dump(load_config().to_dict()))
    target = write(
        tmp_path / "t.yaml", "actor_rollout_ref: {actor: {fsdp_config: {_target_: x, param_offload: false}}}\n"
    )
    result = align_parameters(source, target, None, "verl")
    assert result == yaml.safe_load(target.read_text())
    assert result["actor_rollout_ref"]["actor"]["fsdp_config"] == {
        "_target_": "x",
        "param_offload": True,
        "optimizer_offload": True,
    }
    assert result["actor_rollout_ref"]["rollout"]["n"] == result["actor_rollout_ref"]["actor"]["rollout_n"] == 4
    assert result["trainer"]["logger"] == ["console", "tensorboard"]


def test_aligning_takes_an_own_mapping_with_comments(tmp_path: Path) -> None:
    mapping = write(tmp_path / "m.jsonc", '{\n  // where to\n  "ajet.project_name": "a.b"\n}\n')
    source = write(tmp_path / "a.yaml", "ajet: {project_name: p}\n")
    assert align_parameters(source, write(tmp_path / "t.yaml", "x: 1\n"), mapping, "debug") == {"x": 1, "a": {"b": "p"}}


def test_aligning_checks_lora_and_missing_keys(tmp_path: Path) -> None:
    config = load_config()
    config.ajet.lora.lora_rank = 8
    source = write(tmp_path / "a.yaml", yaml.safe_dump(config.to_dict()))
    with pytest.raises(ValueError, match=r"ajet\.lora\.load_format must be 'safetensors'"):
        align_parameters(source, write(tmp_path / "t.yaml", "x: 1\n"))
    with pytest.raises(ValueError, match=r"has no ajet\."):
        align_parameters(write(tmp_path / "b.yaml", "ajet: {}\n"), tmp_path / "t.yaml")


def test_preparing_an_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "mine.yaml", "ajet: {experiment_name: a|b}\nhydra: {}\ndefaults: [ajet_default, _self_]\n")
    saved = write(tmp_path / "code" / "x.py", "1\n").parent
    monkeypatch.setenv("BACK_TARGETS", f"{saved},nowhere")
    written, folder, name, final = prepare_experiment_config(str(path), str(tmp_path / "exp"), "debug")
    assert (name, folder) == ("a-b", str(tmp_path / "exp" / "a-b"))
    assert yaml.safe_load(Path(written).read_text()) == final
    assert (final["ajet"]["backbone"], final["ajet"]["experiment_dir"]) == ("debug", f"{tmp_path}/exp/a-b")
    assert (Path(folder) / "backup" / "code" / "x.py").is_file()
    kept = write(Path(folder) / "result.txt", "precious")
    prepare_experiment_config(str(path), str(tmp_path / "exp"), "debug", storage=False)
    assert kept.read_text() == "precious"


def test_preparing_names_after_the_file_and_wants_yaml(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.yaml", "ajet: {}\nhydra: {}\ndefaults: [ajet_default, _self_]\n")
    name = prepare_experiment_config(path, tmp_path / "exp", "verl", storage=False)[2]
    assert name.startswith("mine_20")
    assert not (tmp_path / "exp").exists()
    with pytest.raises(AssertionError, match=r"must end in \.yaml"):
        prepare_experiment_config(write(tmp_path / "mine.yml", "ajet: {}\n"), tmp_path, "verl")


def test_default_paths_exist() -> None:
    for mode in ("swarm", "classic"):
        assert default_path(mode).is_file()
    assert isinstance(load_config(default_path("swarm")), ConfigTree)
