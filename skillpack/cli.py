"""The ``skills`` command: its subcommands are imported when they are called."""

from __future__ import annotations

import shlex
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from skillpack import __version__
from skillpack.script import BadInput, Group, run

COMMANDS = {
    "demo": ("skillpack.demo", "Train the demo task on the reference engine, from start to report."),
    "doctor": ("skillpack.install.doctor", "Check what each assistant will load, and that scripts can run."),
    "engine": ("skillpack.engine", "Start, ask or stop a reference engine."),
    "install": ("skillpack.install.command", "Install skills for Claude Code and Codex."),
    "list": ("skillpack.validate.command", "List the skills of a folder."),
    "prompt": ("skillpack.install.prompt", "Print a text to paste into an assistant that installs skills."),
    "rehearse": ("skillpack.rehearse.command", "Run a training client on a laptop and say whether it would train."),
    "uninstall": ("skillpack.install.command", "Remove installed skills."),
    "update": ("skillpack.install.command", "Bring installed skills to the version of this pack."),
    "validate": ("skillpack.validate.command", "Check skills: files, rules and scripts."),
}
"""Subcommand: (module that holds ``<name>_command``, one line of help)."""


SYNONYMS = {
    "add": "install",
    "check": "validate",
    "init": "install",
    "lint": "validate",
    "ls": "list",
    "remove": "uninstall",
    "rm": "uninstall",
    "upgrade": "update",
}
"""What other installers call a subcommand: its name here."""


class LazyGroup(Group):
    """A group that imports a subcommand's module only when it is needed: help stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands, in order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the subcommand, or None if there is no such."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(COMMANDS[cmd_name][0]), f"{cmd_name}_command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand that a command line names. Raises BadInput for an unknown one that is like another."""
        given, *rest = args
        if given not in COMMANDS and not given.startswith("-"):
            meant = [SYNONYMS[given]] if given in SYNONYMS else get_close_matches(given, COMMANDS, n=1)
            if meant:
                raise BadInput(
                    f"there is no command {given!r}",
                    expected=f"one of {', '.join(sorted(COMMANDS))}",
                    hint=shlex.join(["skills", *meant, *rest]),
                )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in sorted(COMMANDS.items())])


@click.group("skills", cls=LazyGroup, epilog="skills validate skills/swarm-configuration --json")
@click.version_option(__version__, prog_name="skills")
def skills(**_: Any) -> None:
    """Validate and install agent skills, and run the reference AgentJet behind them."""


def main() -> None:
    """Entry point of the ``skills`` console script."""
    run(skills)
