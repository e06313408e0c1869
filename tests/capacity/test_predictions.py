"""capacity.py what-if, plan --goal, sweep, fleet and fit, as a user runs them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillpack.capacity import inputs as keys
from skillpack.capacity import parameters as names
from skillpack.capacity.bottleneck import gains
from skillpack.capacity.goals import Goal, goal_report, parse_goal
from skillpack.capacity.inputs import Input, Inputs, from_file
from skillpack.capacity.limits import EVERY_ENGINE, SWARM_ENGINES
from skillpack.capacity.plan import plan_report
from skillpack.capacity.predict import predict
from skillpack.capacity.sweep import knee
from skillpack.config.lint import lint
from skillpack.config.sources import read_source
from skillpack.script import BadInput

from .helpers import answer_of, run_script

SCHEMA = "capacity-prediction.schema.json"
JOB = "ajet:\n  rollout: {max_env_worker: 64, num_repeat: 4}\n  data: {train_batch_size: 32}\n"
EPISODES = ("--episode-seconds", "60", "--episode-p95", "150", "--steps", "100")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A folder with a job.yaml: 64 workers, 4 repeats, a batch of 32."""
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def figure(document: dict[str, Any], name: str) -> tuple[float, float]:
    """Return a figure before and after."""
    row = next(row for row in document["table"] if row["name"] == name)
    return row["before"], row["after"]


def test_what_if_compares_before_and_after(job: Path) -> None:
    change = ("--set", "ajet.rollout.max_env_worker=128")
    answer = answer_of("what-if", "job.yaml", *EPISODES, *change, "--png", "steps.png", schema=SCHEMA, cwd=job)
    assert figure(answer, "concurrency") == (64, 128)
    slow, quick = figure(answer, "episodes_per_hour")
    assert slow < quick
    assert answer["restart"] == ["engine"]
    assert (job / "steps.png").read_bytes().startswith(b"\x89PNG")
    assumed = {item["name"] for item in answer["assumptions"]}
    assert {"distribution", "client_pools", "update_seconds"} <= assumed
    assert all(item["replace_by"] for item in answer["assumptions"])


def test_what_if_takes_clients_too(job: Path) -> None:
    given_clients = ("--clients", "2", "--client-pool", "8")
    answer = answer_of(
        "what-if", "job.yaml", *EPISODES, *given_clients, "--set", "client_pool=16", schema=SCHEMA, cwd=job
    )
    assert figure(answer, "concurrency") == (16, 32)
    assert answer["restart"] == ["clients"]


def test_a_change_of_what_does_not_bind_brings_nothing(job: Path) -> None:
    given_clients = ("--clients", "1", "--client-pool", "8")
    change = ("--set", "ajet.rollout.max_env_worker=128")
    answer = answer_of("what-if", "job.yaml", *EPISODES, *given_clients, *change, schema=SCHEMA, cwd=job)
    assert answer["before"]["step"]["step"] == answer["after"]["step"]["step"]


def test_without_a_duration_nothing_is_invented(job: Path) -> None:
    done = run_script("what-if", "job.yaml", "--set", "ajet.rollout.max_env_worker=128", cwd=job)
    assert done.returncode == 2
    assert "the duration of an episode is unknown" in done.stderr
    assert "--episode-seconds" in done.stderr


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("update_seconds=long", "update_seconds is 'long'"),
        ("llm_share=1.5", "llm_share is 1.5"),
        ("client_pool=0", "client_pool is 0"),
        ("client_loop=round", "client_loop is 'round'"),
        ("max_env_worker=8", "KEY=VALUE"),
    ],
)
def test_a_change_that_is_none_is_refused(job: Path, setting: str, said: str) -> None:
    done = run_script("what-if", "job.yaml", *EPISODES, "--set", setting, cwd=job)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_classic_engine_waits_for_its_whole_batch(job: Path) -> None:
    (job / "job.yaml").write_text("ajet:\n  enable_swarm_mode: false\n" + JOB.removeprefix("ajet:\n"))
    change = ("--set", "ajet.rollout.max_env_worker=256")
    answer = answer_of("what-if", "job.yaml", *EPISODES, *change, schema=SCHEMA, cwd=job)
    assert answer["after"]["engine"] == "classic"
    assert figure(answer, "concurrency") == (64, 128)
    assert figure(answer, "surplus") == (0, 0)


