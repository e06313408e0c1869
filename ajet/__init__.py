"""The embedded reference AgentJet: same configuration, same protocol, no GPUs. Names are imported on use."""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "AgentJetJob": "ajet.copilot.job",
    "AjetTuner": "ajet.tuner",
    "Workflow": "ajet.workflow",
    "WorkflowOutput": "ajet.schema.task",
    "WorkflowTask": "ajet.schema.task",
    "bp": "ajet.utils.vsdb",
}

__all__ = ["AgentJetJob", "AjetTuner", "Workflow", "WorkflowOutput", "WorkflowTask", "__version__", "bp"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ajet' has no attribute {name!r}; it offers {', '.join(_HOMES)}")
    try:
        return getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"ajet.{name} needs the module {error.name}, which is not installed", name=error.name
        ) from error


def __dir__() -> list[str]:
    return sorted(__all__)
