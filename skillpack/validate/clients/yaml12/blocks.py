"""The documents and the block collections of YAML 1.2: what is told by indentation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillpack.validate.clients.yaml12.flow import MAX_DEPTH, MAX_KEY, NO_PROPS, FlowReader, Props
from skillpack.validate.clients.yaml12.scanner import REST, Refused, end, tab
from skillpack.validate.tree import Node

_TAB_LINE = re.compile(r"[^\n]*\n( *)\t[ \t]*\n")
"""The rest of an entry without value before a line of blanks with a tab: indentation to npm's ``yaml``."""
_COLON = re.compile(r"[ \t]*:(?=[ \t\r\n]|\Z)")


class BlockReader(FlowReader):
    """Reads documents and block collections."""

    def documents(self) -> Iterator[Node | None]:
        """Yield the root of each document, None for one that is empty."""
        more = False
        if self.bun and "\0" in self.text:
            raise Refused(self.text.index("\0"), "a NUL character stands in it", "encoding-control")
        self._skip()
        while self.pos < len(self.text) or not more:
            opened = self._marker() == "---"
            if more and not self.bun:
                raise Refused(self.pos, "it holds more than one YAML document", "yaml-documents")
            if opened:
                self._take(3)
            root = self._block(-1, compact=not opened)
            yield None if root.plain and root.start == root.end and not root.anchor else root
            self._skip()
            if not self._ended():
                raise Refused(self.pos, "nothing may follow the end of a value")
            self._end_document()
            more = True

    def _end_document(self) -> None:
        """Pass over ``...``: to Bun however many, to npm's ``yaml`` one, and directives that no document follows."""
        while self._marker() == "...":
            self._take(3)
            if not self._skip() and self.pos < len(self.text):
                raise Refused(self.pos, "nothing may follow the end of a document on its line")
            if not self.bun:
                break
        else:
            return
        while self.pos == self.line_start and self.text.startswith("%", self.pos):
            self.pos = end(REST, self.text, self.pos)
            self._skip()

    def _block(self, parent: int, *, compact: bool, dash: bool = False, lead: int | None = None) -> Node:
        """Read what stands in an entry of a collection whose entries begin in column ``parent``.

        ``compact``: whether a collection may begin on this line. ``dash``: whether the entries of a
        list may begin in column ``parent`` too. ``lead``: the indentation of the line, if not ``parent``, that
        further lines of a scalar must be deeper than.
        """
        start, first = self.pos, -1
        outer = inner = NO_PROPS  # those of lines before, those of this line
        while True:
            if self._skip():
                compact = True
                outer, inner = self._joined(outer, inner), NO_PROPS
                if self._ended() and self.tabbed and not self.bun and self._spaces() <= parent:
                    raise tab(self.pos)
                if self._ended() or not self._belongs(parent, dash):
                    line = _TAB_LINE.match(self.text, start)
                    if line and len(line[1]) <= parent == self._column() and dash and not self.bun:
                        raise tab(line.end())
                    return self._empty(start, outer)
            elif self.pos == len(self.text):
                return self._empty(start, self._joined(outer, inner))
            if self.fresh and self.tabbed and self._spaces() <= parent:
                raise tab(self.pos)
            if self.text[self.pos] not in "&!":
                break
            first = first if inner != NO_PROPS else self.pos
            inner = self._joined(inner, self._property(flow=False))
        column = (first if inner != NO_PROPS else self.pos) - self.line_start
        indicator = self._indicator()
        if self.tabbed and indicator:
            raise tab(self.pos)
        if indicator and (not compact or (indicator == "-" and inner != NO_PROPS)):
            raise Refused(self.pos, f"no collection may begin here with {indicator!r}")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Refused(self.pos, f"it is nested more than {MAX_DEPTH} deep")
        lead = min(parent if lead is None else lead, self._column() - 1)
        node = self._content(lead, column, outer, inner, compact)
        self.depth -= 1
        return node

    def _content(self, lead: int, column: int, outer: Props, inner: Props, compact: bool) -> Node:
        indicator = self._indicator()
        if indicator == "-":
            return self._sequence(column, outer)
        if indicator:
            return self._mapping(column, outer, None, inner)
        tabbed = self.tabbed
        node = self._leaf(lead)
        if (
            not _COLON.match(self.text, self.pos)
            or self.fresh
            or (node.style == "flow" and not compact and not self.bun)
        ):
            return self._with(node, self._joined(outer, inner))
        if not compact:
            raise Refused(self.pos, "no mapping may begin behind a key on its line")
        if tabbed:
            raise tab(node.start)
        self._check_key(node)
        return self._mapping(column, outer, self._with(node, inner), NO_PROPS)

    def _belongs(self, parent: int, dash: bool) -> bool:
        column = self._column()
        return column > parent or (dash and column == parent and self._indicator() == "-")

    def _sequence(self, column: int, props: Props) -> Node:
        node = self._with(self._node("seq", self.pos), props)
        while True:
            self._take()
            node.items.append(self._block(column, compact=True))
            if not self._at_entry(column, colon=False) or self._indicator() != "-":
                break
        return self._closed(node, node.items[-1].end)

    def _mapping(self, column: int, props: Props, key: Node | None, key_props: Props) -> Node:
        node = self._with(self._node("map", key.start if key else self.pos), props)
        seen: set[tuple[str, str]] = set()
        later = self.later
        while True:
            self.later = later or (self.bun and bool(node.pairs))
            if key is None and self._indicator() == "?":
                key, explicit = self._explicit_key(column, key_props), True
            else:
                key, explicit = key or self._key(column, key_props), False
            colon = self._at_entry(column) and self._indicator() == ":" if explicit else self._indicator() != "?"
            if colon:
                lead = self._column() if self.fresh else column  # an indented colon counts as indentation
                self._move(end(_COLON, self.text, self.pos))
                value = self._block(column, compact=explicit, dash=True, lead=lead)
            else:
                value = self._empty(self.pos, NO_PROPS)
            self._add(node, seen, key, value)
            if not self._at_entry(column):
                self.later = later
                break
            key, key_props = self._list_as_key() if self._indicator() == "-" else None, NO_PROPS
        return self._closed(node, node.pairs[-1][1].end)

    def _explicit_key(self, column: int, props: Props) -> Node:
        """Read ``?`` and the key behind it; npm's ``yaml`` drops one node that is indented further than the ``?``."""
        self._take()
        key = self._with(self._block(column, compact=True, dash=True), props)
        if not self.bun and self._skip() and not self._ended() and self._column() > column and self._indicator() != ":":
            self._block(column, compact=True)
        return key

    def _at_entry(self, column: int, *, colon: bool = True) -> bool:
        """Go to what stands behind an entry and tell whether that is the next entry of this collection.

        npm's ``yaml`` takes a ``:`` anywhere behind a value for the beginning of an entry with an empty key.
        """
        fresh = self._skip()
        if self._ended():
            return False
        if not fresh or self._column() > column:
            if colon and self._indicator() == ":" and not self.bun and not self.tabbed:
                return True
            raise Refused(self.pos, "nothing but a further entry may follow here, in the column of the first")
        if self.tabbed:
            raise tab(self.pos)
        return self._column() == column

    def _key(self, column: int, props: Props) -> Node:
        """Read a key that a colon has to follow on its line.

        npm's ``yaml`` finds one on an indented next line too; Bun needs none if a line with ``?`` follows.
        """
        while self.text[self.pos : self.pos + 1] in ("&", "!"):
            props = self._joined(props, self._property(flow=False))
            if self._skip():
                raise Refused(self.pos, "a key may not be on another line than its anchor or tag")
        indicator = self._indicator()
        if indicator == ":":
            return self._empty(self.pos, props)
        if indicator or self.pos == len(self.text):
            raise Refused(self.pos, "a key is missing")
        node = self._leaf(self._column())
        alone = not _COLON.match(self.text, self.pos) and node.end_line == node.line and self._skip()
        if alone and self.bun:
            alone = self._indicator() == "?" and self._column() == column
        elif alone:
            alone = self._indicator() == ":" and self._spaces() > column
        if not alone:
            self._check_key(node)
        return self._with(node, props)

    def _list_as_key(self) -> Node:
        """Read ``- a: b`` where a key is due: Bun takes the list for one if a further colon follows it."""
        node = self._node("seq", self.pos)
        if self.bun:
            self._take()
            self._skip()
            item = self._node("map", self.pos)
            key = self._key(self._column(), NO_PROPS)
            self._move(end(_COLON, self.text, self.pos))
            if not self._skip() and self.pos < len(self.text):
                self._add(item, set(), key, self._leaf(self._column()))
                self._check_key(self._closed(item, self.pos))
                node.items.append(item)
                return node
        raise Refused(node.start, "a list may not stand among the keys of a mapping")

    def _check_key(self, node: Node) -> None:
        if self.fresh or node.end_line > node.line:
            raise Refused(node.start, "a key must be on a single line")
        if not _COLON.match(self.text, self.pos) or self.pos - node.start > MAX_KEY:
            raise Refused(node.start, "a key must be followed by a colon")