def test_a_model_spread_over_more_gpus_than_there_are_is_told(job: Path) -> None:
    gpus = "  trainer_common: {n_gpus_per_node: 8}\n"
    (job / "job.yaml").write_text(JOB.replace("num_repeat: 4", "num_repeat: 4, tensor_model_parallel_size: 16") + gpus)
    change = ("--set", "client_pool=64", "--llm-share", "0.5")
    done = run_script("what-if", "job.yaml", *EPISODES, *change, cwd=job)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "max_num_seqs is 0" in done.stderr
    assert "8 * 1 // 16" in done.stderr


def test_the_name_of_a_picture_is_refused_before_anything_is_asked(job: Path) -> None:
    done = run_script("live", "--url", "http://127.0.0.1:9", "--for", "5m", "--png", "gauge.bmp", cwd=job)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert ".png, .svg or .pdf" in done.stderr


def test_observed_durations_replace_the_assumed_distribution(job: Path) -> None:
    (job / "seconds.txt").write_text("# seconds\n30\n30.0\n\n30\n")
    change = ("--set", "ajet.rollout.max_env_worker=128")
    answer = answer_of("what-if", "job.yaml", "--durations", "seconds.txt", *change, schema=SCHEMA, cwd=job)
    assert figure(answer, "step_seconds") == (60, 30)
    assert "distribution" not in {item["name"] for item in answer["assumptions"]}


def test_a_goal_gets_the_smallest_change(job: Path) -> None:
    goal = ("--goal", "episodes-per-hour=2500")
    answer = answer_of("plan", "job.yaml", *EPISODES, *goal, schema=SCHEMA, cwd=job)
    assert answer["reached"]
    workers = next(item["to"] for item in answer["changes"] if item["key"] == "ajet.rollout.max_env_worker")
    assert workers % 4 == 0
    inputs = from_file(job / "job.yaml").over(
        Inputs({names.EPISODE_SECONDS: Input(60.0, "test"), names.EPISODE_P95: Input(150.0, "test")})
    )
    one_less = plan_report(inputs, workers - 4, "released")["changes"]
    less = predict(inputs.replace({item["key"]: item["to"] for item in one_less}, "test"), "released", steps=100)
    assert less.simulation is not None
    assert less.simulation.episodes_per_hour.mean < 2500 <= figure(answer, "episodes_per_hour")[1]


def test_a_goal_that_no_slots_reach_is_code_1_and_says_what_would_help(job: Path) -> None:
    done = run_script("plan", "job.yaml", *EPISODES, "--goal", "step-time=90s", "--json", cwd=job)
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert not answer["reached"]
    assert answer["gains"][0]["step_time_factor"] < 1


def test_a_goal_of_utilisation_takes_slots_away(job: Path) -> None:
    answer = answer_of("plan", "job.yaml", *EPISODES, "--goal", "utilisation=60%", schema=SCHEMA, cwd=job)
    assert answer["reached"]
    assert figure(answer, "concurrency")[1] < 64
    assert figure(answer, "utilisation")[1] >= 0.6


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("step-time=10min", "step-time", 600.0),
        ("step-time=1.5h", "step-time", 5400.0),
        ("step-time=45", "step-time", 45.0),
        ("utilisation=90%", "utilisation", 0.9),
        ("utilisation=0.9", "utilisation", 0.9),
        ("episodes-per-hour=5000", "episodes-per-hour", 5000.0),
    ],
)
def test_goals_are_read_with_their_units(text: str, name: str, value: float) -> None:
    assert parse_goal(text) == Goal(name, pytest.approx(value))


@pytest.mark.parametrize(
    "text", ["step-time", "step-time=soon", "step-time=5kg", "utilisation=190%", "luck=1", "step-time=0"]
)
def test_goals_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_goal(text)


