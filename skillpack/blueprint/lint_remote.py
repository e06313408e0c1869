"""Checks of a blueprint whose commands shall run on another machine."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator

from skillpack.blueprint.lint import FAIL, OK, Check
from skillpack.blueprint.model import Blueprint

SECONDS = 60


def over_there(blueprint: Blueprint, host: str) -> Iterator[Check]:
    """The host answers without a password and has the codebase, the interpreter, the YAML and ``setsid``."""
    from skillpack.runs.backends import SSH_OPTIONS

    wanted = [
        ("codebase", "-d", blueprint.codebase_dir, "the directory exp_codebase_dir"),
        ("venv", "-x", blueprint.venv_exe, "the executable exp_venv_exe"),
        ("yaml", "-f", blueprint.yaml_path, "the file exp_yaml_path"),
    ]
    tests = [f"test {flag} {shlex.quote(str(path))} && echo {id_}" for id_, flag, path, _ in wanted if path]
    line = "; ".join([*tests, "command -v setsid >/dev/null && echo setsid", "echo answered"])
    try:
        done = subprocess.run(
            ["ssh", *SSH_OPTIONS, host, line], capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
        )
        told, trouble = done.stdout.split(), done.stderr.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        told, trouble = [], str(error)
    if "answered" not in told:
        yield Check(
            "host", FAIL, f"{host} does not answer by ssh: {trouble[-200:]}", f"ssh {host} must work without a password"
        )
        return
    yield Check("host", OK, f"{host} answers; versions, configuration, GPUs and disk over there are not looked at")
    for id_, _, path, what in wanted:
        if path and id_ in told:
            yield Check(id_, OK, f"{path} is on {host}")
        elif path:
            yield Check(id_, FAIL, f"{what} {path} is not on {host}", "paths are those of that machine")
    if "setsid" not in told:
        yield Check("setsid", FAIL, f"{host} has no setsid", "install util-linux there")
