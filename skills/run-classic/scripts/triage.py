#!/usr/bin/env python3
"""Find the root cause in a training log, or say that it is healthy."""

import sys

sys.dont_write_bytecode = True
import _pack

_pack.enter(__file__)

from skillpack.script import run
from skillpack.triage.command import triage_command

if __name__ == "__main__":
    run(triage_command)
