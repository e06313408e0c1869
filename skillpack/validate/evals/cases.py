"""The cases of a skill: those its ``evals/scripts.yaml`` lists, and two that every script gets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillpack.pack import SCHEMAS
from skillpack.validate.evals import document
from skillpack.validate.evals.document import EvalsError

FILE = Path("evals", "scripts.yaml")
UNKNOWN_FLAG = "--no-such-flag"
SUFFIXES = (".py", ".sh")
HELP_TIMEOUT = 30.0


@dataclass(frozen=True)
class ProgramFixture:
    """A program of the skill that runs beside a case.

    ``ready`` is a regular expression; its first group, matched on the program's stdout, is the
    value of ``{fixture_url}``.
    """

    run: tuple[str, ...]
    ready: str


@dataclass(frozen=True)
class Case:
    """One run of one script, and what is expected of it.

    ``file`` and ``line`` say where in the skill it is written down. ``commands`` are (script,
    *arguments): those run before, then the one that is judged. ``checks`` names further judgements
    (see ``judge.CHECKS``). ``timeout`` is in seconds, per command.
    """

    skill: Path
    name: str
    commands: tuple[tuple[str, ...], ...]
    file: str
    line: int = 1
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    stubs: tuple[Path, ...] = ()
    engine: bool = False
    program: ProgramFixture | None = None
    exit_code: int = 0
    schema: Path | None = None
    expect: tuple[str, ...] = ()
    reject: tuple[str, ...] = ()
    background: bool = False
    timeout: float = 30.0
    checks: tuple[str, ...] = ()


def scripts(skill: Path) -> list[Path]:
    """Return the scripts of a skill: ``.py`` and ``.sh`` in ``scripts/``, helpers (``_x.py``) left out."""
    folder = skill / "scripts"
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in SUFFIXES and not path.name.startswith("_") and path.is_file()
    )


def implicit_cases(skill: Path) -> list[Case]:
    """Return two cases per script: its help, and an unknown flag."""
    cases = []
    for script in scripts(skill):
        name, file = script.name, f"scripts/{script.name}"
        cases.append(Case(skill, f"{name} help", ((name, "--help"),), file, timeout=HELP_TIMEOUT, checks=("help",)))
        cases.append(
            Case(
                skill,
                f"{name} unknown flag",
                ((name, UNKNOWN_FLAG),),
                file,
                exit_code=2,
                timeout=HELP_TIMEOUT,
                checks=("silent", "message"),
            )
        )
    return cases


def explicit_cases(skill: Path) -> list[Case]:
    """Return the cases of ``evals/scripts.yaml``, none if there is no such file. Raises EvalsError."""
    path = skill / FILE
    if not path.exists():
        return []
    written = document.read(path)
    cases: dict[str, Case] = {}
    for number, entry in enumerate(written.value["cases"]):
        line = written.line(["cases", number])
        try:
            case = _case(skill, entry, line)
        except EvalsError as error:
            raise EvalsError(str(error), line) from None
        if case.name in cases:
            raise EvalsError(f"two cases are called {case.name!r}; expected a name of its own for each", line)
        cases[case.name] = case
    return list(cases.values())


def _case(skill: Path, entry: dict[str, Any], line: int) -> Case:
    name = entry["name"]
    fixture = entry.get("fixture")
    program = None
    if isinstance(fixture, dict):
        program = ProgramFixture(
            (str(_inside(skill, name, fixture["run"][0])), *_texts(fixture["run"][1:])), fixture["ready"]
        )
        try:
            groups = re.compile(program.ready).groups
        except re.error as error:
            raise EvalsError(
                f"case {name!r}: fixture.ready {program.ready!r} is no regular expression: {error}"
            ) from None
        if groups < 1:
            raise EvalsError(f"case {name!r}: fixture.ready {program.ready!r} has no group to take the URL from")
    commands = [*entry.get("before", []), [entry["script"], *entry.get("args", [])]]
    for script, *_ in commands:
        if not _inside(skill, name, f"scripts/{script}").is_file():
            raise EvalsError(f"case {name!r}: 'scripts/{script}' is no file")
    return Case(
        skill=skill,
        name=name,
        commands=tuple(_texts(command) for command in commands),
        file=FILE.as_posix(),
        line=line,
        env={key: str(value) for key, value in entry.get("env", {}).items()},
        stdin=entry.get("stdin"),
        files=entry.get("files", {}),
        stubs=tuple(_inside(skill, name, stub) for stub in entry.get("stubs", [])),
        engine=fixture == "engine",
        program=program,
        exit_code=entry.get("exit_code", 0),
        schema=_schema(skill, name, entry.get("schema")),
        expect=_texts(entry.get("expect", [])),
        reject=_texts(entry.get("reject", [])),
        background=entry.get("background", False),
        timeout=float(entry.get("timeout", 30)),
    )


def _texts(values: list[Any]) -> tuple[str, ...]:
    return tuple(str(value) for value in values)


def _inside(skill: Path, case: str, relative: str) -> Path:
    """Return the skill's file or folder of that relative path. Raises EvalsError."""
    path = skill / relative
    if not path.exists() or not path.resolve().is_relative_to(skill.resolve()):
        raise EvalsError(f"case {case!r}: {relative!r} does not exist in the skill")
    return path


def _schema(skill: Path, case: str, name: str | None) -> Path | None:
    if name is None:
        return None
    for folder in (skill, SCHEMAS):
        path = folder / name
        if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            return path
    raise EvalsError(f"case {case!r}: there is no schema {name!r}, neither in the skill nor among the pack's schemas")
