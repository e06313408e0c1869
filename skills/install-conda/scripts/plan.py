#!/usr/bin/env python3
"""Print or apply the commands of AgentJet's conda installation."""

import sys

sys.dont_write_bytecode = True
import _pack

_pack.enter(__file__)

from skillpack.provision.command import plan_command
from skillpack.script import run

command = plan_command("conda")

if __name__ == "__main__":
    run(command)
