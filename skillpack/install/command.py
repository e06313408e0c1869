"""``skills install``, ``skills update`` and ``skills uninstall``."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from typing import Any

import click

from skillpack.install import actions, shelf, sources, trouble
from skillpack.install.actions import Action, How
from skillpack.install.clients import Place, clients, places
from skillpack.install.home import here
from skillpack.install.itself import skills
from skillpack.script import NO, UNAVAILABLE, YES, BadInput, Command, emit, json_option

EXIT_CODES = {
    NO: "a skill was refused: edited, or not ours",
    UNAVAILABLE: "a folder cannot be written",
}

INSTEAD = {
    "--all": "--agent all",
    "--global": "--scope user",
    "--project": "--scope project",
    "--symlink": "--link",
    "--user": "--scope user",
    "--yes": "",
    "-a": "--agent",
    "-g": "--scope user",
    "-s": "",
    "-y": "",
}
"""Options that other installers have, and what says the same here."""


class InstallCommand(Command):
    """A command that knows the options which other installers have."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line. Raises BadInput for an option of another installer."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name not in INSTEAD:
                raise
            words = [part for word in given for part in (INSTEAD[word].split() if word in INSTEAD else [word])]
            raise BadInput(
                f"there is no option {error.option_name}",
                expected=f"what `{skills(str(ctx.info_name), '--help')}` lists",
                hint=skills(str(ctx.info_name), *words),
            ) from None


class AgentChoice(click.Choice[str]):
    """The clients, with a hint for a name that is like one of theirs."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice. Raises BadInput."""
        if value in self.choices:
            return str(value)
        names = list(self.choices)
        close = [name for name in names if value and (name in value.lower() or value.lower() in name)]
        close = close or difflib.get_close_matches(str(value), names, n=1)
        raise BadInput(
            f"there is no agent {value!r}", expected=f"one of {', '.join(names)}", hint=f"--agent {(close or names)[0]}"
        )


agent_option = click.option(
    "--agent",
    type=AgentChoice([*clients(), "all"]),
    default="all",
    show_default=True,
    help="The assistant to serve.",
)
scope_option = click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="For you everywhere, or for all who work in this project.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be done and do nothing.")


def force_option(verb: str) -> Callable[[Any], Any]:
    """Return the option that goes on where a user's files would be lost, keeping a backup."""
    return click.option(
        "--force", is_flag=True, help=f"{verb} skills that were edited or are not ours too, with a backup."
    )


@click.command(
    "install",
    cls=InstallCommand,
    example="skills install swarm-configuration --agent codex --scope project",
    exit_codes=EXIT_CODES,
)
@click.argument("names", nargs=-1, metavar="[NAME|FOLDER]...")
@agent_option
@scope_option
@click.option("--copy/--link", "copy", default=True, help="Install copies (the default), or links to the skills.")
@force_option("Overwrite")
@dry_run_option
@json_option
def install_command(
    names: tuple[str, ...], agent: str, scope: str, copy: bool, force: bool, dry_run: bool, as_json: bool
) -> int:
    """Install skills for Claude Code and Codex.

    Without a NAME, all skills of this pack. A FOLDER may be any skill's.
    """
    how = How(force=force, dry_run=dry_run)
    where = places(agent, [scope], here())
    found = sources.find(names)
    options = _options(agent, scope) + ([] if copy else ["--link"])
    done = []
    for place in where:
        with trouble.told(place.folder, ["install", *names, *options]):
            done += [actions.install(source, place, how, link=not copy) for source in found]
    return _report(done, how, as_json)