def test_a_sweep_writes_a_table_and_a_picture_with_the_knee(job: Path) -> None:
    vary = ("--vary", "ajet.rollout.max_env_worker=16:256:16", "--vary", "update_seconds=0,60")
    answer = answer_of("sweep", "job.yaml", *EPISODES, *vary, "--out", "out", schema=SCHEMA, cwd=job)
    with (job / "out" / "sweep.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == answer["points"] == 32
    assert (job / "out" / "sweep.png").read_bytes().startswith(b"\x89PNG")
    by_update = {item["update_seconds"]: item["ajet.rollout.max_env_worker"] for item in answer["knees"]}
    assert set(by_update) == {0, 60}
    assert all(32 <= knee_at <= 144 for knee_at in by_update.values())


def test_the_knee_is_where_a_curve_bends() -> None:
    assert knee([1, 2, 3, 4, 5, 6], [1, 2, 3, 3, 3, 3]) == 3
    assert knee([1, 2, 3], [5, 5, 5]) is None
    assert knee([1, 2], [1, 2]) is None
    assert knee([1, 2, 3], [1, None, 3]) is None


@pytest.mark.parametrize(
    "vary", ["ajet.rollout.max_env_worker=8:4:1", "ajet.rollout.max_env_worker=1:9999:1", "nonsense=1,2"]
)
def test_a_grid_that_is_none_is_refused(job: Path, vary: str) -> None:
    done = run_script("sweep", "job.yaml", *EPISODES, "--vary", vary, "--out", "out", cwd=job)
    assert done.returncode == 2
    assert not (job / "out").exists()


def test_a_fleet_is_sized_by_what_a_machine_can_run(job: Path) -> None:
    (job / "other.yaml").write_text(JOB.replace("64", "32"))
    answer = answer_of(
        *("fleet", "--server", "a=job.yaml", "--server", "b=other.yaml", "--cores", "8", "--episode-cores", "0.25"),
        *("--memory-gib", "16", "--episode-memory-mib", "1024", "--throttle-ratio", "1.5"),
        *("--png", "fleet.png"),
        schema=SCHEMA,
        cwd=job,
    )
    assert (answer["episodes"], answer["per_machine"], answer["binds"]) == (96, 16, "memory")
    assert answer["machines"] == 6
    assert (job / "fleet.png").read_bytes().startswith(b"\x89PNG")
    first = answer["servers"][0]
    assert first["pool_per_machine"] == 11
    assert first["share"] == {"fair": 0.1667, "expected_batch_size": 6, "most": round(9 / 32, 4)}


def test_a_fleet_of_unknown_machines_is_not_invented(job: Path) -> None:
    done = run_script("fleet", "job.yaml", cwd=job)
    assert done.returncode == 2
    assert "how many episodes one machine can run is unknown" in done.stderr


def test_fit_tells_cache_and_training_with_assumptions(job: Path) -> None:
    answer = answer_of("fit", "job.yaml", "--gpu-memory-gib", "79.6", "--png", "fit.png", schema=SCHEMA, cwd=job)
    assert (job / "fit.png").read_bytes().startswith(b"\x89PNG")
    assert answer["fits"] == "fits"
    assert answer["model"]["known"] == "assumed"
    assert answer["kv_cache"]["sequences"] == int(answer["kv_cache"]["concurrency"] * 8)
    assert {item["name"] for item in answer["assumptions"]} == {"model shape", "engine_reserve_gib"}


def test_fit_reads_a_config_json_and_refuses_as_the_engine_would(job: Path) -> None:
    shape = {
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "vocab_size": 152064,
    }
    (job / "config.json").write_text(json.dumps(shape))
    args = ("fit", "job.yaml", "--model", ".", "--available-kv-gib", "0.5", "--json")
    done = run_script(*args, cwd=job)
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["verdicts"] == {"kv_cache": "will not fit", "training_step": "unknown"}
    assert "needs 0.96 GiB" in answer["kv_cache"]["refusal"]
    assert answer["kv_cache"]["longest"] == int(0.5 * 2**30 // (16 * 57344)) * 16


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "not an object"),
        ("{", "cannot be read"),
        ("{}", "num_attention_heads"),
        ('{"num_attention_heads": 0}', "num_attention_heads is 0"),
        ('{"num_attention_heads": 4, "hidden_size": 8, "num_hidden_layers": 0}', "num_hidden_layers is 0"),
        ('{"num_attention_heads": 4, "hidden_size": 8, "num_hidden_layers": 2, "sliding_window": "x"}', "'x'"),
    ],
)
def test_a_config_json_that_is_none_is_code_2(job: Path, content: str, said: str) -> None:
    (job / "config.json").write_text(content)
    done = run_script("fit", "job.yaml", "--model", "config.json", "--gpu-memory-gib", "80", cwd=job)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("ajet.rollout.gpu_memory_utilization=.nan", "gpu_memory_utilization is nan"),
        ("ajet.rollout.gpu_memory_utilization=most", "gpu_memory_utilization is 'most'"),
        ("ajet.lora.lora_rank=high", "lora_rank is 'high'"),
        ("ajet.model.path=5", "the shape of 5 is unknown"),
    ],
)
def test_a_setting_of_another_type_is_code_2(job: Path, setting: str, said: str) -> None:
    done = run_script("fit", "job.yaml", "--gpu-memory-gib", "80", "--set", setting, cwd=job)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert said in done.stderr


