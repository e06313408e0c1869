"""``skills validate`` and ``skills list``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from skillpack.pack import skills_dir
from skillpack.script import NO, YES, Command, json_option
from skillpack.validate.clients import CLIENTS
from skillpack.validate.discover import SkillFolder, find_skills

_FAIL = {NO: "a skill has a problem as grave as --fail-on"}
_FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)


@click.command(
    "validate",
    cls=Command,
    exit_codes=_FAIL,
    example="skills validate ~/.claude/skills --client claude-code --no-run",
)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@json_option
@click.option("--no-run", is_flag=True, help="Do not run the skills' scripts.")
@click.option(
    "--client",
    "clients",
    multiple=True,
    type=click.Choice(list(CLIENTS)),
    help="Ask only this client; may be repeated.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warn"]),
    default="error",
    show_default=True,
    help="The gravest severity that passes is the one below.",
)
@click.option("--explain", metavar="RULE", help="Print what a rule means and how it is mended, and stop.")
@click.option(
    "--python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Interpreter to run the scripts with.",
)
def validate_command(
    paths: tuple[Path, ...],
    as_json: bool,
    no_run: bool,
    clients: tuple[str, ...],
    fail_on: str,
    explain: str | None,
    python: Path | None,
) -> int:
    """Tell what each client does with each skill, and check files, text and scripts.

    PATH is a skill's folder, a folder of skills or a SKILL.md; without one, the pack's own skills
    are checked.
    """
    from skillpack.validate.check import check_skills

    reports = check_skills(_folders(paths), clients or tuple(CLIENTS))
    if as_json:
        from skillpack.validate.reports.as_json import document

        click.echo(json.dumps(document(reports, fail_on), ensure_ascii=False, indent=2))
    else:
        from skillpack.validate.reports.text import write

        write(reports, fail_on)
    return NO if any(report.failed(fail_on) for report in reports) else YES


@click.command("list", cls=Command, example="skills list ~/.claude/skills --json")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@json_option
def list_command(path: Path | None, as_json: bool) -> None:
    """List the skills at and below PATH (the pack's own if none): name, version, class and description."""
    from skillpack.validate.checks.skill import Skill
    from skillpack.validate.source import read_skill

    entries = [_entry(Skill(read_skill(folder))) for folder in _folders([path] if path else [])]
    if as_json:
        click.echo(json.dumps({"skills": entries}, ensure_ascii=False, indent=2))
        return
    from shutil import get_terminal_size
    from textwrap import fill

    width = min(get_terminal_size().columns, 100)
    for entry in entries:
        facts = [
            entry["version"] and f"v{entry['version']}",
            entry["soc-code"] and f"SOC {entry['soc-code']} {entry['soc-title']}",
        ]
        click.echo("  ".join([entry["name"], *filter(None, facts)]))
        click.echo(
            fill(entry["description"] or "(no description)", width, initial_indent="    ", subsequent_indent="    ")
        )


def _entry(skill: Any) -> dict[str, str]:
    metadata = skill.fields.get("metadata")
    values = {key.value: value.value for key, value in metadata.pairs} if metadata is not None else {}
    return {
        "name": skill.name,
        "path": str(skill.folder.path),
        "description": " ".join(skill.description.split()),
        "license": skill.field("license"),
        **{key: values.get(key, "") for key in ("version", "author", "soc-code", "soc-title")},
    }


def _folders(paths: Sequence[Path]) -> Iterator[SkillFolder]:
    seen: set[Path] = set()
    for path in paths or [skills_dir()]:
        for folder in find_skills(path):
            if folder.path not in seen:
                seen.add(folder.path)
                yield folder
