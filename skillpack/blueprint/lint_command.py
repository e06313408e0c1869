"""Checks of the launch commands: do they name what is there, and whom else would they hit?"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from skillpack.blueprint.lint import FAIL, OK, WARN, Check
from skillpack.blueprint.model import Blueprint

AUTOKILL_WORDS = ("ray", "vllm", "python")
"""What ``--autokill`` looks for in the command lines of all processes."""
CONF_OPTIONS = ("--conf", "--config")
BACKBONES = ("verl", "trinity", "debug")
_BUILTINS = {
    "cd",
    "source",
    ".",
    "export",
    "set",
    "unset",
    "exec",
    "true",
    "ulimit",
    "eval",
    "if",
    "for",
    "while",
    "[",
    "echo",
}
_PREFIXES = {"nohup", "exec", "time", "env", "nice", "setsid"}
_AWAY = re.compile(r"(?:^|[;&|]\s*)(?:nohup|screen|tmux|setsid|disown)\b|&\s*$", re.MULTILINE)
_KILL = re.compile(r"\b(?:pkill|killall)\b|\bkill\b[^;&|]*\$\(|--autokill\b|(?:^|\s)--kill(?:[ =])")


def launch(blueprint: Blueprint) -> Iterator[Check]:
    """The commands name the YAML, scripts and programs that exist, and stay in the foreground."""
    named: list[str] = []
    yield from detached(blueprint)
    for command in _commands(blueprint):
        for words in _simple_commands(command):
            yield from _words(blueprint, words)
            named += _confs(words)
    yield from _names_the_yaml(blueprint, named)


def _commands(blueprint: Blueprint) -> list[str]:
    return [*blueprint.commands, *([blueprint.server_command] if blueprint.server_command else [])]


def detached(blueprint: Blueprint) -> Iterator[Check]:
    """Commands that put themselves into the background, where their end is not seen."""
    for command in _commands(blueprint):
        if _AWAY.search(command):
            yield Check(
                "background",
                WARN,
                f"the launch command detaches itself: {_short(command)}",
                "take nohup, setsid, screen, tmux and the last & out: run.py detaches the run and must see its end",
            )


def _simple_commands(command: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a piece of shell, without its variable assignments."""
    for line in command.replace("\\\n", " ").splitlines():
        for piece in re.split(r"&&|\|\||;|\||&", line):
            try:
                words = shlex.split(piece, comments=True)
            except ValueError:
                continue
            while words and (words[0] in _PREFIXES or re.match(r"[A-Za-z_]\w*=", words[0])):
                words.pop(0)
            if words:
                yield words


def _words(blueprint: Blueprint, words: list[str]) -> Iterator[Check]:
    program, folder = words[0], blueprint.codebase_dir or Path.cwd()
    if "$" not in program and program not in _BUILTINS and not _found(blueprint, program):
        yield Check(
            "program",
            FAIL,
            f"the launch command's program {program} is not found",
            "is exp_venv_exe the right environment?",
        )
    script = next((word for word in words[1:3] if word.endswith(".py")), None)
    if script and "$" not in script and not (folder / Path(script).expanduser()).exists():
        yield Check(
            "script",
            FAIL,
            f"the launch command's script {script} is not in {folder}",
            "paths count from exp_codebase_dir",
        )
    is_ajet = Path(program).name == "ajet" or "ajet.launcher" in words
    if is_ajet and not _confs(words) and not any(word.startswith("--swarm") for word in words):
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


def _found(blueprint: Blueprint, program: str) -> bool:
    folder = blueprint.codebase_dir or Path.cwd()
    if "/" in program:
        return (folder / Path(program).expanduser()).exists()
    first = [str(blueprint.venv_exe.parent)] if blueprint.venv_exe else []
    return shutil.which(program, path=os.pathsep.join([*first, os.environ.get("PATH", os.defpath)])) is not None


def _confs(words: list[str]) -> list[str]:
    found = [value for option, value in pairwise(words) if option in CONF_OPTIONS]
    return found + [
        word.split("=", 1)[1] for word in words if word.startswith(tuple(f"{name}=" for name in CONF_OPTIONS))
    ]


def _names_the_yaml(blueprint: Blueprint, named: list[str]) -> Iterator[Check]:
    yaml, folder = blueprint.yaml_path, blueprint.codebase_dir or Path.cwd()
    if yaml is None or not blueprint.commands:
        return
    text = "\n".join(blueprint.commands)
    if "exp_yaml_path" in text or str(yaml) in text or (blueprint.mode == "swarm" and not named):
        yield Check("names-yaml", OK, "the launch command uses exp_yaml_path")
    elif not named:
        verdict = OK if yaml.name in text else WARN
        yield Check(
            "names-yaml", verdict, f"the launch command names no configuration; exp_yaml_path is {yaml}", "add --conf"
        )
    elif any(os.path.realpath(folder / Path(one).expanduser()) == os.path.realpath(yaml) for one in named):
        yield Check("names-yaml", OK, "the launch command names exp_yaml_path")
    else:
        yield Check(
            "names-yaml",
            FAIL,
            f"the launch command trains with {named[0]}, exp_yaml_path is {yaml}",
            "name the same file in both",
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
