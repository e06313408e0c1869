"""Render ``docs/rules`` from the catalogue of rules: ``python -m skillpack.validate.pages [--check] [FOLDER]``."""

from __future__ import annotations

from pathlib import Path

import click
import jinja2
import yaml

from skillpack.files import write_atomically
from skillpack.script import NO, YES, Command, run
from skillpack.validate.rules import rules


def pages() -> dict[str, str]:
    """Return the text of every page by its file's name."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=False,
    )
    measured = yaml.safe_load((Path(__file__).parent / "measured.yaml").read_text(encoding="utf-8"))
    page = environment.get_template("rule.md.j2")
    rendered = {f"{rule.id}.md": page.render(rule=rule, measured=measured) for rule in rules().values()}
    rendered["README.md"] = environment.get_template("rules.md.j2").render(rules=rules().values(), measured=measured)
    return {name: text.rstrip() + "\n" for name, text in rendered.items()}


def stale(folder: Path) -> list[str]:
    """Return the names of pages in ``folder`` that differ from the catalogue, are missing or are too many."""
    wanted = pages()
    there = {path.name for path in folder.glob("*.md")}
    same = {name for name in there & set(wanted) if (folder / name).read_text(encoding="utf-8") == wanted[name]}
    return sorted((there | set(wanted)) - same)


@click.command(
    "pages",
    cls=Command,
    exit_codes={NO: "--check found a page that differs"},
    example="python -m skillpack.validate.pages --check",
)
@click.argument("folder", default="docs/rules", type=click.Path(file_okay=False, path_type=Path))
@click.option("--check", is_flag=True, help="Write nothing; tell which pages differ.")
def pages_command(folder: Path, check: bool) -> None:
    """Write a page for each rule, and one that lists them, into FOLDER."""
    changed = stale(folder)
    for name in changed:
        click.echo(f"{folder / name}")
        if not check and name in pages():
            write_atomically(folder / name, pages()[name])
        elif not check:
            (folder / name).unlink()
    click.get_current_context().exit(NO if check and changed else YES)


if __name__ == "__main__":
    run(pages_command)
