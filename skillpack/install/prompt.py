"""``skills prompt``: a text to paste into an assistant, which then installs skills step by step."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import click

from skillpack.install import sources, tree
from skillpack.install.itself import skills
from skillpack.install.record import OWN
from skillpack.pack import PACKAGE, skills_dir
from skillpack.rendering import render
from skillpack.script import BadInput, Command

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


def pack_origin() -> str:
    """Return where this pack came from: a checkout's remote or folder, or what it was installed from.

    Raises BadInput if that is not known.
    """
    pack = skills_dir().parent
    if (pack / "pyproject.toml").is_file():
        asked = _git(pack, "remote", "get-url", "origin") if _git(pack, "rev-parse", "--show-prefix") == "" else None
        return asked or str(pack)
    try:
        # PEP 610: https://packaging.python.org/en/latest/specifications/direct-url/
        url = json.loads(metadata.distribution(OWN).read_text("direct_url.json") or "{}").get("url")
    except metadata.PackageNotFoundError:
        url = None
    if url is None:
        raise BadInput(
            "where this pack is published is not known", expected="--source", hint=skills("prompt", "--source", "URL")
        )
    return str(url).removeprefix("file://")


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git answers about a folder; None if it fails or there is no git."""
    try:
        asked = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return asked.stdout.strip()
