"""The page ``docs/skills.md``: what the pack's skills say of themselves.

``python -m skillpack.install.catalogue`` writes it; with ``--check`` it only tells whether it is
what it should be.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from skillpack import __version__
from skillpack.files import write_atomically
from skillpack.install.card import read_cards
from skillpack.pack import PACKAGE, skills_dir
from skillpack.rendering import render
from skillpack.script import NO, YES, Command, run

PAGE = PACKAGE.parent / "docs" / "skills.md"


def page(folder: Path) -> str:
    """Return the catalogue of a folder's skills as Markdown. Raises jinja2.UndefinedError if metadata is missing."""
    return render("skills.md.j2", skills=read_cards(folder), version=__version__)


@click.command(
    "catalogue",
    cls=Command,
    example="python -m skillpack.install.catalogue --check",
    exit_codes={NO: "with --check: the page is not what the skills say"},
)
@click.option("--check", is_flag=True, help="Write nothing; print what has drifted.")
def catalogue_command(check: bool) -> int:
    """Write docs/skills.md from the skills."""
    wanted = page(skills_dir())
    if not check:
        write_atomically(PAGE, wanted)
        return YES
    there = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    drift = difflib.unified_diff(there.splitlines(), wanted.splitlines(), str(PAGE), "the skills", lineterm="", n=1)
    lines = list(drift)
    click.echo("\n".join(lines), nl=bool(lines))
    return NO if lines else YES


if __name__ == "__main__":
    run(catalogue_command)
