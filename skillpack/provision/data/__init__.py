"""Tables of this room: probes, checks, signatures of failures, mirrors, stacks, cards."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


@cache
def load(name: str) -> Any:
    """Return the parsed table ``name`` (a YAML file of this folder). Callers must not change it."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), Loader=loader)
