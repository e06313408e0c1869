"""Where the pack's own parts lie, in a checkout and in an installed wheel."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
SCHEMAS = PACKAGE / "schemas"


def python_module(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of the pack, whatever the working directory and PYTHONPATH hold.

    A checkout of the real AgentJet is a likely working directory, and its ``ajet`` must not be taken for ours.
    """
    return [sys.executable, "-I", "-m", module, *arguments]


def skills_dir() -> Path:
    """Return the folder that holds the pack's seven skills."""
    checkout = PACKAGE.parent / "skills"
    return checkout if checkout.is_dir() else PACKAGE / "_skills"
