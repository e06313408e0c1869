"""Scripts, as far as they can be judged without running them."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator

from skillpack.validate.checks.commands import check_commands
from skillpack.validate.checks.prompts import question
from skillpack.validate.checks.skill import Skill
from skillpack.validate.problems import Problem, problem

_SHELL_ASKS = re.compile(
    r"^(?![ \t]*#)[^\n]{0,500}?\b"
    r"(read[ \t]{1,9}(?:-\w{1,9}[ \t]{1,9}){0,4}-\w{0,9}p|select[ \t]{1,9}\w{1,60}[ \t]{1,9}in)\b",
    re.MULTILINE,
)
_SHELL_ERROR = re.compile(r"line (\d+): (.*)")
SHELL_SECONDS = 3
MAX_PARSED = 1 << 19
"""Characters of a Python script up to which it is parsed: a longer one takes seconds, and is data."""

_NEWER = re.compile(r"f-string|^invalid syntax\b.*\b(?:type|except)\b")
"""What Python says of syntax that a later one than this may take (quotes and backslashes in f-strings: 3.12)."""


def check(skill: Skill) -> Iterator[Problem]:
    """Yield problems of the files in ``scripts/``, and of the commands that SKILL.md shows."""
    scripts = [file for file in skill.folder.files if file.startswith("scripts/")]
    for file in scripts:
        text = skill.text(file)
        if text.startswith("#!") and text.split("\n", 1)[0].endswith("\r"):
            yield problem("script-shebang", "its first line ends with CR", file=file)
        if file.endswith(".py"):
            yield from _check_python(file, text)
        elif file.endswith((".sh", ".bash")):
            yield from _check_shell(skill, file, text)
    if scripts:
        yield from check_commands(skill, scripts)
        if not any(file.startswith("evals/scripts.") for file in skill.folder.files):
            yield problem("evals-missing", f"{len(scripts)} files in scripts/")


def _check_python(file: str, text: str) -> Iterator[Problem]:
    if len(text) > MAX_PARSED:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.lstrip("\ufeff"), file)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = str(getattr(error, "msg", error))
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        yield problem(
            "script-syntax",
            f"{said} (Python {version})",
            line=getattr(error, "lineno", 1) or 1,
            file=file,
            severity="warn" if _NEWER.search(said) else "",
        )
        return
    asked = question(text, tree)
    if asked:
        yield problem("script-prompts", asked[0], line=asked[1], file=file)


def _check_shell(skill: Skill, file: str, text: str) -> Iterator[Problem]:
    match = _SHELL_ASKS.search(text)
    if match and not re.search(r"-t [012]\b|\[\[? *-t", text):
        yield problem("script-prompts", match[1], line=text.count("\n", 0, match.start(1)) + 1, file=file)
    shell = shutil.which("bash")
    if shell is None or not text:
        return
    try:  # -n reads the script and runs nothing
        done = subprocess.run(
            [shell, "-n", "-s"],
            input=text.encode("utf-8", "replace"),
            capture_output=True,
            timeout=SHELL_SECONDS,
            env={"PATH": os.defpath},
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return
    if done.returncode:
        error = _SHELL_ERROR.search(done.stderr.decode("utf-8", "replace"))
        line, detail = (int(error[1]), error[2]) if error else (1, "bash -n refuses it")
        yield problem("script-syntax", detail, line=line, file=file)
