#!/usr/bin/env python3
"""Look at this machine before AgentJet's client installation: verdicts, each with its mend."""

import sys

sys.dont_write_bytecode = True
import _pack

_pack.enter(__file__)

from skillpack.provision.command import preflight_command
from skillpack.script import run

command = preflight_command("client")

if __name__ == "__main__":
    run(command)