def test_an_unknown_model_is_code_2(job: Path) -> None:
    done = run_script("fit", "job.yaml", "--model", "nobody/knows-this", "--gpu-memory-gib", "80", cwd=job)
    assert done.returncode == 2
    assert "the shape of nobody/knows-this is unknown" in done.stderr


def test_the_kv_cache_binds_llm_calls(job: Path) -> None:
    memory = ("--available-kv-gib", "2", "--llm-share", "0.9")
    change = ("--set", "ajet.rollout.max_env_worker=128")
    answer = answer_of("what-if", "job.yaml", *EPISODES, *memory, *change, schema=SCHEMA, cwd=job)
    assert answer["before"]["bottleneck"] == "kv_cache"
    cache = next(item for item in answer["before"]["limits"] if item["name"] == "kv_cache")
    assert (cache["value"], cache["known"], cache["binds"]) == (16, "assumed", True)


def configured(workers: int, repeat: int, batch: int, gpus: int) -> Inputs:
    """Return the inputs of a job as a plan reads them."""
    values = {
        keys.MAX_ENV_WORKER: workers,
        keys.NUM_REPEAT: repeat,
        keys.TRAIN_BATCH_SIZE: batch,
        keys.N_GPUS_PER_NODE: gpus,
    }
    return Inputs({key: Input(value, "test") for key, value in values.items()})


def yaml_of(changes: dict[str, Any]) -> str:
    """Return a YAML file that sets dotted keys."""
    lines = ["ajet:", "  experiment_name: plan", "  model: {path: Qwen/Qwen2.5-7B-Instruct}"]
    sections: dict[str, list[str]] = {}
    for key, value in changes.items():
        _, section, name = key.split(".")
        sections.setdefault(section, []).append(f"{name}: {value}")
    lines += [f"  {section}: {{{', '.join(entries)}}}" for section, entries in sections.items()]
    return "\n".join(
        [
            *lines,
            "hydra:",
            "  searchpath: [file://ajet/default_config]",
            "defaults:",
            "  - ajet_default",
            "  - ajet_swarm_default",
            "  - _self_",
            "",
        ]
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 300),
    st.integers(1, 16),
    st.integers(1, 64),
    st.sampled_from([1, 2, 4, 8]),
    st.one_of(st.integers(1, 4000), st.sampled_from(["step-time=100", "episodes-per-hour=3000", "utilisation=50%"])),
    st.sampled_from(SWARM_ENGINES),
)
def test_no_plan_fails_the_lint(
    tmp_path: Path, workers: int, repeat: int, batch: int, gpus: int, wanted: int | str, engine: str
) -> None:
    batch = batch * gpus  # what is there now passes the lint; the plan must not break it
    settings_now = {
        keys.MAX_ENV_WORKER: workers,
        keys.NUM_REPEAT: repeat,
        keys.TRAIN_BATCH_SIZE: min(batch, 1000 // gpus * gpus),
        keys.N_GPUS_PER_NODE: gpus,
    }
    path = tmp_path / "plan.yaml"
    path.write_text(yaml_of(settings_now))
    inputs = from_file(path)
    if isinstance(wanted, int):
        report = plan_report(inputs, wanted, engine)
    else:
        known = Inputs({names.EPISODE_SECONDS: Input(60.0, "test")}).over(inputs)
        report = goal_report(known, parse_goal(wanted), engine, steps=3)
    changes = {item["key"]: item["to"] for item in report["changes"] if item["key"].startswith("ajet.")}
    path.write_text(yaml_of({**settings_now, **changes}))
    errors = [finding.message for finding in lint(read_source(path)) if finding.severity == "error"]
    assert errors == []


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 100),
    st.integers(1, 8),
    st.integers(1, 12),
    st.integers(1, 3),
    st.integers(1, 40),
    st.sampled_from(EVERY_ENGINE),
)
def test_raising_what_does_not_bind_never_changes_the_prediction(
    workers: int, repeat: int, batch: int, clients: int, pool: int, engine: str
) -> None:
    inputs = configured(workers, repeat, batch, gpus=1).replace(
        {
            keys.CLIENTS: clients,
            keys.CLIENT_POOL: pool,
            keys.ENVIRONMENT: 50,
            keys.TRACKER_THREADS: 60,
            keys.MAX_NUM_SEQS: 64,
            keys.TENSOR_PARALLEL: 1,
            keys.NNODES: 1,
            names.EPISODE_SECONDS: 10.0,
            names.LLM_SHARE: 0.5,
        },
        "test",
    )
    before = predict(inputs, engine, steps=4)
    for limit in before.limits:
        if limit.binds is not False or limit.raised_by == keys.TRAIN_BATCH_SIZE:
            continue  # more tasks in a batch are more work in a step, whatever binds
        key = {
            keys.CLIENT_POOLS: keys.CLIENT_POOL,
            keys.ENVIRONMENT: keys.ENVIRONMENT,
        }.get(limit.name, limit.raised_by)
        if any(other.binds and other.raised_by == limit.raised_by for other in before.limits):
            continue  # the same key also raises a limit that binds
        after = predict(inputs.replace({key: inputs.value(key) + 8}, "raised"), engine, steps=4)
        assert after.simulation is not None
        assert before.simulation is not None
        assert after.simulation.step == before.simulation.step
        assert after.bottleneck == before.bottleneck