@click.command("update", cls=InstallCommand, example="skills update --dry-run", exit_codes=EXIT_CODES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@agent_option
@scope_option
@force_option("Overwrite")
@dry_run_option
@json_option
def update_command(names: tuple[str, ...], agent: str, scope: str, force: bool, dry_run: bool, as_json: bool) -> int:
    """Bring installed skills to the version of this pack, and to its interpreter."""
    how = How(force=force, dry_run=dry_run)
    done = []
    for place, found in _installed(names, places(agent, [scope], here()), settle=not dry_run):
        with trouble.told(place.folder, ["update", *names, *_options(agent, scope)]):
            done.append(actions.update(found, place, how))
    return _report(done, how, as_json)


@click.command("uninstall", cls=InstallCommand, example="skills uninstall swarm-configuration", exit_codes=EXIT_CODES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@agent_option
@scope_option
@force_option("Remove")
@dry_run_option
@json_option
def uninstall_command(names: tuple[str, ...], agent: str, scope: str, force: bool, dry_run: bool, as_json: bool) -> int:
    """Remove skills that were installed by `skills install`. Without a NAME, all of them."""
    how = How(force=force, dry_run=dry_run)
    done = []
    for place, found in _installed(names, places(agent, [scope], here()), settle=not dry_run, all_places=True):
        with trouble.told(place.folder, ["uninstall", *names, *_options(agent, scope)]):
            done.append(actions.uninstall(found.path.name, place, how))
    return _report(done, how, as_json)


def _options(agent: str, scope: str) -> list[str]:
    """Return the options that say the same again, those that go without saying left out."""
    return (["--agent", agent] if agent != "all" else []) + (["--scope", scope] if scope != "user" else [])


def _installed(
    names: Sequence[str], where: Sequence[Place], *, settle: bool, all_places: bool = False
) -> list[tuple[Place, shelf.Found]]:
    """Return what we have installed in these places, of these names or all.

    With ``settle``, what a killed run had begun is undone before. With ``all_places``, a name is
    looked at in every place, whatever lies there. Raises BadInput for a name that is nowhere.
    """
    ours = []
    for place in where:
        with trouble.told(place.folder, ["install"]):
            if settle:
                shelf.settle(place.folder)
            ours += [(place, found) for found in shelf.installed(place.folder)]
    known = sorted({found.path.name for _, found in ours})
    for name in names:
        theirs = [place.folder / name for place in where if os.path.lexists(place.folder / name)]
        if name in known or (all_places and (theirs or name in sources.own_names())):
            continue
        close = difflib.get_close_matches(name, known, n=1)
        raise BadInput(
            f"{theirs[0]} was not installed by `skills`"
            if theirs
            else f"{name} is not installed in {' or '.join(str(place.folder) for place in where)}",
            expected=f"one of {', '.join(known)}" if known else "an installed skill",
            hint=skills(str(click.get_current_context().info_name), *close) if close else skills("doctor"),
        )
    if all_places and names:
        return [(place, shelf.look(place.folder, name)) for place in where for name in names]
    return [(place, found) for place, found in ours if not names or found.path.name in names]


def _report(done: list[Action], how: How, as_json: bool) -> int:
    """Print what was done; return the exit code."""
    ok = all(action.action != actions.REFUSED for action in done)
    document = {"ok": ok, "dry_run": how.dry_run, "actions": [action.to_dict() for action in done]}
    emit(document, as_json=as_json, text=lambda: _text(done, how))
    return YES if ok else NO


def _text(done: list[Action], how: How) -> str:
    if not done:
        return "nothing is installed"
    lines = ["nothing is changed: this is what would be done"] if how.dry_run else []
    for action in done:
        lines.append(f"{action.action:<10} {action.skill}  for {', '.join(action.clients)}  {action.path}")
        lines += [f"  {label}: {text}" for label, text in _details(action) if text]
        lines += [f"  | {line}" for line in action.diff.splitlines()]
    if not how.dry_run and any(action.action in ("installed", "updated", "replaced") for action in done):
        lines.append(f"start a new session of the assistant to load them; `{skills('doctor')}` checks what it will see")
    return "\n".join(lines)


def _details(action: Action) -> list[tuple[str, str]]:
    return [("why", action.reason), ("try", action.try_), ("backup", action.backup)]
