"""``skills validate`` and ``skills list``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from skillpack.files import write_atomically
from skillpack.pack import skills_dir
from skillpack.script import NO, YES, BadInput, Command, json_option
from skillpack.validate.clients import CLIENTS
from skillpack.validate.discover import SkillFolder, find_skills
from skillpack.validate.outcome import Outcome

_OUTPUT = click.Path(dir_okay=False, allow_dash=True, path_type=Path)


@click.command(
    "validate",
    cls=Command,
    exit_codes={NO: "a skill has a problem as grave as --fail-on"},
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
    help="Ask only this client; may be repeated.  [default: all]",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warn"]),
    default="error",
    show_default=True,
    help="The least grave problem that makes the exit code 1.",
)
@click.option("--explain", metavar="RULE", help="Print what a rule (or all) means and how it is mended, and stop.")
@click.option("--fix", is_flag=True, help="First mend what is mechanical; everything else stays byte for byte.")
@click.option("--sarif", type=_OUTPUT, metavar="FILE", help="Write SARIF 2.1.0 to FILE, or - for stdout.")
@click.option("--github", is_flag=True, help="Print GitHub annotations instead of text.")
@click.option("--junit", type=_OUTPUT, metavar="FILE", help="Write JUnit XML to FILE, or - for stdout.")
@click.option("--python", metavar="PROGRAM", help="Interpreter to run the scripts with.  [default: this one]")
def validate_command(
    paths: tuple[Path, ...],
    as_json: bool,
    no_run: bool,
    clients: tuple[str, ...],
    fail_on: str,
    explain: str | None,
    fix: bool,
    sarif: Path | None,
    github: bool,
    junit: Path | None,
    python: str | None,
) -> None:
    """Tell what each client does with each skill, and check files, text and scripts.

    PATH is a skill's folder, a folder of skills or a SKILL.md; without one, the pack's own skills
    are checked. Scripts are run as their evals/scripts.yaml says, in scratch folders.
    """
    if explain is not None:
        _explain(explain, as_json)
        return
    if as_json + github + (str(sarif) == "-") + (str(junit) == "-") > 1:
        raise BadInput(
            "two documents are to go to stdout",
            expected="one of --json, --github, --sarif - and --junit -",
            hint="give --sarif or --junit the name of a file",
        )
    interpreter = _interpreter(python)
    from skillpack.validate.check import check_skills

    if fix:
        from skillpack.validate.fix import fix_skill

        for folder in list(_folders(paths)):
            for line in fix_skill(folder, clients or tuple(CLIENTS)):
                click.echo(line, err=True)
    with check_skills(_folders(paths), clients or tuple(CLIENTS)) as outcome:
        if not no_run:
            outcome.run_scripts(interpreter)
            _tell_what_is_not_seen(outcome)
        _give_out(outcome, fail_on, as_json=as_json, github=github, sarif=sarif, junit=junit)
        failed = outcome.failed(fail_on)
    click.get_current_context().exit(NO if failed else YES)


def _interpreter(given: str | None) -> Path | None:
    if given is None:
        return None
    from skillpack.validate.evals import launch

    return launch.interpreter(given)


def _tell_what_is_not_seen(outcome: Outcome) -> None:
    """Say on stderr what the sandbox that the scripts ran in misses, if any ran."""
    from skillpack.validate.evals import confine

    missed = confine.UNSEEN[confine.method()] if outcome.with_scripts else ""
    if missed:
        click.echo(f"note: without bubblewrap (bwrap), {missed}", err=True)


def _folders(paths: Sequence[Path]) -> Iterator[SkillFolder]:
    """Yield the skills below the paths, each once; what one path gives is not kept, as it may be much."""
    if len(paths) < 2:
        yield from find_skills(paths[0] if paths else skills_dir())
        return
    seen: set[Path] = set()
    for path in paths:
        for folder in find_skills(path):
            if folder.path not in seen:
                seen.add(folder.path)
                yield folder


def _give_out(
    outcome: Outcome,
    fail_on: str,
    *,
    as_json: bool,
    github: bool,
    sarif: Path | None,
    junit: Path | None,
) -> None:
    if sarif is not None:
        from skillpack.validate.reports.places import json_of
        from skillpack.validate.reports.sarif import document as sarif_document

        _write(sarif, json_of(sarif_document(outcome)) + "\n")
    if junit is not None:
        from skillpack.validate.reports.junit import document as junit_document

        _write(junit, junit_document(outcome, fail_on))
    if as_json:
        from skillpack.validate.reports.as_json import pieces

        for piece in pieces(outcome, fail_on):
            click.echo(piece, nl=False)
    elif github:
        from skillpack.validate.reports.github import lines

        for line in lines(outcome):
            click.echo(line)
        click.echo(outcome.summary(fail_on), err=True)
    elif "-" not in (str(sarif), str(junit)):
        from skillpack.validate.reports.text import write

        write(outcome, fail_on)


def _write(path: Path, text: str) -> None:
    if str(path) == "-":
        click.echo(text, nl=False)
    else:
        write_atomically(path, text)


def _explain(name: str, as_json: bool) -> None:
    from dataclasses import asdict

    from skillpack.validate.rules import rule, rules

    if name == "all":
        if as_json:
            click.echo(json.dumps([asdict(each) for each in rules().values()], ensure_ascii=False, indent=2))
        else:
            click.echo("\n".join(f"{each.id:<22} {each.severity:<6} {each.title}" for each in rules().values()))
        return
    found = rule(name)
    if as_json:
        click.echo(json.dumps(asdict(found), ensure_ascii=False, indent=2))
        return
    click.echo(f"{found.id} ({found.severity})  {found.title}\n\n{found.means}\n\nMend: {found.mend}")
    click.echo(f"Mended by --fix: {'yes' if found.fix else 'no'}")
    click.echo(f"Clients: {', '.join(found.clients) or 'not about a client'}\nSource: {found.source}")


@click.command("list", cls=Command, example="skills list ~/.claude/skills --json")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@json_option
def list_command(path: Path | None, as_json: bool) -> None:
    """List the skills at and below PATH (the pack's own if none): name, version, class and description."""
    from skillpack.validate.listing import entries, text
    from skillpack.validate.reports.places import json_of, plain

    listed = entries(_folders([path] if path else []))
    click.echo(json_of({"skills": listed}) if as_json else "\n".join(map(plain, text(listed).split("\n"))))
