"""``skills prompt``: a text to paste into an assistant, which then installs skills step by step."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from skillpack.install import sources, tree
from skillpack.install.origin import pack_origin
from skillpack.pack import PACKAGE, skills_dir
from skillpack.rendering import render
from skillpack.script import Command

LANGUAGES = ("en", "es", "zh")
HOME = "~/.local/share/agentjet-skills"
"""Where the prompt has the pack's own environment made."""
CLONE = "~/agentjet-skills"
"""Where it has the pack put."""


@click.command("prompt", cls=Command, example="skills prompt swarm-configuration --lang es")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--lang", type=click.Choice(LANGUAGES), default="en", show_default=True, help="The language of the text.")
@click.option("--source", help="Git URL or folder of the pack.  [default: where this pack was cloned from]")
def prompt_command(names: tuple[str, ...], lang: str, source: str | None) -> int:
    """Print a text to paste into Claude, Codex or another assistant.

    The assistant then reads the skills, checks them, installs them and runs `skills doctor`,
    showing each command before it runs it.
    """
    click.echo(prompt(names, lang, source or pack_origin()), nl=False)
    return 0


def prompt(names: Sequence[str], lang: str, source: str) -> str:
    """Return the text for these skills (all of the pack if none) in a language. Raises BadInput."""
    found = sources.find(names)
    is_folder = Path(source).expanduser().is_dir()
    return render(
        f"prompt.{lang}.md.j2",
        names=[skill.name for skill in found],
        arguments="".join(f"{skill.name} " for skill in found) if names else "",
        parts={
            **{f"skills/{skill.name}": digest(skill.path) for skill in found},
            **{package.name: digest(package, without=skills_dir()) for package in (PACKAGE, PACKAGE.parent / "ajet")},
        },
        url="" if is_folder else source,
        folder=shlex.quote(source) if is_folder else CLONE,
        home=HOME,
    )


def digest(folder: Path, without: Path | None = None) -> str:
    """Return one SHA-256 over all files of a folder: that of the list which ``sha256sum`` prints of them, sorted.

    ``without`` is a folder inside it that does not count: an installed pack has its skills in one.
    """
    files = tree.fingerprints(folder).items()
    listed = {f"./{name}": sha for name, sha in files if without is None or without not in (folder / name).parents}
    text = "".join(f"{listed[name]}  {name}\n" for name in sorted(listed, key=str.encode))
    return hashlib.sha256(text.encode()).hexdigest()
