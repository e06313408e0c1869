#!/usr/bin/env python3
"""Prove AgentJet's client installation."""

import sys

sys.dont_write_bytecode = True
import _pack

_pack.enter(__file__)

from skillpack.provision.command import verify_command
from skillpack.script import run

command = verify_command("client")

if __name__ == "__main__":
    run(command)
