#!/usr/bin/env python3
"""Draw the metric curves of runs and console logs."""

import sys

sys.dont_write_bytecode = True
import _pack

_pack.enter(__file__)

from skillpack.runs.curves import curves_command
from skillpack.script import run

if __name__ == "__main__":
    run(curves_command)
