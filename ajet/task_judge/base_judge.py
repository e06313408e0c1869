"""What every judge offers."""

from __future__ import annotations

from typing import Any

from ajet.schema.task import WorkflowOutput, WorkflowTask


class BaseJudge:
    """Rewards an episode after its workflow; ``config`` is the whole configuration."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def compute_reward(self, workflow_task: WorkflowTask, workflow_output: WorkflowOutput) -> tuple[Any, bool]:
        """Return the reward and whether the episode succeeded."""
        raise NotImplementedError
