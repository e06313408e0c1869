"""Say what is wrong with what a script did, in words that name the cause."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillpack.pack import SCHEMAS
from skillpack.script import OUTPUT_LIMIT, RUNNING, YES
from skillpack.validate.evals.cases import Case
from skillpack.validate.evals.supervisor import Outcome

LACKING = re.compile(r"^ModuleNotFoundError: No module named '([^']+)'", re.MULTILINE)
TRACEBACK = "Traceback (most recent call last)"

READ_LIMIT = 4 * 2**20
"""Bytes of a stream that are looked at."""

_REASONS = f"(?:{os.strerror(errno.EROFS)}|{os.strerror(errno.EACCES)})"
REFUSED = re.compile(rf"{_REASONS}: '(?P<python>/[^']+)'|(?P<shell>/[^\s'’:]+)['’]?: {_REASONS}")
"""How Python, and how the shell and its tools tell that they may not write a path."""


@dataclass(frozen=True)
class Run:
    """What a script did: the outcome, what it printed, and where it wrote besides its scratch folders."""

    outcome: Outcome
    stdout: str
    stderr: str
    scratch: Path
    written: tuple[str, ...] = ()
    confined: bool = False


def read(path: Path) -> str:
    """Return the head of a captured stream as text."""
    with path.open("rb") as stream:
        return stream.read(READ_LIMIT).decode("utf-8", errors="replace")


def problems(case: Case, run: Run) -> list[str]:
    """Return all that is wrong with the run of a case, the likeliest cause first."""
    found = [
        *_life(case, run),
        *_exit_code(case.exit_code, run),
        *_output(case, run),
        *(problem for check in case.checks if check in CHECKS for problem in CHECKS[check](run)),
    ]
    # what was refused and did no harm to the script's answer was not written either
    written = [*run.written, *(_refused(run) if found else ())]
    if written:
        found.insert(0, f"writes outside the scratch directory: {', '.join(dict.fromkeys(written[:5]))}")
    return found


def why(found: list[str], stderr: str) -> str:
    """Return the problems as one text that ends with the tail of stderr."""
    tail = " / ".join(line.rstrip() for line in stderr.strip().splitlines()[-6:])[-600:]
    return "; ".join(found) + (f" | stderr: {tail}" if tail else "")


def _life(case: Case, run: Run) -> Iterator[str]:
    outcome = run.outcome
    if outcome["error"]:
        yield f"does not start: {outcome['error']}"
    lacking = LACKING.search(run.stderr)
    if lacking:
        yield f"lacks the package {lacking[1]!r}; expected it in the interpreter that runs the scripts (see --python)"
    if outcome["timed_out"]:
        yield f"hangs: no end within {case.timeout:g} s, its time limit; it was stopped"
    if outcome["read_stdin"] or "/dev/tty" in run.stderr:
        asked = _last_line(run.stdout) or _last_line(run.stderr)
        yield (
            f"prompts: it waits for an answer on its standard input{f' after {asked!r}' if asked else ''}; "
            "expected input by flags, or `stdin:` in the case"
        )
    if outcome["leaked"]:
        yield f"leaks a process: still running after its end: {', '.join(outcome['leaked'])}; it was stopped"


def _exit_code(expected: int, run: Run) -> Iterator[str]:
    code = run.outcome["exit_code"]
    if code is not None and code != expected:
        yield f"wrong exit code: expected {expected}, came {_told(code)}"


def _told(code: int) -> str:
    """Return an exit code in words; a signal is negative to its parent and above 128 to a shell or a sandbox."""
    number = -code if code < 0 else code - 128
    if number in set(signal.Signals):
        return f"{code} (ended by {signal.Signals(number).name})"
    return str(code)


def _refused(run: Run) -> Iterator[str]:
    """Give the paths that stderr says could not be written, though they can outside the sandbox."""
    if not run.confined:
        return
    for match in REFUSED.finditer(run.stderr):
        path = Path(match["python"] or match["shell"])
        existing = next(folder for folder in (path, *path.parents) if folder.exists())
        if not path.is_relative_to(run.scratch) and os.access(existing, os.W_OK):
            yield str(path)


def _output(case: Case, run: Run) -> Iterator[str]:
    length = len(run.stdout.rstrip("\n"))
    if length >= OUTPUT_LIMIT:
        yield f"prints {length} characters on stdout, the limit is {OUTPUT_LIMIT}; more belongs in a file"
    both = f"{run.stdout}\n{run.stderr}"
    yield from (f"missing text: expected {text!r} in its output" for text in case.expect if text not in both)
    yield from (f"rejected text: {text!r} in its output" for text in case.reject if text in both)
    if TRACEBACK in run.stderr:
        yield f"ends in a traceback: {_last_line(run.stderr)}"
    if run.outcome["timed_out"]:
        return
    if case.schema is not None:
        yield from _json(run, case.schema)
    elif _asks_for_json(case.commands[-1]) and (run.stdout.strip() or case.exit_code in (YES, RUNNING)):
        yield from _json(run, None)


def _asks_for_json(command: Sequence[str]) -> bool:
    """Tell whether ``--json`` stands in a command as a flag: with a word behind it, it may be the name of a file."""
    following = [*command[1:], "-"]
    return any(word == "--json" and after.startswith("-") for word, after in zip(command, following, strict=True))


def _json(run: Run, schema: Path | None) -> Iterator[str]:
    try:
        document = one_document(run.stdout)
        document = _elsewhere(document, run.scratch)
    except (ValueError, RecursionError) as error:
        yield str(error)
        return
    if schema is not None:
        yield from _invalid(document, schema)


def _invalid(document: Any, schema: Path) -> Iterator[str]:
    from jsonschema.exceptions import SchemaError, best_match
    from referencing.exceptions import Unresolvable

    try:
        fault = best_match(_validator(schema).iter_errors(document))
    except (OSError, ValueError, SchemaError, Unresolvable) as error:
        yield f"the schema {schema.name} cannot be used: {getattr(error, 'message', error)}"
        return
    if fault is not None:
        yield f"invalid against {schema.name}: {fault.json_path}: {fault.message[:300]}"


def one_document(text: str) -> Any:
    """Return the one JSON document that ``text`` is. Raises ValueError that says what else it is."""
    stripped = text.strip()
    if not stripped:
        raise ValueError("no JSON: expected one document on stdout, came nothing")
    try:
        document, end = _DECODER.raw_decode(stripped)
    except ValueError as error:
        start = min((at for at in map(stripped.find, "{[") if at > 0), default=-1)
        if start > 0:
            raise ValueError(f"prints beside its JSON: {_first_line(stripped)!r} stands before the document") from None
        raise ValueError(f"no JSON: stdout begins with {stripped[:80]!r} ({error})") from None
    rest = stripped[end:].strip()
    if rest:
        try:
            _DECODER.raw_decode(rest)
        except ValueError:
            raise ValueError(f"prints beside its JSON: {_first_line(rest)!r} stands behind the document") from None
        raise ValueError(f"two JSON documents on stdout; the second begins with {rest[:40]!r}")
    return document


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _elsewhere(document: Any, scratch: Path) -> Any:
    """Return the document in the file that a too long output was written to, as ``skillpack.script.emit`` does."""
    if not isinstance(document, dict) or document.keys() != {"written_to", "characters"}:
        return document
    path = Path(document["written_to"])
    if not path.resolve().is_relative_to(scratch.resolve()) or not path.is_file():
        raise ValueError(f"its JSON names the file {path}, which does not exist")
    return json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)


def _validator(path: Path) -> Any:
    """Return a validator for a schema; a ``$ref`` may name a file beside it or one of the pack's, nothing else."""
    from jsonschema.validators import validator_for
    from referencing import Registry, Resource
    from referencing.exceptions import NoSuchResource
    from referencing.jsonschema import DRAFT202012

    def retrieve(uri: str) -> Any:
        for folder in (path.parent, SCHEMAS):
            file = folder / uri.rsplit("/", 1)[-1]
            if file.is_file():
                contents = json.loads(file.read_text(encoding="utf-8"))
                return Resource.from_contents(contents, default_specification=DRAFT202012)
        raise NoSuchResource(ref=uri)  # type: ignore[call-arg]

    schema = json.loads(path.read_text(encoding="utf-8"))
    registry: Any = Registry(retrieve=retrieve)  # type: ignore[call-arg]
    validator = validator_for(schema)
    validator.check_schema(schema)
    return validator(schema, registry=registry)


