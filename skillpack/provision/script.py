"""Print a plan as a shell script: the whole, only what needs root, or the way back."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from skillpack.provision.apply import PLAN, STATE
from skillpack.provision.ledger import MADE, Made, line_of
from skillpack.provision.plan import HEREDOC, ROOT, Plan, Step

SHELL = """\
#!/usr/bin/env bash
# {title}
# In {workdir}. Made by plan.py; it can be stopped and started again: what is done is not done twice.
# shellcheck disable=SC2016 # text for a later shell, or for a tool's own format
set -euo pipefail
exec </dev/null
export DEBIAN_FRONTEND=noninteractive GIT_TERMINAL_PROMPT=0 PIP_NO_INPUT=1
"""
HEAD = """\
made={made}
begun() { grep -qxF -- "$1" "$made" 2>/dev/null; }
begin() { begun "$1" || printf '%s\\n' "$1" >> "$made"; }
"""
FOR_ROOT = """\
[ "$(id -u)" = 0 ] || { echo "run this as root: sudo bash $0" >&2; exit 1; }
[ -d {folder} ] || new=yes
mkdir -p {folder}
: >> {made}
if [ -n "${SUDO_UID:-}" ]; then
  chown -h "$SUDO_UID:${SUDO_GID:-}" {made}
  [ -z "${new:-}" ] || chown -h "$SUDO_UID:${SUDO_GID:-}" {folder}
fi
"""
"""The folder stays the user's, who goes on in it without root."""


def shell_script(plan: Plan, *, root_only: bool = False) -> str:
    """Return a bash script that does what ``apply`` does.

    ``root_only``: only the steps that use sudo, without the sudo, for somebody who is root; helper files
    of those steps come along.
    """
    folder = Path(plan.workdir)
    steps = [step for step in plan.steps if step.root or not root_only or _feeds_root(step, plan)]
    start = FOR_ROOT if root_only else "mkdir -p {folder}\n"
    return "\n".join(
        [
            SHELL.format(title=plan.title, workdir=plan.workdir),
            _filled(start, folder=folder, made=folder / MADE),
            _filled(HEAD, made=folder / MADE),
            *(_step(step, sudo=not root_only) for step in steps),
        ]
    )


def undo_script(title: str, folder: Path, made: Sequence[Made]) -> str:
    """Return a bash script that takes back what steps made in a folder, the last first.

    When all is undone, the folder's record of it is removed too; else it stays, to be run again.
    """
    parts = [SHELL.format(title=f"Undo: {title}", workdir=folder), "left=0"]
    for entry in reversed(made):
        parts.append(
            f"echo {shlex.quote(f'== undo: {entry.title}')}\n( {entry.undo} ) || {{ echo 'not undone'; left=1; }}"
        )
    records = " ".join(shlex.quote(str(folder / name)) for name in (MADE, STATE, PLAN))
    return "\n".join([*parts, f'[ "$left" = 1 ] || rm -f {records}', 'exit "$left"', ""])


def _filled(text: str, **paths: Path) -> str:
    """Fill in paths, quoted for the shell; the text's other braces are the shell's own."""
    for name, path in paths.items():
        text = text.replace(f"{{{name}}}", shlex.quote(str(path)))
    return text


def _feeds_root(step: Step, plan: Plan) -> bool:
    return step.id == "helpers" and any(other.root and f"{plan.workdir}/" in other.run for other in plan.steps)


def _step(step: Step, *, sudo: bool) -> str:
    name = re.sub(r"\W", "_", step.id)
    functions = {part: getattr(step, part) for part in ("check", "existed", "run", "verify") if getattr(step, part)}
    shown = {part: shell if sudo else shell.replace(ROOT, "") for part, shell in functions.items()}
    text = "".join(f"{part}_{name}() {{\n{_indented(shell)}\n}}\n" for part, shell in shown.items())
    why = "\n".join(f"# {line}" for line in step.why.splitlines())
    return (
        f"{why}\n{text}"
        f"echo {shlex.quote(f'== {step.title}')}\n"
        f"if ( check_{name} ) >/dev/null 2>&1; then\n  echo 'already done'\n"
        f"else\n{_beginning(step, name)}  ( run_{name} )\n  ( verify_{name} )\nfi\n"
    )


def _beginning(step: Step, name: str) -> str:
    """Return the lines that note what the step is going to make, as ``apply`` does."""
    if not step.undoes:
        return ""
    line = shlex.quote(line_of(step))
    if not step.existed:
        return f"  begin {line}\n"
    otherwise = f"  else\n    echo {shlex.quote(step.refusal)} >&2\n    exit 1\n" if step.refusal else ""
    return (
        f"  line={line}\n"
        f'  if begun "$line" || ! ( existed_{name} ) >/dev/null 2>&1; then\n    begin "$line"\n{otherwise}  fi\n'
    )


def _indented(text: str) -> str:
    """Indent shell text by two blanks, but not what stands in here-documents."""
    lines, inside = [], False
    for line in text.splitlines():
        lines.append(line if inside or not line else f"  {line}")
        if line == HEREDOC:
            lines[-1], inside = line, False
        elif line.endswith(f"<<'{HEREDOC}'"):
            inside = True
    return "\n".join(lines)
