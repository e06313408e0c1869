#!/usr/bin/env python3
"""Run many blueprints over a queue of slots, never two on the same GPUs."""

import sys

sys.dont_write_bytecode = True
import _pack

_pack.enter(__file__)

from skillpack.runs.sweep_command import sweep_group
from skillpack.script import run

if __name__ == "__main__":
    run(sweep_group)
