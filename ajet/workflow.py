"""A classic workflow: the agent code that runs once per episode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from ajet.schema.task import WorkflowOutput, WorkflowTask

if TYPE_CHECKING:
    from ajet.tuner import AjetTuner

__all__ = ["Workflow", "WorkflowOutput", "WorkflowTask"]


class Workflow(BaseModel):
    """Subclass it and write ``execute``; an instance is made for each episode.

    ``trainable_targets`` lists the agent roles that are trained; None or an empty list means all.
    Attributes of any name may be set.
    """

    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=True)

    name: str = "default_workflow"
    trainable_targets: list[str] | None = None

    async def execute(self, workflow_task: WorkflowTask, tuner: AjetTuner) -> WorkflowOutput:
        """Run one episode; a reward of None leaves it to the judge."""
        raise NotImplementedError(f"{type(self).__name__} has no execute(workflow_task, tuner)")
