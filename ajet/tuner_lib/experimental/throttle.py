"""May this client begin one more episode, or would it run ahead of the others?

The rule of released clients: a client works on at most ``ratio`` times the batch of tasks that no
other client works on.
"""

from __future__ import annotations

from collections import OrderedDict

from ajet.tuner_lib.experimental.interchange_utils import CurrentBatchRolloutPoolInformation, SwarmThrottlePolicy


class Throttle:
    """Decides on admission and remembers which tasks were admitted lately."""

    def __init__(self, client_uuid: str) -> None:
        self.client_uuid = client_uuid
        self._admitted: OrderedDict[str, None] = OrderedDict()

    def admits(self, policy: SwarmThrottlePolicy, pool: CurrentBatchRolloutPoolInformation) -> bool:
        """Tell whether an episode of ``policy.current_task_id`` may begin now, and remember it if so.

        Raises ValueError for an empty task id: then nothing could be told apart.
        """
        task_id = policy.current_task_id
        if not task_id:
            raise ValueError("throttle_policy.current_task_id is empty; it must name the task of the episode")
        if not self._fits(policy, pool):
            return False
        self._admitted[task_id] = None
        self._admitted.move_to_end(task_id)
        while len(self._admitted) > 3 * policy.expected_batch_size * policy.expected_num_repeat:
            self._admitted.popitem(last=False)
        return True

    def _fits(self, policy: SwarmThrottlePolicy, pool: CurrentBatchRolloutPoolInformation) -> bool:
        mine: set[str] = set()
        alien: set[str] = set()
        for task_id, clients in pool.completed_tasks_client_uuids.items():
            for client in clients:
                (mine if client == self.client_uuid else alien).add(task_id)
        running = (pool.running_episode_details or {}).values()
        for one in running:
            if one.get("optional_task_id"):
                (mine if one.get("client_uuid") == self.client_uuid else alien).add(one["optional_task_id"])
        full = [ids for ids in pool.completed_tasks_details.values() if len(ids) >= policy.expected_num_repeat]
        if not running and len(full) < policy.expected_batch_size:
            return True
        if policy.current_task_id in self._admitted or policy.current_task_id in mine | alien:
            return True
        return len(mine - alien) < policy.expected_batch_size * policy.ratio
