"""When a step has enough, and what of it is trained on."""

from __future__ import annotations

import pytest

from ajet.task_rollout.collection import Collection, is_dummy
from ajet.tuner_lib.experimental.episode import CompletedEpisode
from ajet.tuner_lib.experimental.swarm_overwatch_utils import ActiveSwarmClient


def collect(method: str, rewards: dict[str, list[float]], **more: int) -> Collection:
    collection = Collection(method, train_batch_size=2, num_repeat=2, **more)
    for task, values in rewards.items():
        for number, reward in enumerate(values):
            collection.add(CompletedEpisode(f"{task}-{number}", task, "c", reward))
    return collection


def client(name: str, agreed: bool) -> ActiveSwarmClient:
    return ActiveSwarmClient(client_uuid=name, last_activity_at=0, allowed_sync_weight=agreed)


@pytest.mark.parametrize(
    ("method", "rewards", "finished"),
    [
        ("rollout_until_finish_enough_episodes", {"a": [1, 1, 1]}, False),
        ("rollout_until_finish_enough_episodes", {"a": [1, 1, 1, 1]}, True),
        ("rollout_until_finish_enough_tasks", {"a": [1, 1, 1, 1]}, False),
        ("rollout_until_finish_enough_tasks", {"a": [1, 1], "b": [1]}, False),
        ("rollout_until_finish_enough_tasks", {"a": [1, 1], "b": [1, 1]}, True),
        ("rollout_until_finish_enough_non_dummy_tasks", {"a": [1, 0], "b": [1, 1]}, False),
        ("rollout_until_finish_enough_non_dummy_tasks", {"a": [1, 0], "b": [1, 1], "c": [0, 1]}, True),
        ("no_such_method", {"a": [1, 1], "b": [1, 1]}, True),
    ],
)
def test_a_step_stops_by_its_method(method, rewards, finished):
    assert collect(method, rewards).finished([]) is finished


def test_any_agreement_or_all_agreements_stop_a_step():
    any_client = collect("rollout_until_any_client_agree_sync_weight", {})
    all_clients = collect("rollout_until_all_clients_agree_sync_weight", {})
    mixed = [client("a", True), client("b", False)]
    assert any_client.finished(mixed)
    assert not all_clients.finished(mixed)
    assert all_clients.finished([client("a", True)])
    assert not all_clients.finished([])


def test_only_the_non_dummy_method_drops_groups_without_signal():
    rewards = {"a": [1.0, 0.0], "b": [1.0, 1.0], "c": [0.5]}
    assert len(collect("rollout_until_finish_enough_tasks", rewards).batch()) == 5
    assert [one.task_id for one in collect("rollout_until_finish_enough_non_dummy_tasks", rewards).batch()] == [
        "a",
        "a",
    ]
    assert is_dummy([1.0])
    assert is_dummy([1.0, 1.0])
    assert not is_dummy([1.0, 0.9])


def test_a_full_cache_makes_room_by_groups_without_signal_instead_of_losing_everything():
    rewards = {"a": [1.0, 0.0], "b": [1.0, 1.0], "c": [1.0, 1.0]}
    collection = collect("rollout_until_finish_enough_non_dummy_tasks", rewards, max_cached_episodes=5)
    assert "a" in collection.tasks
    assert collection.discarded == 4
    assert not collection.finished([])
    assert collect("rollout_until_finish_enough_episodes", {"a": [1.0] * 3}, max_cached_episodes=2).finished([])
