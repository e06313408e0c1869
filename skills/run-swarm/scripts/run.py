#!/usr/bin/env python3
"""Start, watch, end and collect the run of an AgentJet experiment."""

import sys

sys.dont_write_bytecode = True
import _pack

_pack.enter(__file__)

from skillpack.runs.command import run_group
from skillpack.script import run

if __name__ == "__main__":
    run(run_group)
