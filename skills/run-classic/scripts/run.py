#!/usr/bin/env python3
"""Start, watch, end and collect the run of an AgentJet experiment."""

import sys

sys.dont_write_bytecode = True
import _pack  # noqa: E402

_pack.enter(__file__)

from skillpack.runs.command import run_group  # noqa: E402
from skillpack.script import run  # noqa: E402

if __name__ == "__main__":
    run(run_group)
