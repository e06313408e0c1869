"""Who did it: the signatures seen in a run's logs, ranked, root causes before what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillpack.triage.seen import Scan, Sighting
from skillpack.triage.signatures import ROLES, Signature, signature

TROUBLE = ("root", "generic", "aftermath")
SURVIVED_LINES = 20
"""Ordinary lines behind an unexplained exception that show that somebody caught it."""
LAST_LINES = 4


@dataclass(frozen=True)
class Suspect:
    """A signature with the place where it was seen, and in which log."""

    signature: Signature
    sighting: Sighting
    count: int
    log: str

    def is_a(self, *roles: str) -> bool:
        """Tell whether the signature has one of these roles."""
        return self.signature.role in roles


def since_last_step(scans: dict[str, Scan]) -> list[Suspect]:
    """Return the trouble that no training step has followed."""
    return _seen(scans, "current", TROUBLE)


def of_a_failure(scans: dict[str, Scan], died: Sequence[str]) -> list[Suspect]:
    """Return the suspects of a run that has ended badly, ranked.

    Where nothing since the last step explains it, warnings and the roots of the step before
    count too: the last step's line may have been printed behind the error of another writer.
    """
    found = since_last_step(scans)
    if not any(one.is_a("root", "generic") for one in found):
        found += _seen(scans, "previous", ("root",))
        found += [one for one in _seen(scans, "current", ("warning",)) if not one.signature.only_last]
    return ranked(found, died)


def last_words(scans: dict[str, Scan]) -> list[Suspect]:
    """Return the signatures that mean something only if nothing comes behind them."""
    found = [one for one in _seen(scans, "current", ("warning",)) if one.signature.only_last]
    return [one for one in found if one.sighting.line > scans[one.log].lines - LAST_LINES]


def ranked(suspects: Iterable[Suspect], died: Sequence[str]) -> list[Suspect]:
    """Return suspects in order: by role, then the log of the part that died first, then the earliest line."""

    def rank(one: Suspect) -> tuple[int, int, int]:
        place = died.index(one.log) if one.log in died else len(died)
        return ROLES.index(one.signature.role), place, one.sighting.line

    return sorted(suspects, key=rank)


def was_caught(one: Suspect, scans: dict[str, Scan]) -> bool:
    """Tell whether an unexplained exception was caught: plenty of other output follows, and no other trouble."""
    if not one.is_a("generic"):
        return False
    others = [
        seen.current.line for id_, seen in scans[one.log].seen.items() if seen.current and id_ != one.signature.id
    ]
    followed = any(line > one.sighting.line for line in others)
    return not followed and scans[one.log].lines - one.sighting.line >= SURVIVED_LINES


def survived(scans: dict[str, Scan], but: set[str]) -> list[Suspect]:
    """Return what looked bad and was followed by a training step, apart from the ids ``but``."""
    return [
        Suspect(signature(id_), seen.first, seen.survived, log)
        for log, scan in scans.items()
        for id_, seen in scan.seen.items()
        if seen.survived and seen.first and id_ not in but and signature(id_).role in TROUBLE
    ]


def remarks(scans: dict[str, Scan]) -> list[Suspect]:
    """Return what is worth a word although it ends no run."""
    return [one for one in _seen(scans, "first", ("warning", "remark")) if not one.signature.only_last]


def _seen(scans: dict[str, Scan], interval: str, roles: Sequence[str]) -> list[Suspect]:
    return [
        Suspect(signature(id_), sighting, seen.count, log)
        for log, scan in scans.items()
        for id_, seen in scan.seen.items()
        if (sighting := getattr(seen, interval)) and signature(id_).role in roles
    ]
