"""Rehearsals of client scripts, in scratch folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from skillpack.pack import SCHEMAS
from tests.engine.conftest import RunningEngine, start_engine

__all__ = ["start_engine"]

SKILLS = str(Path(sys.executable).with_name("skills"))
HERE = Path(__file__).parent
SCHEMA = json.loads((SCHEMAS / "rehearse.schema.json").read_text())


@dataclass
class Rehearsal:
    """What ``skills rehearse`` answered."""

    code: int
    output: str
    errors: str
    folder: Path

    @property
    def report(self) -> dict[str, Any]:
        """The report, valid by its schema."""
        report = json.loads(self.output)
        if "written_to" in report:
            report = json.loads(Path(report["written_to"]).read_text())
        jsonschema.validate(report, SCHEMA)
        return report

    @property
    def problems(self) -> dict[str, str]:
        """The names of the problems with their severities, in the order of the report."""
        return {one["name"]: one["severity"] for one in self.report["problems"]}


@pytest.fixture
def rehearse(tmp_path: Path) -> Callable[..., Rehearsal]:
    """Run ``skills rehearse``; a client is a path in this folder, or source text."""

    def run(client: str, *options: str, json_: bool = True, **environment: str) -> Rehearsal:
        path = HERE / client
        if "\n" in client:
            path = tmp_path / "client.py"
            path.write_text(client)
        command = [SKILLS, "rehearse", str(path), "--out", str(tmp_path / "out")]
        limits = ["--steps", "2", "--patience", "4", "--timeout", "60"]
        chosen = [*command, *limits, *(["--json"] if json_ else []), *options]
        done = subprocess.run(
            chosen, cwd=tmp_path, capture_output=True, text=True, timeout=110, env={**os.environ, **environment}
        )
        return Rehearsal(done.returncode, done.stdout, done.stderr, tmp_path)

    return run


@pytest.fixture
def foreign_engine(start_engine: Callable[..., RunningEngine]) -> str:
    """The address of a swarm server that is not the rehearsal's."""
    return start_engine().url
