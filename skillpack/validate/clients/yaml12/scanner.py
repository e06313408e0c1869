"""Where a reader of YAML 1.2 stands in its text, and what lies between two nodes there."""

from __future__ import annotations

import re
from bisect import bisect_left

from skillpack.validate.tree import Node

BLANKS = re.compile(r"[ \t]*")
SPACES = re.compile(r" *")
REST = re.compile(r"[^\n]*")
_MARKER = re.compile(r"(?:---|\.\.\.)(?=[ \t\r\n]|\Z)")
_INDICATOR = re.compile(r"[-?:](?=[ \t\r\n]|\Z)")


class Refused(Exception):
    """The text is not YAML: the offset, what is wrong, and the rule that is broken, if that is known."""

    def __init__(self, at: int, problem: str, rule: str = "") -> None:
        self.at, self.problem, self.rule = at, problem, rule


def tab(at: int) -> Refused:
    """Return the refusal of a tab in an indentation."""
    return Refused(at, "tabs are not allowed as indentation", "yaml-tab")


class Scanner:
    """A place in a text. ``bun`` tells Bun's rules from those of npm's ``yaml``."""

    def __init__(self, text: str, bun: bool) -> None:
        text = text.replace("\r\n", "\n")
        self.text = text.replace("\r", "\n") if bun else text
        self.bun = bun
        self.pos = self.line_start = int(text.startswith("\ufeff"))
        self.fresh = True
        """Whether there is nothing but blanks before ``pos`` on its line."""
        self.tabbed = False
        """Whether there is a tab in the blanks before ``pos``."""
        self.taken = 0
        """How many blank lines behind ``pos`` belong to the plain or block scalar that has just ended."""
        self.later = False
        """Whether ``pos`` is in or behind the value of a pair that is not the first of its mapping."""
        self._breaks = [match.start() for match in re.finditer("\n", self.text)]

    def place(self, at: int) -> tuple[int, int]:
        """Return the line and the column, from 0, of an offset."""
        line = bisect_left(self._breaks, at)
        return line, at - (self._breaks[line - 1] + 1 if line else 0)

    def _skip(self) -> bool:
        """Pass blanks, comments and line ends; tell whether there is nothing but blanks before ``pos`` on its line."""
        text = self.text
        while True:
            pos = end(BLANKS, text, self.pos)
            if pos > self.pos:
                self.tabbed = "\t" in text[self.pos : pos]
            char = text[pos : pos + 1]
            if char == "#":
                if pos > self.line_start and text[pos - 1] not in " \t":
                    raise Refused(pos, "a comment needs a blank before it")
                self._pass_blank_line(pos)
                self.taken, self.tabbed = 0, False
                pos = end(REST, text, pos)
                char = text[pos : pos + 1]
            elif not char or char == "\n":
                self._pass_blank_line(pos)
            self.pos = pos
            if char != "\n":
                return self.fresh
            self._start_line(pos + 1)

    def _pass_blank_line(self, until: int) -> None:
        """Refuse, as Bun does, a line of blanks or a comment that begins with a tab; first pairs may have some."""
        if self.pos == self.line_start:
            if self.later and not self.taken and self.text[self.pos : until].startswith("\t"):
                raise tab(until)
            self.taken = max(0, self.taken - 1)

    def _start_line(self, at: int) -> None:
        self.pos = self.line_start = at
        self.fresh, self.tabbed = True, False

    def _take(self, characters: int = 1) -> str:
        """Consume characters and return them."""
        start, self.pos = self.pos, self.pos + characters
        self.fresh = self.tabbed = False
        self.taken = 0
        return self.text[start : self.pos]

    def _move(self, to: int) -> None:
        """Consume all up to an offset, line breaks included."""
        last = self.text.rfind("\n", self.pos, to)
        if last >= 0:
            self.line_start = last + 1
        self._take(to - self.pos)

    def _marker(self, at: int | None = None) -> str:
        """Return the ``---`` or ``...`` that stands at the beginning of a line, if one does."""
        at = self.pos if at is None else at
        match = _MARKER.match(self.text, at) if at == self.line_start or self.text[at - 1] == "\n" else None
        return match[0] if match else ""

    def _ended(self) -> bool:
        return self.pos >= len(self.text) or (self.fresh and bool(self._marker()))

    def _column(self) -> int:
        return self.pos - self.line_start

    def _indicator(self) -> str:
        """Return the ``-``, ``?`` or ``:`` that a blank follows, if there is one at ``pos``."""
        match = _INDICATOR.match(self.text, self.pos)
        return match[0] if match else ""

    def _spaces(self) -> int:
        """Return how many spaces the line begins with."""
        return end(SPACES, self.text, self.line_start) - self.line_start

    def _node(self, kind: str, start: int, value: str = "", style: str = "") -> Node:
        """Return a node that ends at ``pos``."""
        line, column = self.place(start)
        end = max(start, self.pos)
        return Node(kind, line, column, start, value, style, end_line=self.place(end)[0], end=end)

    def _closed(self, node: Node, end: int) -> Node:
        node.end, node.end_line = end, self.place(end)[0]
        return node


def end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a pattern that matches everywhere ends."""
    match = pattern.match(text, at)
    return match.end() if match else at
