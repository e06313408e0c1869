"""A small skill whose one script does what the case tells it to."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpack.validate.evals import CaseResult, run_scripts

SCRIPT = '''
#!/usr/bin/env python3
"""Print the number that it is given."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

parser = argparse.ArgumentParser(
    description="Print the number that it is given.",
    epilog="example: number.py --n 3 --json. Exit codes: 0 done, 2 bad usage",
)
parser.add_argument("--n", type=int, default=1)
parser.add_argument("--json", action="store_true")
parser.add_argument("--do", default="", help="a line of Python to run before")
given = parser.parse_args()
exec(given.do)
print(json.dumps({"n": given.n}))
'''


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """Return a skill without cases."""
    folder = tmp_path / "numbers"
    (folder / "scripts").mkdir(parents=True)
    (folder / "evals").mkdir()
    (folder / "scripts" / "number.py").write_text(SCRIPT.lstrip())
    return folder


@pytest.fixture
def try_case(skill: Path) -> Callable[..., CaseResult]:
    """Return a function that runs one case, given its fields, and returns its result."""

    def run(do: str = "", *args: str, **fields: Any) -> CaseResult:
        words = ["--do", textwrap.dedent(do), *args] if do else list(args)
        case = {"name": "it", "script": "number.py", "args": words, **fields}
        (skill / "evals" / "scripts.yaml").write_text(yaml.safe_dump({"cases": [case]}))
        return run_scripts([skill])[skill][-1]

    return run
