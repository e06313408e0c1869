"""What pre-commit runs: ``skills validate`` of the skills that a commit touches.

Called with any files, as pre-commit lists them; those that lie in no skill are passed over.
pre-commit does not list files that a commit deletes, and a deleted page or script may leave a
dead link behind: git is asked for those.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from skillpack.script import YES, Command, run
from skillpack.validate.command import validate_command


class Touched(Command):
    """``skills validate``, with any files in the place of skills."""

    def invoke(self, ctx: click.Context) -> Any:
        """Validate the skills around the files, if there are any."""
        ctx.params["paths"] = skills_around([*ctx.params["paths"], *deleted()])
        return super().invoke(ctx) if ctx.params["paths"] else YES


def skills_around(files: Iterable[Path]) -> tuple[Path, ...]:
    """Return the folders of the skills that the files lie in, the nearest to each, in order."""
    found = {next(filter(_is_skill, file.parents), None) for file in files}
    return tuple(sorted(skill for skill in found if skill is not None))


def _is_skill(folder: Path) -> bool:
    return folder.is_dir() and any(entry.name.lower() == "skill.md" for entry in folder.iterdir())


def deleted() -> list[Path]:
    """Return the files that the commit deletes, or all commits of the range that pre-commit is run for."""
    start, end = os.environ.get("PRE_COMMIT_FROM_REF"), os.environ.get("PRE_COMMIT_TO_REF")
    commits = [f"{start}...{end}"] if start and end else ["--cached"]
    listed = subprocess.run(
        ["git", "diff", "--name-only", "--diff-filter=D", "--no-renames", "--relative", "-z", *commits],
        capture_output=True,
        check=False,
    )
    return [Path(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name]


touched_command = Touched(
    "touched",
    params=validate_command.params,
    callback=validate_command.callback,
    help="Validate the skills that the given files lie in, and those that lose a file in the commit.",
    example="python -m skillpack.validate.touched --no-run skills/swarm-configuration/SKILL.md",
)

if __name__ == "__main__":
    run(touched_command)
