"""Print a plan as a shell script: the whole, only what needs root, or the way back."""

from __future__ import annotations

import re
import shlex

from skillpack.provision.plan import HEREDOC, ROOT, Plan, Step

HEAD = """\
#!/usr/bin/env bash
# {title}
# In {workdir}. Made by plan.py; it can be stopped and started again: what is done is not done twice.
set -euo pipefail
exec </dev/null
export DEBIAN_FRONTEND=noninteractive GIT_TERMINAL_PROMPT=0 PIP_NO_INPUT=1
mkdir -p {quoted}
"""


def shell_script(plan: Plan, *, root_only: bool = False) -> str:
    """Return a bash script that does what ``apply`` does.

    ``root_only``: only the steps that use sudo, without the sudo, for somebody who is root; helper files
    of those steps come along.
    """
    steps = [step for step in plan.steps if step.root or not root_only or _feeds_root(step, plan)]
    parts = [HEAD.format(title=plan.title, workdir=plan.workdir, quoted=shlex.quote(plan.workdir))]
    if root_only:
        parts.append('[ "$(id -u)" = 0 ] || { echo "run this as root: sudo bash $0" >&2; exit 1; }\n')
    for step in steps:
        text = _step(step)
        parts.append(re.sub(re.escape(ROOT), "", text) if root_only else text)
    return "\n".join(parts)


def undo_script(plan: Plan) -> str:
    """Return a bash script that takes the steps back, the last first; what is not there is passed over."""
    parts = [HEAD.format(title=f"Undo: {plan.title}", workdir=plan.workdir, quoted=shlex.quote(plan.workdir))]
    for step in reversed(plan.steps):
        if step.undo != "true":
            parts.append(f"echo {shlex.quote(f'== undo: {step.title}')}\n{step.undo} || echo 'not undone'\n")
    return "\n".join(parts)


def _feeds_root(step: Step, plan: Plan) -> bool:
    return step.id == "helpers" and any(other.root and f"{plan.workdir}/" in other.run for other in plan.steps)


def _step(step: Step) -> str:
    name = re.sub(r"\W", "_", step.id)
    title, why = shlex.quote(f"== {step.title}"), "\n".join(f"# {line}" for line in step.why.splitlines())
    return (
        f"{why}\n"
        f"check_{name}() {{\n{_indented(step.check)}\n}}\n"
        f"run_{name}() {{\n{_indented(step.run)}\n}}\n"
        f"verify_{name}() {{\n{_indented(step.verify)}\n}}\n"
        f"echo {title}\n"
        f"if ( check_{name} ) >/dev/null 2>&1; then\n  echo 'already done'\n"
        f"else\n  ( run_{name} )\n  ( verify_{name} )\nfi\n"
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
