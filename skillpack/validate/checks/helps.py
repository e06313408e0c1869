"""Commands of SKILL.md against what the scripts' ``--help`` says: for scripts that must be run to know it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from skillpack.validate.checks.commands import Call, calls, tells_its_options
from skillpack.validate.checks.skill import Skill
from skillpack.validate.discover import find_skills
from skillpack.validate.problems import Problem, problem
from skillpack.validate.source import read_skill

SECONDS = 30
_OPTION = re.compile(r"(--[A-Za-z][\w-]*)")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9-]*")


def check_helps(folder: Path, python: Path | None, jobs: int) -> list[Problem]:
    """Return the options that SKILL.md's shell blocks give to Python scripts and their ``--help`` does not name.

    Each script is started with ``--help`` in a scratch home and working directory, once for each
    subcommand that is used.
    """
    skill = next((Skill(read_skill(found)) for found in find_skills(folder) if found.path == folder), None)
    if skill is None:
        return []
    scripts = [file for file in skill.folder.files if file.startswith("scripts/") and file.endswith(".py")]
    wanted = [call for call in calls(skill, scripts) if not tells_its_options(call.script, skill.text(call.script))]
    keys = list(dict.fromkeys((call.script, _subcommand(call)) for call in wanted))
    with tempfile.TemporaryDirectory(prefix="skills-help-") as scratch, ThreadPoolExecutor(max(1, jobs)) as pool:
        told = pool.map(lambda key: _help(folder / key[0], key[1], python, scratch), keys)
        helps = dict(zip(keys, told, strict=True))
    return list(_problems(skill, wanted, helps))


def _subcommand(call: Call) -> str:
    return call.words[0] if call.words and _SUBCOMMAND.fullmatch(call.words[0]) else ""


def _help(script: Path, subcommand: str, python: Path | None, scratch: str) -> str | None:
    """Return the help of a script's subcommand, of the script if it has no such, or None if it has none at all."""
    env = {
        "HOME": scratch,
        "PATH": os.environ.get("PATH", os.defpath),
        "COLUMNS": "200",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for words in ([subcommand], []) if subcommand else ([],):
        try:
            done = subprocess.run(
                [str(python or sys.executable), str(script), *words, "--help"],
                cwd=scratch,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except (subprocess.TimeoutExpired, OSError):
            return None
        if done.returncode == 0:
            return done.stdout
    return None


def _problems(skill: Skill, wanted: list[Call], helps: dict[tuple[str, str], str | None]) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for call in wanted:
        help_text = helps[call.script, _subcommand(call)]
        known = set(_OPTION.findall(help_text)) if help_text else None
        for word in call.words:
            option = _OPTION.match(word)
            if known is None or option is None or option[1] in known or (call.script, option[1]) in seen:
                continue
            seen.add((call.script, option[1]))
            line = skill.body_line + call.line + 1
            yield problem(
                "command-unknown", f"{call.script} {_subcommand(call)} {option[1]}".replace("  ", " "), line=line
            )
