"""Where the pack's own parts lie, in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
SCHEMAS = PACKAGE / "schemas"


def skills_dir() -> Path:
    """Return the folder that holds the pack's seven skills."""
    checkout = PACKAGE.parent / "skills"
    return checkout if checkout.is_dir() else PACKAGE / "_skills"
