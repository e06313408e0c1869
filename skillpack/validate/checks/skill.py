"""A skill as the checks see it: frontmatter as its author meant it, body, and the text of its files."""

from __future__ import annotations

import os
import posixpath
from functools import cached_property

from skillpack.validate.problems import ignored
from skillpack.validate.source import BOM, SkillFile
from skillpack.validate.tree import Document, Node

PROSE = (".md", ".mdx", ".txt")
SCRIPTS = (".py", ".sh", ".bash", ".zsh", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".ps1", ".bat")
DATA = (".json", ".yaml", ".yml", ".toml", ".cfg", ".env")
MAX_TEXT = 1 << 20
"""A file of a skill beyond this size is not read by the checks."""


class Skill:
    """One skill, its parts read when they are asked for."""

    def __init__(self, source: SkillFile) -> None:
        self.source = source
        self.folder = source.folder
        self._texts: dict[str, str] = {source.folder.file_name: source.text}
        self._ignored: dict[str, frozenset[str] | None] = {}

    @cached_property
    def frontmatter(self) -> Document:
        """What the author meant, as far as libyaml reads it; empty where there is none."""
        block = self.source.written
        return self.source.yaml(block.text.replace("\r\n", "\n")) if block else Document("")

    @cached_property
    def fields(self) -> dict[str, Node]:
        """The frontmatter's values by key, aliases resolved; empty if it cannot be read."""
        root = self.frontmatter.root
        if root is None or root.kind != "map":
            return {}
        return {key.value: self.frontmatter.resolve(value) for key, value in root.pairs if key.kind == "scalar"}

    def field(self, key: str) -> str:
        """Return a text field, trimmed, or an empty string."""
        node = self.fields.get(key)
        return node.value.strip() if node is not None and node.kind == "scalar" else ""

    @property
    def name(self) -> str:
        """The name in the frontmatter, or else the folder's."""
        return self.field("name") or self.folder.name

    @property
    def description(self) -> str:
        """The description in the frontmatter, or an empty string."""
        return self.field("description")

    @cached_property
    def body_line(self) -> int:
        """Line of SKILL.md, from 0, that the body begins at."""
        block = self.source.written
        return self.source.text.count("\n", 0, block.end) if block else 0

    @cached_property
    def body(self) -> str:
        """The text behind the frontmatter, with LF line ends."""
        block = self.source.written
        text = self.source.text[block.end :] if block else self.source.text.removeprefix(BOM)
        return text.replace("\r\n", "\n")

    @cached_property
    def named(self) -> str:
        """What SKILL.md says: description and body."""
        return self.description + "\n" + self.body

    @cached_property
    def lowered(self) -> str:
        """The whole of SKILL.md in lower case."""
        return self.source.text.lower()

    @cached_property
    def paths(self) -> frozenset[str]:
        """Files of the skill and all folders that they lie in, relative, with ``/``; ``.`` for its own."""
        found = {"."}
        for file in self.folder.files:
            while file and file not in found:
                found.add(file)
                file = posixpath.dirname(file)
        return frozenset(found)

    @cached_property
    def text_files(self) -> list[str]:
        """SKILL.md and the files that are prose, scripts or data by their names."""
        others = (file for file in self.folder.files if file.endswith((*PROSE, *SCRIPTS, *DATA)))
        return list(dict.fromkeys((self.folder.file_name, *others)))

    @cached_property
    def by_name(self) -> dict[str, list[str]]:
        """Files of the skill by their base name in lower case."""
        found: dict[str, list[str]] = {}
        for file in self.folder.files:
            found.setdefault(posixpath.basename(file).lower(), []).append(file)
        return found

    def is_neighbour(self, path: str) -> bool:
        """Tell whether a path leads to something in a skill that lies beside this one."""
        beside = os.path.dirname(self.folder.path)  # noqa: PTH120 - a link may hold any text
        inside = os.path.relpath(path, beside).split("/")[0]
        return inside != ".." and os.path.isfile(f"{beside}/{inside}/SKILL.md") and os.path.exists(path)  # noqa: PTH110, PTH113

    def line(self, key: str) -> int:
        """Return the line of SKILL.md, from 1, of a frontmatter key; 1 if it is absent."""
        return self.frontmatter.line(key) + 2

    def text(self, file: str) -> str:
        """Return the text of a file below the skill; empty if it is no text, too large or unreadable."""
        if file not in self._texts:
            try:
                path = self.folder.path / file
                data = path.read_bytes() if path.stat().st_size <= MAX_TEXT and path.is_file() else b""
            except OSError:
                data = b""
            self._texts[file] = "" if b"\0" in data[:8192] else data.decode("utf-8", errors="replace")
        return self._texts[file]

    def ignored(self, file: str) -> frozenset[str] | None:
        """Return the rules that a file asks to be left out for it."""
        if file not in self._ignored:
            self._ignored[file] = ignored(self.text(file))
        return self._ignored[file]