def test_gains_name_the_limit_to_raise() -> None:
    inputs = configured(8, 4, 32, gpus=1).replace({names.EPISODE_SECONDS: 10.0, names.UPDATE: 5.0}, "test")
    found = gains(predict(inputs, "documented", steps=50), steps=50)
    assert found[0]["change"] == "twice the engine_slots (raised by: ajet.rollout.max_env_worker)"
    assert found[0]["step_time_factor"] < 0.8


def test_utilisation_that_is_bought_with_throughput_says_the_price(job: Path) -> None:
    answer = answer_of("plan", "job.yaml", *EPISODES, "--goal", "utilization=90%", schema=SCHEMA, cwd=job)
    before, after = figure(answer, "episodes_per_hour")
    assert after < before / 2
    assert f"episodes per hour x {after / before:.2f}" in answer["advice"][0]


def test_a_misspelled_key_changes_nothing_and_is_refused(job: Path) -> None:
    for command in (("cap",), ("plan", "--target", "8"), ("what-if", *EPISODES)):
        done = run_script(command[0], "job.yaml", *command[1:], "--set", "ajet.rollout.max_env_wroker=256", cwd=job)
        assert done.returncode == 2
        assert "did you mean ajet.rollout.max_env_worker?" in done.stderr


def test_mebibytes_are_not_taken_for_gibibytes(job: Path) -> None:
    done = run_script("fit", "job.yaml", "--gpu-memory-gib", "24564", cwd=job)
    assert done.returncode == 2
    assert "give 23.99" in done.stderr


def test_tensor_parallel_must_divide_the_heads(job: Path) -> None:
    parallel = ("--set", "ajet.rollout.tensor_model_parallel_size=3")
    done = run_script("fit", "job.yaml", "--model", "Qwen/Qwen2.5-14B", "--gpu-memory-gib", "80", *parallel, cwd=job)
    assert done.returncode == 2
    assert "40 attention heads" in done.stderr
    assert "tensor_model_parallel_size=2" in done.stderr


def test_weights_without_room_for_a_cache_get_no_length_of_zero(job: Path) -> None:
    done = run_script("fit", "job.yaml", "--model", "Qwen/Qwen2.5-14B", "--gpu-memory-gib", "24", "--json", cwd=job)
    assert done.returncode == 1
    advice = " ".join(json.loads(done.stdout)["advice"])
    assert "No length fits" in advice
    assert "max_model_len to 0" not in advice
    assert "LoRA" in advice
    lora = ("--set", "ajet.lora.lora_rank=32")
    done = run_script(
        "fit", "job.yaml", "--model", "Qwen/Qwen2.5-14B", "--gpu-memory-gib", "24", *lora, "--json", cwd=job
    )
    assert "or LoRA" not in " ".join(json.loads(done.stdout)["advice"])


def test_a_fit_of_unknown_gpus_is_code_3(job: Path) -> None:
    done = run_script("fit", "job.yaml", "--model", "Qwen/Qwen2.5-7B-Instruct", cwd=job)
    assert done.returncode == 3
    assert "Give --gpu-memory-gib" in done.stdout
