"""capacity.py live against a server that speaks the released wire format."""

from __future__ import annotations

from pathlib import Path

import pytest

from .helpers import ReleasedServer, answer_of, limit, run_script

POOL = {
    "sample_collection_method": "rollout_until_finish_enough_tasks",
    "completed_episode_target": 128,
    "completed_task_target": 16,
    "task_expected_num_repeat": 8,
}


def test_a_released_server_does_not_tell_the_cap(released_server: ReleasedServer) -> None:
    released_server.pool = dict(POOL)
    released_server.run_episodes(running=20, offered=12)
    answer = answer_of("live", "--url", released_server.url)
    assert (answer["running"], answer["waiting"], answer["cap"]) == (20, 12, None)
    assert (limit(answer, "open_slots")["value"], limit(answer, "open_slots")["known"]) == (32, "measured")
    assert answer["idle_slots"] == 12
    assert limit(answer, "batch")["value"] == 128
    assert answer["bottleneck"]["name"] == "client_pools"
    assert "--max-env-worker" in answer["advice"][0]


def test_flags_fill_in_what_the_server_does_not_tell(released_server: ReleasedServer) -> None:
    released_server.pool = dict(POOL)
    released_server.run_episodes(running=128, offered=0)
    answer = answer_of("live", "--url", released_server.url + "/", "--max-env-worker", "512")
    assert (answer["cap"], answer["idle_slots"]) == (512, 0)
    assert answer["bottleneck"]["name"] == "batch"


def test_our_own_engine_tells_its_capacity(released_server: ReleasedServer) -> None:
    released_server.pool = {
        **POOL,
        "capacity": {"max_env_worker": 6, "num_repeat": 4, "train_batch_size": 1, "cap": 8, "slots": "documented"},
        "task_expected_num_repeat": 4,
        "completed_task_target": 1,
    }
    released_server.run_episodes(running=8, offered=0)
    answer = answer_of("live", "--url", released_server.url)
    assert (answer["cap"], answer["idle_slots"], answer["divisible"]) == (8, 0, False)
    assert answer["bottleneck"]["name"] == "engine_slots"


def test_stale_episodes_and_clients_are_named(released_server: ReleasedServer) -> None:
    released_server.pool = {
        **POOL,
        "swarm_client_instruction": {
            "active_clients": [{"client_uuid": "idle", "last_activity_at": 1.0, "allowed_sync_weight": True}]
        },
    }
    released_server.run_episodes(running=3, offered=0, client="quick")
    released_server.run_episodes(running=1, offered=0, client="stuck", idle=4.5)
    answer = answer_of("live", "--url", released_server.url)
    assert [item["client_uuid"] for item in answer["stale"]] == ["stuck"]
    assert answer["stale"][0]["recycled_in_seconds"] == 0.5
    assert [(item["client_uuid"], item["running"], item["active"]) for item in answer["clients"]] == [
        ("quick", 3, False),
        ("stuck", 1, False),
        ("idle", 0, True),
    ]


def test_outside_rolling_the_status_is_what_binds(released_server: ReleasedServer) -> None:
    released_server.status["engine_status"] = "ENGINE.WEIGHT_SYNCING"
    answer = answer_of("live", "--url", released_server.url)
    assert answer["bottleneck"]["name"] == "engine_status"
    assert answer["cap"] is None


def test_api_keys_are_never_shown(released_server: ReleasedServer) -> None:
    released_server.run_episodes(running=2, offered=2)
    assert "/get_episode_buffer" not in released_server.requests
    done = run_script("live", "--url", released_server.url, "--json")
    assert "/get_episode_buffer" in released_server.requests
    assert "secret" not in done.stdout + done.stderr


def test_an_empty_pool_answer_is_asked_again(released_server: ReleasedServer) -> None:
    released_server.pool = dict(POOL, engine_status=None)
    assert answer_of("live", "--url", released_server.url)["running"] == 0
    assert released_server.requests.count("/get_current_batch_rollout_pool_information") == 3


def test_no_server_is_code_3() -> None:
    done = run_script("live", "--url", "http://127.0.0.1:9")
    assert done.returncode == 3
    assert "no answer from" in done.stderr


def test_an_address_that_is_none_is_code_2() -> None:
    assert run_script("live", "--url", "localhost:10086").returncode == 2


@pytest.mark.parametrize(
    "pool",
    [
        {"running_episode_details": ["e1"]},
        {"running_episode_details": {"e1": "claimed"}},
        {"swarm_client_instruction": [1]},
        {"capacity": 5},
    ],
)
def test_a_server_of_another_kind_is_code_3(released_server: ReleasedServer, pool: dict) -> None:
    released_server.pool = pool
    done = run_script("live", "--url", released_server.url)
    assert done.returncode == 3
    assert "answers in another form" in done.stderr


def test_a_file_that_the_engine_does_not_run_with_is_told(released_server: ReleasedServer, tmp_path: Path) -> None:
    capacity = {"max_env_worker": 20, "num_repeat": 4, "train_batch_size": 16, "cap": 20, "slots": "documented"}
    released_server.pool = {**POOL, "capacity": capacity, "task_expected_num_repeat": 4}
    released_server.run_episodes(running=20, offered=0)
    (tmp_path / "job.yaml").write_text("ajet: {rollout: {max_env_worker: 512, num_repeat: 4}}\n")
    answer = answer_of("live", "--url", released_server.url, "job.yaml", cwd=tmp_path)
    assert answer["advice"][0].startswith("ajet.rollout.max_env_worker is 512 (YAML file, job.yaml:1)")
    assert "the running engine has 20" in answer["advice"][0]


def test_slots_are_not_to_be_raised_while_clients_leave_them_empty(released_server: ReleasedServer) -> None:
    released_server.pool = dict(POOL)
    released_server.run_episodes(running=20, offered=12)
    answer = answer_of("live", "--url", released_server.url, "--max-env-worker", "32")
    assert answer["bottleneck"]["name"] == "client_pools"
    assert not [sentence for sentence in answer["advice"] if "max_env_worker binds" in sentence]
