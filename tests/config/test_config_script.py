"""config.py as a user runs it: answers, exit codes, one JSON document, nothing beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ajet.copilot.job import AgentJetJob
from ajet.utils.config_utils import load_config
from skillpack.config.reference import reference
from skillpack.pack import SCHEMAS, skills_dir

SKILL = skills_dir() / "swarm-configuration"
EXAMPLES = Path(__file__).parent / "lint"


def config(*args: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SKILL / "scripts" / "config.py"), *args]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, timeout=60)


def document(*args: str, cwd: Path, code: int = 0) -> Any:
    done = config(*args, "--json", cwd=cwd)
    assert done.returncode == code, done.stderr
    found = json.loads(done.stdout)
    if "written_to" in found and set(found) == {"written_to", "characters"}:
        found = json.loads(Path(found["written_to"]).read_text())
    jsonschema.validate(found, json.loads((SCHEMAS / f"config-{args[0]}.schema.json").read_text()))
    return found


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


TRAIN = """\
from ajet.copilot.job import AgentJetJob
WORKERS = 64 * 2
job = AgentJetJob(experiment_name="example", max_env_worker=WORKERS, num_repeat=8)
job.config.ajet.rollout.temperature = 1.0
"""


def test_explain_tells_value_layers_and_meaning(tmp_path: Path) -> None:
    write(tmp_path / "train.py", TRAIN.replace("* 2", "* 3"))
    found = document("explain", "max_env_worker", "train.py", cwd=tmp_path)
    assert (found["key"], found["value"]) == ("ajet.rollout.max_env_worker", 192)
    assert [layer["value"] for layer in found["layers"]] == [64, 128, 192]
    assert found["set_by"]["line"] == 3
    assert (found["kwarg"], found["set_it"]) == ("max_env_worker", "AgentJetJob(max_env_worker=...)")
    assert found["defaults"] == {"swarm": 128, "classic": 64}
    assert "Running Episodes" in found["description"]


@pytest.mark.parametrize(
    ("word", "key", "verl"),
    [
        (
            "ajet.rollout.num_repeat",
            "ajet.rollout.num_repeat",
            ["actor_rollout_ref.actor.rollout_n", "actor_rollout_ref.rollout.n"],
        ),
        ("rollout.num_repeat", "ajet.rollout.num_repeat", None),
        ("n_gpu", "ajet.trainer_common.n_gpus_per_node", ["trainer.n_gpus_per_node"]),
        ("save_freq", "ajet.trainer_common.save_freq", None),
        ("actor_rollout_ref.rollout.n", "ajet.rollout.num_repeat", None),
    ],
)
def test_explain_understands_what_a_user_calls_a_key(
    tmp_path: Path, word: str, key: str, verl: list[str] | None
) -> None:
    found = document("explain", word, cwd=tmp_path)
    assert found["key"] == key
    assert verl is None or found["verl"] == verl


def test_explain_lists_a_section(tmp_path: Path) -> None:
    found = document("explain", "ajet.lora", cwd=tmp_path)
    assert [row["key"].rpartition(".")[2] for row in found["keys"]] == [
        "lora_rank",
        "lora_alpha",
        "target_modules",
        "load_format",
        "layered_summon",
    ]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("max_env_workers", "did you mean ajet.rollout.max_env_worker?"),
        ("temperature", "one of ajet.rollout.temperature"),
        ("zzz", "references/keys.md"),
    ],
)
def test_explain_of_no_key_is_bad_usage(tmp_path: Path, word: str, said: str) -> None:
    done = config("explain", word, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr


@pytest.mark.parametrize(("word", "said"), [("mine.x", "without effect"), ("trainer.resume_mode", "passed on")])
def test_explain_knows_what_stands_in_the_file_only(tmp_path: Path, word: str, said: str) -> None:
    write(tmp_path / "job.yaml", "ajet:\n  mine: {x: 1}\ntrainer: {resume_mode: 1}\n")
    found = document("explain", word, "job.yaml", cwd=tmp_path)
    assert (found["value"], found["kwarg"]) == (1, None)
    assert said in found["description"]


@pytest.mark.parametrize(
    ("text", "value"), [(".nan", "nan"), ("!!timestamp 2026-05-26", "2026-05-26"), ("{1: x}", {"1": "x"})]
)
def test_values_that_json_lacks_are_text(tmp_path: Path, text: str, value: Any) -> None:
    write(tmp_path / "job.yaml", f"ajet:\n  project_name: {text}\n")
    assert document("explain", "project_name", "job.yaml", cwd=tmp_path)["value"] == value
    assert document("diff", "default:swarm", "job.yaml", cwd=tmp_path, code=1)
    assert document("lint", "job.yaml", cwd=tmp_path, code=1)


def test_explain_says_what_is_unknown_and_where(tmp_path: Path) -> None:
    write(tmp_path / "train.py", "from ajet import AgentJetJob\njob = AgentJetJob(num_repeat=choose())\n")
    found = document("explain", "num_repeat", "train.py", cwd=tmp_path)
    assert (found["known"], "value" in found) == (False, False)
    assert found["why"].startswith("train.py:2: ")


def test_every_key_is_explained(tmp_path: Path) -> None:
    from skillpack.config import report, texts
    from skillpack.config.keys import all_keys, find_key
    from skillpack.config.sources import read_source

    source = read_source("default:swarm")
    schema = json.loads((SCHEMAS / "config-explain.schema.json").read_text())
    for name in all_keys():
        found = report.explain(source, find_key(name), name)
        jsonschema.validate(found, schema)
        assert name in texts.explain(found)


def test_diff_names_only_what_differs(tmp_path: Path) -> None:
    write(tmp_path / "train.py", TRAIN)
    found = document("diff", "default:swarm", "train.py", cwd=tmp_path, code=1)
    keys = [row["key"] for row in found["differing"]]
    assert keys == ["ajet.experiment_name", "ajet.rollout.num_repeat", "ajet.rollout.temperature"]


def test_diff_of_two_jobs_of_one_script(tmp_path: Path) -> None:
    text = "from ajet import AgentJetJob\na = AgentJetJob(num_repeat=4)\nb = AgentJetJob(num_repeat=8)\n"
    write(tmp_path / "train.py", text)
    (row,) = document("diff", "train.py#a", "train.py#2", cwd=tmp_path, code=1)["differing"]
    assert (row["key"], row["first"]["value"], row["second"]["value"]) == ("ajet.rollout.num_repeat", 4, 8)
    assert document("diff", "train.py#a", "train.py#1", cwd=tmp_path)["same"]


def test_diff_tells_an_unknown_value_as_a_difference(tmp_path: Path) -> None:
    write(tmp_path / "train.py", "from ajet import AgentJetJob\njob = AgentJetJob(num_repeat=choose())\n")
    found = document("diff", "train.py", "train.py", cwd=tmp_path, code=1)
    assert [row["key"] for row in found["differing"]] == ["ajet.rollout.num_repeat"]


def test_lint_exit_codes(tmp_path: Path) -> None:
    warning, error = str(EXAMPLES / "workers-not-divisible.yaml"), str(EXAMPLES / "gamma-not-one.yaml")
    assert document("lint", warning, cwd=tmp_path)["counts"] == {"error": 0, "warning": 1, "info": 0}
    assert document("lint", warning, "--strict", cwd=tmp_path, code=1)["ok"] is False
    assert document("lint", error, cwd=tmp_path, code=1)["counts"]["error"] == 1
    assert config("lint", "gone.yaml", cwd=tmp_path).returncode == 2


def test_a_dash_is_yaml_on_standard_input(tmp_path: Path) -> None:
    text = "ajet: {experiment_name: x, rollout: {gamma: 2}}\nhydra: {}\ndefaults: [ajet_swarm_default, _self_]\n"
    done = config("lint", "-", cwd=tmp_path, stdin=text)
    assert done.returncode == 1
    assert done.stdout.count("error") == 2  # the finding, and the count
    assert "gamma-not-one" in done.stdout
    assert config("lint", "-", cwd=tmp_path, stdin="a: [").returncode == 2
    command = [sys.executable, str(SKILL / "scripts" / "config.py"), "lint", "-"]
    done_in_bytes = subprocess.run(command, input=b"ajet: \xff", capture_output=True, timeout=60)
    assert done_in_bytes.returncode == 2
    assert b"save it as UTF-8" in done_in_bytes.stderr


def test_lint_checks_every_job_of_a_script(tmp_path: Path) -> None:
    text = "from ajet import AgentJetJob\na = AgentJetJob(experiment_name='x')\n"
    write(tmp_path / "train.py", text + "b = AgentJetJob(experiment_name='y', backbone='trinity')\n")
    found = document("lint", "train.py", cwd=tmp_path, code=1)
    assert [(one["source"], len(one["findings"])) for one in found["configurations"]] == [
        ("train.py#a", 0),
        ("train.py#b", 1),
    ]
    assert document("lint", "train.py", "--job", "a", cwd=tmp_path)["ok"]


def test_lint_text_has_place_rule_and_mend(tmp_path: Path) -> None:
    write(tmp_path / "train.py", TRAIN.replace("num_repeat=8", "num_repeat=7"))
    text = config("lint", "train.py", cwd=tmp_path).stdout
    assert "train.py:3: warning workers-not-divisible: " in text
    assert "    mend: set ajet.rollout.max_env_worker to 126 or 133" in text


def test_dump_is_what_the_job_dumps(tmp_path: Path) -> None:
    write(tmp_path / "train.py", TRAIN)
    done = config("dump", "train.py", "--out", "job.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "written to job.yaml")
    job = AgentJetJob(experiment_name="example", max_env_worker=128, num_repeat=8)
    job.config.ajet.rollout.temperature = 1.0
    job.dump_job_as_yaml(tmp_path / "real.yaml")
    assert (tmp_path / "job.yaml").read_text() == (tmp_path / "real.yaml").read_text()


def test_dump_to_stdout_loads_back(tmp_path: Path) -> None:
    done = config("dump", "default:classic", cwd=tmp_path)
    assert done.returncode == 0
    assert yaml.safe_load(done.stdout) == load_config(mode="classic").to_dict()


def test_dump_of_an_incomplete_script_says_so(tmp_path: Path) -> None:
    write(tmp_path / "train.py", "from ajet import AgentJetJob\njob = AgentJetJob(num_repeat=choose())\n")
    done = config("dump", "train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "train.py:2: unknown ajet.rollout.num_repeat" in done.stderr
    assert "num_repeat" not in yaml.safe_load(done.stdout)["ajet"]["rollout"]


def test_help_of_every_command(tmp_path: Path) -> None:
    for command in ((), ("explain",), ("diff",), ("lint",), ("dump",)):
        done = config(*command, "--help", cwd=tmp_path)
        assert done.returncode == 0
        assert "Exit codes:" in done.stdout
        assert "config.py" in done.stdout


def test_the_key_reference_is_up_to_date() -> None:
    path = SKILL / "references" / "keys.md"
    assert path.read_text(encoding="utf-8") == reference(), "run python -m skillpack.config.reference"


def test_explain_knows_the_kwargs_that_set_no_key(tmp_path: Path) -> None:
    write(tmp_path / "train.py", "from ajet import AgentJetJob\njob = AgentJetJob(ensure_new_experiment=True)\n")
    found = document("explain", "ensure_new_experiment", "train.py", cwd=tmp_path)
    assert (found["value"], found["set_by"]["line"]) == (True, 2)
    assert found["set_it"] == "AgentJetJob(ensure_new_experiment=...)"
    assert document("explain", "base_yaml_config", "train.py", cwd=tmp_path)["value"] == "ajet_swarm_default.yaml"


def test_explain_prefers_the_kwarg_and_names_the_yaml_in_classic_mode(tmp_path: Path) -> None:
    assert document("explain", "model", cwd=tmp_path)["key"] == "ajet.model.path"
    assert document("explain", "max_num_seqs", "default:classic", cwd=tmp_path)["set_it"] == "in the YAML"


def test_the_mend_of_a_batch_names_each_number_once(tmp_path: Path) -> None:
    text = TRAIN.replace("num_repeat=8", "num_repeat=1, batch_size=3, n_gpu=8")
    write(tmp_path / "train.py", text)
    assert "to a multiple of 8: 8\n" in config("lint", "train.py", cwd=tmp_path).stdout
