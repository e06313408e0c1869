"""``--fix``: mend a SKILL.md, its bytes first, then its fences, then its values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from skillpack.files import write_atomically
from skillpack.validate.clients import CLIENTS
from skillpack.validate.discover import SkillFolder
from skillpack.validate.mend.layers import drop_controls, mend_encoding, mend_fences, mend_line_ends
from skillpack.validate.mend.values import mend_nodes, mend_quotes, mend_tabs
from skillpack.validate.problems import ignored
from skillpack.validate.source import SkillFile, read_skill

Step = Callable[[str], tuple[str, list[str]]]
"""Takes a text and returns it mended, with the rules that it broke."""


PASSES = 4


def mend(data: bytes, folder: str, ignored: frozenset[str] = frozenset()) -> tuple[bytes, list[str]]:
    """Return a SKILL.md's bytes mended, and the rules that were broken. What breaks no rule stays as it is.

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
    text, broken = mend_encoding(data)
    if ignored & set(broken):
        return data, []
    text, broken = _apply((mend_line_ends, mend_fences), text, broken, ignored)
    end = text.find("\n---", 3)
    if text.startswith("---\n") and end >= 4 and text[end + 4 : end + 5] in ("\n", ""):
        block, broken = _apply((drop_controls, mend_tabs, mend_quotes), text[4:end], broken, ignored)
        block, more = mend_nodes(block, folder, ignored)
        broken = broken + more
        text = f"---\n{block}{text[end:]}"
    return (text.encode(), broken) if broken else (data, [])


def _apply(steps: Sequence[Step], text: str, broken: list[str], ignored: frozenset[str]) -> tuple[str, list[str]]:
    """Apply the steps one after the other, leaving out those that mend a rule which is to be ignored."""
    for step in steps:
        mended, more = step(text)
        if not ignored & set(more):
            text, broken = mended, broken + more
    return text, broken


def fix_skill(folder: SkillFolder) -> Iterator[str]:
    """Mend a skill's file in place and yield what was done, a line each.

    Nothing is written through a symlink that leads out of the folder the search began in, nor
    where a client would then do worse.
    """
    root = folder.root.resolve()
    if not folder.file.resolve().is_relative_to(root):
        yield f"nothing in {folder.file}: it lies outside of {folder.root}"
        return
    if folder.file_name != "SKILL.md" and not folder.file_is_link:
        target = folder.path / "SKILL.md"
        os.rename(folder.file, target)  # noqa: PTH104 - also where only the case differs
        yield f"{target}: renamed from {folder.file_name} [file-name]"
        folder.file_name = "SKILL.md"
    skill = read_skill(folder)
    marks = ignored(skill.text) or frozenset()
    if skill.unreadable or "*" in marks:
        return
    data, broken = mend(skill.data, folder.name, marks)
    if not broken or _worse(skill, data):
        return
    write_atomically(folder.file, data)
    yield f"{folder.file}: {', '.join(broken)}"


def _worse(before: SkillFile, data: bytes) -> bool:
    after = SkillFile(before.folder, data)
    ranks = {"loads": 0, "loads-with-changes": 1, "rejects": 2}
    return any(ranks[read(after).verdict] > ranks[read(before).verdict] for read in CLIENTS.values())
