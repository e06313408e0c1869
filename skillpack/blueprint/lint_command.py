"""Checks of the launch commands: do they name what is there, and whom else would they hit?"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from skillpack.blueprint.lint import FAIL, OK, WARN, Check
from skillpack.blueprint.model import Blueprint
from skillpack.blueprint.paths import at_home, is_there
from skillpack.blueprint.shell import Simple, shell_words, simple_commands

AUTOKILL_WORDS = ("ray", "vllm", "python")
"""What ``--autokill`` looks for in the command lines of all processes."""
CONF_OPTIONS = ("--conf", "--config")
BACKBONES = ("verl", "trinity", "debug")
_AWAY = re.compile(r"(?:^|[;&|]\s*)(?:nohup|screen|tmux|setsid|disown)\b|(?<![&>|])&\s*$", re.MULTILINE)
_KILL = re.compile(r"\b(?:pkill|killall)\b|\bkill\b[^;&|]*\$\(|--autokill\b|(?:^|\s)--kill(?:[ =])")


def launch(blueprint: Blueprint) -> Iterator[Check]:
    """The commands name the YAML, scripts and programs that exist, and stay in the foreground."""
    named: list[str] = []
    words: list[str] = []
    yield from detached(blueprint)
    for command in _commands(blueprint):
        for simple in simple_commands(command, _folder(blueprint), blueprint.variables):
            yield from _simple(blueprint, simple)
            named += _confs(simple)
            words += simple.words
    yield from _names_the_yaml(blueprint, named, words)


def _folder(blueprint: Blueprint) -> Path:
    return blueprint.codebase_dir or Path.cwd()


def _commands(blueprint: Blueprint) -> list[str]:
    return [*blueprint.commands, *([blueprint.server_command] if blueprint.server_command else [])]


def detached(blueprint: Blueprint) -> Iterator[Check]:
    """Commands that put themselves into the background, where their end is not seen."""
    for command in _commands(blueprint):
        if _AWAY.search(command) and not re.search(r"(?:^|[;&|]\s*)wait\b", command, re.MULTILINE):
            yield Check(
                "background",
                WARN,
                f"the launch command detaches itself: {_short(command)}",
                "take nohup, setsid, screen, tmux and the last & out: run.py detaches the run and must see its end",
            )


def _simple(blueprint: Blueprint, simple: Simple) -> Iterator[Check]:
    program, words = simple.words[0], simple.words
    if "$" not in program and program not in shell_words()["builtins"] and not _found(blueprint, simple):
        yield Check(
            "program",
            FAIL if simple.settled else WARN,
            f"the launch command's program {program} is not found"
            + ("" if simple.settled else " here; the commands before it may bring it"),
            "is exp_venv_exe the right environment?",
        )
    script = next((word for word in words[1:3] if word.endswith(".py")), None)
    if script and "$" not in script and simple.folder and not is_there(simple.folder / at_home(script)):
        yield Check(
            "script",
            FAIL,
            f"the launch command's script {script} is not in {simple.folder}",
            "paths count from exp_codebase_dir",
        )
    is_ajet = Path(program).name == "ajet" or "ajet.launcher" in words
    if is_ajet and not _confs(simple) and not any(word.startswith("--swarm") for word in words):
        yield Check("conf", FAIL, "ajet without --conf exits with code 0 and trains nothing", "add --conf ./job.yaml")
    for option, value in pairwise(words):
        if is_ajet and option == "--backbone" and value not in BACKBONES:
            yield Check(
                "backbone",
                WARN,
                f"--backbone {value} is not known; AgentJet takes it for verl",
                f"one of {', '.join(BACKBONES)}",
            )
        if is_ajet and option in CONF_OPTIONS and "/" not in value and "$" not in value:
            yield Check(
                "conf", FAIL, f"{option} {value} has no folder part; AgentJet refuses such a path", f"write ./{value}"
            )


def _found(blueprint: Blueprint, simple: Simple) -> bool:
    program = simple.words[0]
    if "/" in program:
        return simple.folder is None or is_there(simple.folder / at_home(program))
    first = [str(blueprint.venv_exe.parent)] if blueprint.venv_exe else []
    return shutil.which(program, path=os.pathsep.join([*first, os.environ.get("PATH", os.defpath)])) is not None


def _confs(simple: Simple) -> list[str]:
    """Return the configurations that a command names, as absolute paths where its folder is known."""
    words = simple.words
    found = [value for option, value in pairwise(words) if option in CONF_OPTIONS]
    found += [word.split("=", 1)[1] for word in words if word.startswith(tuple(f"{name}=" for name in CONF_OPTIONS))]
    return [str(simple.folder / at_home(one)) if simple.folder else one for one in found]


def _names_the_yaml(blueprint: Blueprint, named: list[str], words: list[str]) -> Iterator[Check]:
    """The commands train with exp_yaml_path: by ``--conf``, or in another word."""
    yaml = blueprint.yaml_path
    if yaml is None or not blueprint.commands:
        return
    if any(os.path.realpath(one) == os.path.realpath(yaml) for one in named) or (not named and str(yaml) in words):
        yield Check("names-yaml", OK, "the launch command names exp_yaml_path")
    elif not named and blueprint.mode == "swarm":
        yield Check("names-yaml", OK, "the clients bring their configuration")
    elif not named:
        verdict = OK if yaml.name in "\n".join(blueprint.commands) else WARN
        yield Check(
            "names-yaml", verdict, f"the launch command names no configuration; exp_yaml_path is {yaml}", "add --conf"
        )
    elif any("$" in one for one in named):
        yield Check("names-yaml", OK, f"the launch command trains with {named[0]}, which is not known before the start")
    else:
        spaces = " (quote it: it has a space)" if re.search(r"\s", str(yaml)) else ""
        yield Check(
            "names-yaml",
            FAIL,
            f"the launch command trains with {named[0]}, exp_yaml_path is {yaml}",
            f'name the same file in both{spaces}; --conf "$exp_yaml_path" always does',
        )


def killers(blueprint: Blueprint) -> Iterator[Check]:
    """Commands that kill by name: who else would die of them."""
    hits = [match[0].strip() for command in _commands(blueprint) for match in _KILL.finditer(command)]
    if not hits:
        return
    victims = _victims()
    told = f"; now it would hit {len(victims)} processes: {', '.join(victims[:5])}" if victims else ""
    yield Check(
        "kills-by-name",
        WARN,
        f"the launch command kills by name ({hits[0]}){told}",
        "leave it out: run.py stop ends a run's own processes and nothing else",
    )


def _victims() -> list[str]:
    """Return the processes that a kill by AgentJet's words would reach from here, as ``pid user command``."""
    import pwd

    from skillpack.runs.process import PROC

    found = []
    for entry in PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) in (os.getpid(), os.getppid()):
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
            owner = entry.stat().st_uid
        except OSError:
            continue
        if any(word in command for word in AUTOKILL_WORDS) and os.getuid() in (0, owner):
            try:
                user = pwd.getpwuid(owner).pw_name
            except KeyError:
                user = str(owner)
            found.append(f"{entry.name} {user} {command[:40]}")
    return found


def _short(command: str) -> str:
    return command.splitlines()[-1][:80]
