"""The bytes of one SKILL.md, and the readings of it that several checks share."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from functools import cached_property

from skillpack.validate.discover import SkillFolder
from skillpack.validate.tree import Document, Fault, read_yaml

BOM = "\ufeff"

OPENAI_FILE = "agents/openai.yaml"

MAX_BYTES = 8 << 20
"""A file beyond this is not read: no client's model would be served by it."""


@dataclass(frozen=True, slots=True)
class Block:
    """The frontmatter as one client cuts it out of the file."""

    text: str
    line: int
    """Line of the file, from 0, that the block's first line is."""
    end: int
    """Offset in the file's text just behind the block and its closing fence."""
    ragged: bool = False
    """Whether the closing fence does not stand at the beginning of its line."""

    def file_line(self, line: int) -> int:
        """Return the number, from 1, of the file's line for a line of the block, from 0 (-1: the opening fence)."""
        return max(1, self.line + line + 1)


@dataclass
class SkillFile:
    """A skill's folder and the content of its SKILL.md."""

    folder: SkillFolder
    data: bytes
    unreadable: str = ""
    """Why the file could not be read; then ``data`` is empty."""
    _documents: dict[str, Document] = field(default_factory=dict)

    @property
    def unreadable_rule(self) -> str:
        """The rule that a file which cannot be read breaks."""
        return "file-missing" if self.folder.missing else "file-unreadable"

    @cached_property
    def text(self) -> str:
        """The content as UTF-8, a BOM kept, what is not UTF-8 as U+FFFD."""
        return self.data.decode("utf-8", errors="replace")

    @cached_property
    def invalid_at(self) -> int | None:
        """Offset of the first byte that is not UTF-8, or None."""
        try:
            self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            return error.start
        return None

    @cached_property
    def openai(self) -> Document | None:
        """What agents/openai.yaml says to Codex, or None if the skill has no such file."""
        if OPENAI_FILE not in self.folder.files:
            return None
        data, why = _read(f"{self.folder.path}/{OPENAI_FILE}")
        if why:
            return Document("", fault=Fault(0, 0, why))
        try:
            return self.yaml(data.decode("utf-8"))
        except UnicodeDecodeError as error:
            return Document("", fault=Fault(data.count(b"\n", 0, error.start), 0, "it is not UTF-8"))

    @cached_property
    def written(self) -> Block | None:
        """The frontmatter as its author meant it: from the first line, to the first ``---`` alone on a line."""
        text = self.text.removeprefix(BOM)
        shift = len(self.text) - len(text)
        lines = text.splitlines(keepends=True)
        if not lines or lines[0].strip() != "---":
            return None
        start = len(lines[0])
        end = start
        for line in lines[1:]:
            if line.rstrip() == "---":
                return Block(text[start:end], 1, shift + end + len(line))
            end += len(line)
        return None

    def cut_short(self, block: Block) -> bool:
        """Tell whether a client ends the frontmatter inside of a value, before its author does."""
        return block.ragged and self.written is not None and block.end < self.written.end

    def why_no_block(self) -> tuple[str, int]:
        """Return the rule and the line to blame for a frontmatter that a client does not find."""
        text = self.text
        if self.data.startswith((b"\xff\xfe", b"\xfe\xff")) or "\0" in text[:8]:
            return "encoding-utf16", 1
        if text.startswith(BOM):
            return "encoding-bom", 1
        if "\n" not in text and "\r" in text:
            return "line-ends", 1
        lines = text.splitlines()
        first = next((number for number, line in enumerate(lines) if line.strip()), None)
        if first is None:
            return "frontmatter-missing", 1
        if lines[first].strip() != "---":
            return ("fence-open" if lines[first].lstrip().startswith("---") else "frontmatter-missing"), first + 1
        if first or lines[0] != "---":
            return "fence-open", 1
        if len(lines) > 1 and lines[1].strip() == "---":
            return "frontmatter-missing", 1
        return "fence-close", 1

    def yaml(self, text: str) -> Document:
        """Return libyaml's reading of ``text``, read once however many ask."""
        if text.endswith("\n") and "|" not in text and ">" not in text:
            text = text[:-1]  # only a block scalar minds the last line break
        if text not in self._documents:
            self._documents[text] = read_yaml(text)
        return self._documents[text]


def read_skill(folder: SkillFolder) -> SkillFile:
    """Read a skill's file. Never raises: what stands in the way is told by ``unreadable``."""
    return SkillFile(folder, *_read(f"{folder.path}/{folder.file_name}"))


def _read(path: str) -> tuple[bytes, str]:
    """Return a file's bytes, or none of them and what stands in the way."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a third of the time of Path's, and there may be ten thousand
        if not stat.S_ISREG(status.st_mode):
            return b"", "it is not a regular file"
        if status.st_size > MAX_BYTES:
            return b"", f"it has {status.st_size:,} bytes, more than {MAX_BYTES:,}"
        with open(path, "rb") as stream:  # noqa: PTH123
            return stream.read(), ""
    except OSError as error:
        return b"", error.strerror or str(error)
