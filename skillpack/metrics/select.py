"""Which of a run's keys a request means: names, aliases, patterns, and what was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from skillpack.metrics.series import KeyStatus
from skillpack.script import BadInput

SYSTEM_PREFIX = "__swanlab__"
PATTERN = re.compile(r"[*?\[]")
REGEX_PREFIX = "re:"


@dataclass(frozen=True)
class Choice:
    """What one asked name came to: the keys it means, or none and the names that are near."""

    asked: str
    keys: list[str]
    alias: bool = False
    did_you_mean: list[str] = field(default_factory=list)


@cache
def aliases() -> dict[str, list[str]]:
    """Return the short names and, for each, the keys it may stand for, best first."""
    import yaml

    table: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("aliases.yaml").read_text("utf-8"))
    return table


def split_keys(text: str, available: Sequence[str]) -> list[str]:
    """Split ``a,b,c`` at commas, but not within a key that the run has and that holds a comma itself."""
    known = set(available)
    pieces = text.split(",")
    names = []
    while pieces:
        length = next((n for n in range(len(pieces), 1, -1) if ",".join(pieces[:n]).strip() in known), 1)
        names.append(",".join(pieces[:length]).strip())
        pieces = pieces[length:]
    return [name for name in names if name]


def requested(keys: str | Sequence[str] | None, available: Sequence[str], axis: str | None = None) -> list[str] | None:
    """Return the asked names, with the key that serves as x axis; None stands for all of the run's own keys."""
    names: list[str] = []
    if keys is not None:
        names = split_keys(keys, available) if isinstance(keys, str) else [str(key) for key in keys]
    if axis is not None and axis not in names:
        names = [*(names or ["*"]), axis]
    return list(dict.fromkeys(names)) or None


def is_pattern(name: str) -> bool:
    """Tell whether a name stands for more than itself: ``critic/*`` or ``re:…``."""
    return bool(PATTERN.search(name)) or name.startswith(REGEX_PREFIX)


def expected_states(choices: Sequence[Choice]) -> dict[str, KeyStatus]:
    """Return a state per key: ok, until something is wrong with it, or missing where no key answers to a name."""
    states: dict[str, KeyStatus] = {}
    for choice in choices:
        for key in choice.keys:
            states.setdefault(key, KeyStatus(key, "ok", choice.asked))
        if not choice.keys:
            why = "no key of the run matches" if is_pattern(choice.asked) else "the run has no such key"
            states[choice.asked] = KeyStatus(
                choice.asked, "missing", choice.asked, why, did_you_mean=choice.did_you_mean
            )
    return states or {"*": KeyStatus("*", "empty", "*", "the run has no scalar keys")}


def choose(asked: Sequence[str] | None, available: Sequence[str]) -> list[Choice]:
    """Return what each asked name means in a run that has the keys ``available``.

    A name is a key, an alias, a pattern such as ``critic/*`` or ``re:`` and a regular expression;
    a key that is really called so wins. None means all keys except SwanLab's own system keys.
    Raises BadInput for a broken regular expression.
    """
    if asked is None:
        own = [key for key in available if not key.startswith(SYSTEM_PREFIX)]
        return [Choice("*", own)] if own else []
    return [_choose(name, available) for name in asked]


def _choose(name: str, available: Sequence[str]) -> Choice:
    if name in available:
        return Choice(name, [name])
    for candidate in aliases().get(name, ()):
        found = [key for key in available if fnmatchcase(key, candidate)]
        if found:
            return Choice(name, found[:1], alias=True)
    if name.startswith(REGEX_PREFIX):
        try:
            pattern = re.compile(name.removeprefix(REGEX_PREFIX))
        except re.error as error:
            raise BadInput(f"{name!r} is no regular expression: {error}", expected="such as re:^actor/.*loss") from None
        found = [key for key in available if pattern.search(key)]
    elif is_pattern(name):
        found = [key for key in available if fnmatchcase(key, name)]
    else:
        found = []
    if not name.removeprefix(REGEX_PREFIX).lstrip("^").startswith(SYSTEM_PREFIX):
        found = [key for key in found if not key.startswith(SYSTEM_PREFIX)]
    return Choice(name, found, did_you_mean=[] if found else near(name, [*_answering(available), *available]))


def _answering(available: Sequence[str]) -> list[str]:
    """Return the aliases that a run with these keys has a curve for."""
    return [
        alias
        for alias, candidates in aliases().items()
        if any(fnmatchcase(key, candidate) for candidate in candidates for key in available)
    ]


def near(name: str, available: Sequence[str]) -> list[str]:
    """Return up to three names that look like ``name``, best first."""
    lower = {key.lower(): key for key in reversed(available)}
    wanted = name.lower()
    words = [word for word in re.split(r"[^\w]+|_", wanted) if len(word) > 2]
    inside = sorted(
        (key for key in available if wanted in key.lower() or (words and all(word in key.lower() for word in words))),
        key=len,
    )
    close = [lower[match] for match in difflib.get_close_matches(wanted, lower, n=3, cutoff=0.6)]
    return list(dict.fromkeys([*close, *inside]))[:3]
