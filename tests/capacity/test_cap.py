"""capacity.py cap and plan --target."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajet.task_rollout.native_parallel_worker import count_slots
from skillpack.capacity.inputs import CLIENTS, MAX_ENV_WORKER, NUM_REPEAT, TRAIN_BATCH_SIZE, Input, Inputs
from skillpack.capacity.limits import ceiling_of, documented_cap, limits_of
from skillpack.capacity.machine import machine_limits
from skillpack.capacity.parameters import THROTTLE_RATIO

from .helpers import answer_of, limit, run_script


def test_a_cap_that_is_not_divisible_names_both_multiples() -> None:
    answer = answer_of("cap", "--max-env-worker", "130", "--num-repeat", "8")
    assert answer["cap"] == 136
    assert answer["divisible"] is False
    assert "128" in answer["advice"][0]
    assert "136" in answer["advice"][0]


def test_the_batch_binds_on_a_released_engine_only() -> None:
    answer = answer_of("cap", "--max-env-worker", "512", "--num-repeat", "8", "--batch-size", "16")
    assert answer["cap"] == 512
    batch = limit(answer, "batch")
    assert (batch["value"], batch["binds"], batch["binds_on"]) == (128, True, ["released"])
    assert limit(answer, "engine_slots")["binds_on"] == ["documented"]
    assert limit(answer, "thread_pool")["binds"] is False


def test_an_unknown_batch_is_not_invented() -> None:
    answer = answer_of("cap", "--max-env-worker", "64", "--num-repeat", "8")
    batch = limit(answer, "batch")
    assert (batch["value"], batch["known"], batch["binds"]) == (None, "unknown", None)
    released = next(item for item in answer["ceilings"] if item["engine"] == "released")
    assert (released["value"], released["exact"], released["unknown"]) == (64, False, ["batch"])


def test_fewer_workers_than_one_group_still_give_a_whole_group() -> None:
    answer = answer_of("cap", "--max-env-worker", "5", "--num-repeat", "8", "--batch-size", "4")
    assert answer["cap"] == 8
    assert answer["advice"][0].startswith("max_env_worker 5 is not a multiple of num_repeat 8: set 8;")


def test_client_pools_and_environment_are_limits_too() -> None:
    answer = answer_of(
        *("cap", "--max-env-worker", "128", "--num-repeat", "8", "--engine", "documented"),
        *("--clients", "2", "--client-pool", "20", "--environment", "64"),
    )
    assert answer["cap"] == 128
    assert limit(answer, "client_pools")["binds"] is True
    assert limit(answer, "environment_service")["binds"] is False
    assert answer["ceilings"][0]["value"] == 40


def test_llm_calls_bind_only_below_the_running_episodes() -> None:
    flags = ("--max-env-worker", "128", "--num-repeat", "8", "--engine", "documented")
    gpus = ("--set", "ajet.trainer_common.n_gpus_per_node=8", "--set", "ajet.trainer_common.nnodes=1")
    shape = ("--set", "ajet.rollout.tensor_model_parallel_size=4")
    wide = answer_of("cap", *flags, *gpus, *shape, "--set", "ajet.rollout.max_num_seqs=64")
    assert (limit(wide, "max_num_seqs")["value"], limit(wide, "max_num_seqs")["binds"]) == (128, False)
    tight = answer_of("cap", *flags, *gpus, *shape, "--set", "ajet.rollout.max_num_seqs=16")
    assert (limit(tight, "max_num_seqs")["value"], limit(tight, "max_num_seqs")["binds"]) == (32, True)


def test_a_yaml_file_is_read_over_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("ajet:\n  rollout: {max_env_worker: 130, num_repeat: 8}\n")
    answer = answer_of("cap", "job.yaml", cwd=tmp_path)
    assert answer["cap"] == 136
    assert "job.yaml" in answer["inputs"]["ajet.rollout.max_env_worker"]["source"]
    assert limit(answer, "batch")["value"] == 32 * 8
    assert answer_of("cap", "--from", "job.yaml", "--max-env-worker", "16", cwd=tmp_path)["cap"] == 16


def test_a_client_script_is_read_but_not_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from ajet.copilot.job import AgentJetJob\n"
        "open('was_run', 'w')\n"
        "job = AgentJetJob(max_env_worker=512, num_repeat=8, batch_size=16)\n"
    )
    answer = answer_of("cap", "train.py", cwd=tmp_path)
    assert (answer["cap"], limit(answer, "batch")["value"]) == (512, 128)
    assert not (tmp_path / "was_run").exists()


def test_classic_mode_is_bound_by_the_batch(tmp_path: Path) -> None:
    (tmp_path / "classic.yaml").write_text(
        "ajet:\n  enable_swarm_mode: false\n  data: {train_batch_size: 4}\n"
        "  rollout: {max_env_worker: 64, num_repeat: 4}\n"
    )
    answer = answer_of("cap", "classic.yaml", cwd=tmp_path)
    assert answer["cap"] == 16
    assert {item["engine"] for item in answer["ceilings"]} == {"classic"}


def test_a_plan_tells_what_to_set_and_to_restart() -> None:
    answer = answer_of("plan", "--target", "250", "--num-repeat", "8", "--max-env-worker", "128", "--batch-size", "16")
    assert answer["cap"] == 256
    assert answer["divisible"] is True
    assert {(item["key"], item["from"], item["to"]) for item in answer["changes"]} == {
        ("ajet.rollout.max_env_worker", 128, 256),
        ("ajet.data.train_batch_size", 16, 32),
    }
    assert answer["restart"] == ["engine"]


def test_a_plan_that_is_met_changes_nothing() -> None:
    answer = answer_of("plan", "--target", "128", "--num-repeat", "8", "--max-env-worker", "128", "--batch-size", "16")
    assert answer["changes"] == []
    assert answer["restart"] == []


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("cap",), "ajet.rollout.max_env_worker is unknown"),
        (("cap", "--max-env-worker", "0", "--num-repeat", "8"), "0 is not in the range"),
        (("cap", "--max-env-worker", "8"), "ajet.rollout.num_repeat is unknown"),
        (("cap", "no-such-file.yaml"), "no-such-file.yaml"),
        (("cap", "a.yaml", "--from", "b.yaml"), "not both"),
        (("cap", "--set", "max_num_seqs=4"), "KEY=VALUE"),
        (("cap", "--set", "ajet.rollout.max_num_seqs=many"), "'many'"),
        (("plan", "--target", "8"), "num_repeat is unknown"),
    ],
)
def test_bad_input_ends_with_code_2_and_says_why(args: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = run_script(*args, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@given(st.integers(1, 10_000), st.integers(1, 64), st.integers(1, 1000))
def test_caps_are_those_of_the_engine_and_a_released_one_never_runs_more(workers: int, repeat: int, batch: int) -> None:
    given = {MAX_ENV_WORKER: workers, NUM_REPEAT: repeat, TRAIN_BATCH_SIZE: batch}
    limits = limits_of(Inputs({key: Input(value, "test") for key, value in given.items()}), ("released",))
    released = ceiling_of(limits, "released").value
    assert released == count_slots(workers, repeat, batch, "released")
    assert 1 <= released <= documented_cap(workers, repeat) == count_slots(workers, repeat, batch)
    assert documented_cap(workers, repeat) % repeat == 0
    assert documented_cap(workers, repeat) - repeat < workers


def test_a_throttle_policy_is_a_limit() -> None:
    inputs = Inputs(
        {
            MAX_ENV_WORKER: Input(64, "test"),
            NUM_REPEAT: Input(4, "test"),
            TRAIN_BATCH_SIZE: Input(4, "test"),
            CLIENTS: Input(2, "test"),
            THROTTLE_RATIO: Input(1.5, "test"),
        }
    )
    limits = {limit.name: limit for limit in limits_of(inputs, ("documented",))}
    assert limits["throttle_policy"].value == 6 * 4 * 2
    assert limits["throttle_policy"].binds
    assert not limits["engine_slots"].binds


def test_this_machines_files_and_ports_are_counted(tmp_path: Path) -> None:
    answer = answer_of("cap", "--max-env-worker", "8", "--num-repeat", "8", "--this-machine")
    files = limit(answer, "open_files")
    assert files["value"] == (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 64) // 3
    assert files["known"] == "measured"
    (tmp_path / "range").write_text("10000 10099\n")
    assert machine_limits(tmp_path / "range").value("ephemeral_ports") == 50
    assert machine_limits(tmp_path / "none").value("ephemeral_ports") is None


def test_what_a_script_computes_when_it_runs_is_unknown_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import sys\nfrom ajet.copilot.job import AgentJetJob\n"
        "job = AgentJetJob(max_env_worker=int(sys.argv[1]), num_repeat=8)\n"
    )
    done = run_script("cap", "train.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "line 3" in done.stderr
    assert answer_of("cap", "train.py", "--max-env-worker", "64", cwd=tmp_path)["cap"] == 64


def test_a_plan_never_lowers_a_cap_that_is_high_enough() -> None:
    answer = answer_of("plan", "--target", "256", "--max-env-worker", "512", "--num-repeat", "8", "--batch-size", "64")
    assert answer["changes"] == []
    assert answer["advice"][0].startswith("max_env_worker 512 allows 256 already")


def test_threads_as_many_as_slots_do_not_bind_before_them() -> None:
    threads = ("--set", "ajet.interchange_server.max_inference_tracker_threads=512")
    answer = answer_of("cap", "--max-env-worker", "512", "--num-repeat", "8", "--batch-size", "64", *threads)
    assert not [sentence for sentence in answer["advice"] if "binds before the engine does" in sentence]


def test_a_classic_plan_names_the_yaml(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(
        "ajet: {enable_swarm_mode: false, rollout: {max_env_worker: 64, num_repeat: 8}, data: {train_batch_size: 8}}\n"
    )
    answer = answer_of("plan", "job.yaml", "--target", "128", cwd=tmp_path)
    assert {item["set"].rpartition(" ")[2] for item in answer["changes"]} == {"(YAML)"}
    assert not [sentence for sentence in answer["advice"] if "clients' pools" in sentence]
