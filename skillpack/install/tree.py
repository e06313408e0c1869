"""The files of a skill: which count, what they contain, and how they are copied."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

from skillpack.install.record import NAME as RECORD
from skillpack.script import BadInput

PASSED_OVER = frozenset({"__pycache__", ".DS_Store", ".git", RECORD})
DIFF_LINES = 40
FILES_TOLD = 10
"""Files that are named one by one."""


def files(skill: Path) -> Iterator[Path]:
    """Give the files and links below a skill's folder, as relative paths, in order; caches and the record left out."""
    for parent, folders, names in os.walk(skill):
        folders[:] = sorted(name for name in folders if name not in PASSED_OVER)
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for name in sorted([*names, *links]):
            if name not in PASSED_OVER and not name.endswith(".pyc"):
                yield Path(parent, name).relative_to(skill)


def fingerprints(skill: Path) -> dict[str, str]:
    """Return {relative path: SHA-256 in hex} of a skill's files; a link counts by where it points."""
    found = {}
    for file in files(skill):
        path = skill / file
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        found[file.as_posix()] = hashlib.sha256(content).hexdigest()
    return found


def executables(skill: Path) -> list[str]:
    """Return the relative paths of a skill's files that their owner may execute; links left out."""
    return [
        file.as_posix()
        for file in files(skill)
        if not (skill / file).is_symlink() and (skill / file).stat().st_mode & stat.S_IXUSR
    ]


def copy(skill: Path, target: Path) -> None:
    """Copy a skill's files with their permissions to a new folder.

    Raises BadInput for what cannot be copied safely: a link that leaves the skill, or a device or pipe.
    """
    target.mkdir()
    for file in files(skill):
        source, copied = skill / file, target / file
        copied.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            if not source.resolve().is_relative_to(skill.resolve()) or source.readlink().is_absolute():
                raise BadInput(
                    f"{source} is a link that leaves the skill",
                    expected="a skill that is whole without its surroundings",
                    hint=f"cp --remove-destination {source.resolve()} {source}",
                )
            copied.symlink_to(source.readlink())
        elif source.is_file():
            shutil.copy(source, copied)
        else:
            raise BadInput(f"{source} is neither a file nor a folder", expected="files only", hint=f"rm {source}")


def diff(old: Path, new: Path) -> str:
    """Return how the files of ``new`` differ from those of ``old``: a unified diff, cut to ``DIFF_LINES`` lines.

    Many files of ``old`` alone are named, not shown: somebody made an environment there.
    """
    mine, theirs = ({file.as_posix() for file in files(root)} for root in (old, new))
    added = sorted(mine - theirs)
    lines = [] if len(added) <= FILES_TOLD else [f"only in {old}: {listed(added)}"]
    for name in sorted(theirs if lines else mine | theirs):
        before, after = _lines(old / name), _lines(new / name)
        if before != after:
            lines += unified_diff(before or [], after or [], str(old / name), str(new / name), n=1, lineterm="")
    for root, other in ((old, new), (new, old)):
        only = set(executables(root)) - set(executables(other))
        lines += [
            f"{root / name} is executable, {other / name} is not" for name in sorted(only) if (other / name).exists()
        ]
    if len(lines) > DIFF_LINES:
        lines = [*lines[:DIFF_LINES], f"… {len(lines) - DIFF_LINES} more lines; all of them: diff -r {old} {new}"]
    return "\n".join(lines)


def listed(names: Sequence[str]) -> str:
    """Return names as words: the first ``FILES_TOLD``, and how many more there are."""
    more = len(names) - FILES_TOLD
    return ", ".join(names[:FILES_TOLD]) + (f" and {more:,} more" if more > 0 else "")


def _lines(path: Path) -> list[str] | None:
    """Return the lines of a text file; for what is no text, one line that tells its content apart; None if absent."""
    if path.is_symlink():
        return [f"(a link to {path.readlink()})"]
    if not path.is_file():
        return None
    content = path.read_bytes()
    try:
        return content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return [f"(binary, {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()})"]