def _first_line(text: str) -> str:
    return next((line.strip()[:80] for line in text.splitlines() if line.strip()), "")


def _last_line(text: str) -> str:
    return _first_line("\n".join(reversed(text.splitlines())))


def advice(case: Case, run: Run) -> list[str]:
    """Return what the help of a script lacks, if the case asked for it and got it."""
    if "help" not in case.checks or run.outcome["exit_code"] != YES:
        return []
    lacking = []
    if not _description(run.stdout):
        lacking.append("it does not say what the script does")
    if not re.search(r"\bexamples?\b", run.stdout, re.IGNORECASE):
        lacking.append("it shows no example")
    if not re.search(r"\bexit[ -](codes?|status)\b", run.stdout, re.IGNORECASE):
        lacking.append("it does not list the exit codes")
    return lacking


def _description(help_text: str) -> str:
    """Return the sentence of a help text: the first paragraph that is neither usage nor a heading nor options."""
    for paragraph in re.split(r"\n\s*\n", help_text):
        words = paragraph.split()
        if len(words) >= 3 and not re.match(r"\s*(usage:|-|\S+:\s*\n)", paragraph, re.IGNORECASE):
            return " ".join(words)
    return ""


def _silent(run: Run) -> Iterator[str]:
    if run.stdout.strip():
        yield f"prints {_first_line(run.stdout)!r} on stdout; expected the complaint on stderr and nothing on stdout"


def _message(run: Run) -> Iterator[str]:
    if not run.stderr.strip():
        yield "says nothing on stderr; expected what was wrong"


CHECKS: dict[str, Callable[[Run], Iterator[str]]] = {"message": _message, "silent": _silent}
"""The judgements that a case can ask for by name; ``help`` asks for ``advice``."""
