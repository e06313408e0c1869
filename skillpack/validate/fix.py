"""``--fix``: mend a SKILL.md, its bytes first, then its fences, then its values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from skillpack.files import write_atomically
from skillpack.validate.clients import CLIENTS
from skillpack.validate.discover import SkillFolder
from skillpack.validate.mend.fences import mend_fences, split
from skillpack.validate.mend.folder import hindrance, is_checkout, new_name
from skillpack.validate.mend.layers import drop_controls, mend_encoding, mend_line_ends
from skillpack.validate.mend.left import left_over, rank
from skillpack.validate.mend.nodes import mend_nodes
from skillpack.validate.mend.values import mend_blanks, mend_indents, mend_quotes
from skillpack.validate.problems import ignored
from skillpack.validate.rules import rule
from skillpack.validate.source import SkillFile, read_skill
from skillpack.validate.tree import read_yaml

Step = Callable[[str], tuple[str, list[str]]]
"""Takes a text and returns it mended, with the rules that it broke."""

PASSES = 8


def mend(data: bytes, folder: str, ignored: frozenset[str] = frozenset()) -> tuple[bytes, list[str]]:
    """Return a SKILL.md's bytes mended, and the rules that were broken, some with a word on how they were.

    What breaks no rule stays as it is.

    Mending one fault may show another, so it is done until nothing is left; a file that never
    comes to rest is left alone.
    """
    mended, broken = data, list[str]()
    for _ in range(PASSES):
        again, more = _mend_once(mended, folder, ignored)
        if again == mended:
            return mended, list(dict.fromkeys(broken))
        mended, broken = again, broken + more
    return data, []


def _mend_once(data: bytes, folder: str, ignored: frozenset[str]) -> tuple[bytes, list[str]]:
    decoded = mend_encoding(data)
    if decoded is None or ignored & set(decoded[1]):
        return data, []
    text, broken = _apply((mend_line_ends, mend_fences), *decoded, ignored)
    parts = split(text)
    if parts is not None:
        block, broken = _apply((drop_controls, mend_blanks, mend_indents, mend_quotes), parts[0], broken, ignored)
        block, more = mend_nodes(block, folder, ignored)
        broken = broken + more
        text = f"---\n{block}{parts[1]}"
    return (text.encode(), broken) if broken else (data, [])


def _apply(steps: Sequence[Step], text: str, broken: list[str], ignored: frozenset[str]) -> tuple[str, list[str]]:
    """Apply the steps one after the other, leaving out those that mend a rule which is to be ignored."""
    for step in steps:
        mended, more = step(text)
        if not ignored & set(more):
            text, broken = mended, broken + more
    return text, broken


def fix_skill(folder: SkillFolder, clients: Sequence[str] = tuple(CLIENTS)) -> Iterator[str]:
    """Mend a skill in place; yield what was done, and what a person must do before these clients load it, a line each.

    Its file is mended and renamed to SKILL.md, its folder renamed where the specification refuses
    its name. Nothing is written through a symlink, outside of the folder the search began in, over
    another file, or where a client would then do worse. Never raises.
    """
    skill = read_skill(folder)
    if skill.unreadable:
        yield f"left {folder.file}: {rule(skill.unreadable_rule).mend} [{skill.unreadable_rule}]"
        return
    marks = ignored(_decoded(skill.data)) or frozenset()
    if "*" in marks:
        return
    mended = plan(skill, marks)
    if mended is not None:
        hindered = _hindered(folder)
        if hindered:
            yield f"left {folder.file}: {hindered}"
            return
        try:
            skill = _carry_out(mended, skill)
        except OSError as error:
            yield f"left {folder.file}: it cannot be written ({error.strerror or error}); mend that and try again"
            return
        yield f"mended {skill.folder.file}: {', '.join(mended.rules)}"
    if left := left_over(skill, clients):
        yield f"left {skill.folder.file}: {left}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A skill as it is to be, and the rules that it broke before."""

    skill: SkillFile
    rules: list[str]


def plan(skill: SkillFile, marks: frozenset[str] = frozenset()) -> Plan | None:
    """Return the skill mended as far as no client does worse with it, or None if it is to stay as it is."""
    folder, rules = skill.folder, list[str]()
    if is_checkout(folder):
        marks = marks | {"name-folder", "name-missing"}
    if folder.file_name != "SKILL.md" and not folder.file_is_link and "file-name" not in marks:
        rules.append(f"file-name (was {folder.file_name})")
        folder = replace(folder, file_name="SKILL.md")
    data, broken = mend(skill.data, folder.name, marks)
    wanted = new_name(folder, _name_in(data))
    if wanted and folder.path != folder.root and "name-folder" not in marks:
        moved = replace(folder, path=folder.path.with_name(wanted))
        again, more = mend(skill.data, wanted, marks)
        there = Plan(SkillFile(moved, again), [*rules, f"name-folder (the folder was {folder.name})", *more])
        if not left_over(there.skill, CLIENTS) and not hindrance(folder, wanted):
            return there
    here = Plan(SkillFile(folder, data), [*rules, *broken])
    if _worse(skill, here.skill):
        here = Plan(SkillFile(folder, skill.data), rules)
    return here if here.rules else None


def _name_in(data: bytes) -> str:
    """Return the name that a mended file gives the skill, or ""."""
    parts = split(_decoded(data))
    node = read_yaml(parts[0]).value("name") if parts else None
    return node.value if node is not None and node.kind == "scalar" else ""


def _decoded(data: bytes) -> str:
    decoded = mend_encoding(data)
    return decoded[0] if decoded else data.decode("utf-8", errors="replace")


def _worse(before: SkillFile, after: SkillFile) -> bool:
    return any(rank(read(after)) > rank(read(before)) for read in CLIENTS.values())


def _hindered(folder: SkillFolder) -> str:
    """Return why nothing may be written for a skill, or ""."""
    if not folder.file.resolve().is_relative_to(folder.root.resolve()):
        return f"it lies outside of {folder.root}; name its own folder"
    if folder.file_is_link:
        return "it is a symlink; put a regular file there [file-symlink]"
    if not folder.file.stat().st_mode & 0o222:
        return f"it is read-only; chmod u+w {folder.file} and try again"
    return ""


def _carry_out(mended: Plan, skill: SkillFile) -> SkillFile:
    """Write the file, then rename it, then its folder: each at one stroke. Raises OSError."""
    folder = skill.folder
    status = folder.file.stat()
    if folder.file.read_bytes() != skill.data:
        raise OSError("somebody changed it in the meantime")
    if mended.skill.data != skill.data:
        write_atomically(folder.file, mended.skill.data)
        with suppress(PermissionError):
            os.chown(folder.file, status.st_uid, status.st_gid)
    wanted = mended.skill.folder
    if wanted.file_name != folder.file_name:
        os.rename(folder.file, folder.path / wanted.file_name)  # noqa: PTH104 - also where only the case differs
    if wanted.path != folder.path:
        os.rename(folder.path, wanted.path)  # noqa: PTH104
    return mended.skill
