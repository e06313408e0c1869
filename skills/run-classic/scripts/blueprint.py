#!/usr/bin/env python3
"""Write, check and read experiment blueprints."""

import sys

sys.dont_write_bytecode = True
import _pack

_pack.enter(__file__)

from skillpack.blueprint.command import blueprint_group
from skillpack.script import run

if __name__ == "__main__":
    run(blueprint_group)
