"""The contract that every command line of the pack keeps.

Data goes to stdout, everything else to stderr; ``--json`` prints exactly one document; there
are no prompts; the exit code says what happened (``EXIT_CODES``); a fault of the user or of the
machine ends in one clear message and never in a traceback.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

YES, NO, BAD_INPUT, UNAVAILABLE, RUNNING = 0, 1, 2, 3, 4

EXIT_CODES = {
    YES: "yes, or done",
    NO: "the answer is no",
    BAD_INPUT: "bad usage or a bad input file",
    UNAVAILABLE: "something needed is missing or unreachable",
    RUNNING: "still running, ask again",
}

OWN_PACKAGES = ("skillpack", "ajet")
EXTRAS = "pip install 'agentjet-skills[all]'"

OUTPUT_LIMIT = 10_000
"""Characters that a script prints at most; an assistant's context is worth more than a long table."""


class ScriptError(click.ClickException):
    """A fault told in three parts: what was wrong, what was expected, what to try."""

    exit_code = BAD_INPUT

    def __init__(self, wrong: str, *, expected: str = "", hint: str = "") -> None:
        super().__init__(wrong)
        self.expected = expected
        self.hint = hint

    def show(self, file: Any = None) -> None:
        """Print the message to stderr, a part per line."""
        lines = [f"error: {self.message}"]
        if self.expected:
            lines.append(f"expected: {self.expected}")
        if self.hint:
            lines.append(f"try: {self.hint}")
        click.echo("\n".join(lines), file=file or sys.stderr)


class BadInput(ScriptError):
    """What the user gave cannot be used (exit code 2)."""


class Unavailable(ScriptError):
    """A program, server, key or package that is needed is missing or unreachable (exit code 3)."""

    exit_code = UNAVAILABLE


class Command(click.Command):
    """A click command that ends its help with an example and the exit codes, and never shows a traceback."""

    def __init__(self, *args: Any, example: str = "", exit_codes: dict[int, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example
        self.exit_codes = {YES: EXIT_CODES[YES], BAD_INPUT: EXIT_CODES[BAD_INPUT], **(exit_codes or {})}

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example and the exit codes below the options."""
        if self.example:
            with formatter.section("Example"):
                for line in self.example.splitlines():
                    formatter.write(f"  {line}\n")
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), text) for code, text in sorted(self.exit_codes.items())])


class Group(click.Group):
    """A group whose commands are ``Command``; its help lists the exit codes that they share."""

    command_class = Command

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write an example (the group's epilog) and the exit codes below the commands."""
        if self.epilog:
            with formatter.section("Example"):
                formatter.write(f"  {self.epilog}\n")
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), text) for code, text in EXIT_CODES.items()])


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")


def emit(document: Any, *, as_json: bool, text: str | Callable[[], str] = "") -> None:
    """Print ``document`` as JSON, or ``text`` (or what it returns) for people.

    Output of more than ``OUTPUT_LIMIT`` characters is written whole to a file; then the file is
    named on stdout: as ``{"written_to": path, "characters": n}``, or behind the head of the text.
    """
    if as_json:
        whole = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)
        suffix = ".json"
    else:
        whole = text() if callable(text) else text
        suffix = ".txt"
    if len(whole) < OUTPUT_LIMIT:
        click.echo(whole)
        return
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="agentjet-skills-", suffix=suffix, delete=False
    ) as stream:
        stream.write(whole)
    if as_json:
        click.echo(json.dumps({"written_to": stream.name, "characters": len(whole)}))
    else:
        head = whole[: OUTPUT_LIMIT - 1000].rsplit("\n", 1)[0]
        click.echo(f"{head}\n… {len(whole)} characters in all, written to {Path(stream.name)}")


def run(command: click.Command) -> NoReturn:
    """Run a script's command line and exit with its code; Ctrl-C and a closed pipe end quietly.

    A package of an extra that is not installed is named, with what brings it.
    """
    try:
        code = command.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.UsageError as error:
        error.show()
        code = BAD_INPUT
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", *OWN_PACKAGES):
            raise
        Unavailable(f"this needs the package {package}, which is not installed", hint=EXTRAS).show()
        code = UNAVAILABLE
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone: no complaint at interpreter exit either
        code = YES
    except OSError as error:
        ScriptError(str(error)).show()
        code = UNAVAILABLE
    sys.exit(code if isinstance(code, int) else YES)
