"""YAML 1.2 as the ``yaml`` package of npm (2.x, strict) and Bun's parser read it.

Both follow the specification closely, where libyaml (see ``tree``) is of YAML 1.1 and goes its own
ways. Where the two differ from each other is said by ``bun``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from skillpack.validate.clients.javascript import CORE, kind_of, shown_value
from skillpack.validate.clients.scalars import block_text, fold, unescape
from skillpack.validate.tree import Document, Fault, Node, read_yaml

MAX_DEPTH = 100
"""Nodes within nodes that are read; nobody writes more, and the stack has an end."""
MAX_KEY = 1024
"""Characters from the beginning of a key to the colon behind it."""

_BLANKS = re.compile(r"[ \t]*")
_SPACES = re.compile(r" *")
_REST = re.compile(r"[^\n]*")
_MARKER = re.compile(r"(?:---|\.\.\.)(?=[ \t\r\n]|\Z)")
_INDICATOR = re.compile(r"[-?:](?=[ \t\r\n]|\Z)")
_FLOW_INDICATOR = re.compile(r"[-?:](?=[ \t\r\n,\[\]{}]|\Z)")
_COLON = re.compile(r"[ \t]*:(?=[ \t\r\n]|\Z)")
_PLAIN_END = re.compile(r"[ \t\r]#|:(?=[ \t\r\n]|\Z)|\n|\Z")
_FLOW_PLAIN_END = re.compile(r"[ \t\r]#|[,\[\]{}]|:(?=[ \t\r\n,\[\]{}]|\Z)|\n|\Z")
_NAME = re.compile(r"[^ \t\r\n,\[\]{}]*")
_NAME_OF_BUN = re.compile(r"[^\x00-\x20\x7f,\[\]{}]*")
_TAG = re.compile(r"!(?:<[^ \t\r\n>]*>?|(?:[\w\-#;/?:@&=+$.!~*'()]|%[0-9A-Fa-f]{2})*)", re.ASCII)
_BEHIND_PROPERTY = ("", " ", "\t", "\n")
_QUOTED = {"'": re.compile(r"'(?:[^']|'')*'(?!')"), '"': re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)}
_HEADER = re.compile(r"[|>](?:([1-9])?([-+])?|([-+])([1-9]))(?=[ \t\n#]|\Z)")
_HEADER_OF_BUN = re.compile(r"[|>][ \t]*(?:([1-9])?[ \t]*([-+])?|([-+])[ \t]*([1-9]))(?=[ \t\n#]|\Z)")
_CHARACTER = r"[ -~\xa1-\u1fff\u2010-\u2027\u2030-\ud7ff\uff00-\uffef\U00010000-\U000effff]"
_WORDS = rf"[\w(/$.](?:(?![:#]){_CHARACTER}|:(?=[!-~])|(?<! )#)*"
_VALUE = rf"""(?:{_WORDS}|"(?:(?!["\\]){_CHARACTER})*"|'(?:(?!'){_CHARACTER})*')"""
_TAME = re.compile(
    rf"(?: *[A-Za-z][\w-]*:(?: +{_VALUE})?(?:\n|\Z)| *- +{_VALUE}(?:\n|\Z)| +{_WORDS}(?:\n|\Z)| *(?:#{_CHARACTER}*)?\n"
    rf"|[A-Za-z][\w-]*: +[|>][-+]? *\n(?:(?: {_CHARACTER}*)?\n)*(?: {_CHARACTER}*\Z|(?![ \n])))*",
    re.ASCII,
)
"""Lines so plain that libyaml reads them in the same way, if it takes them at all; and it is faster."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Refused(Exception):
    def __init__(self, at: int, problem: str, rule: str = "") -> None:
        self.at, self.problem, self.rule = at, problem, rule


@dataclass(frozen=True, slots=True)
class _Props:
    anchor: str | None = None
    tag: str | None = None


_NO_PROPS = _Props()


def read_yaml12(text: str, libyaml: Callable[[str], Document] = read_yaml, *, bun: bool = False) -> Document:
    """Return the reading of ``text`` by npm's ``yaml``, or by Bun. Never raises: a fault is part of the answer.

    ``libyaml`` is asked about plain texts.
    """
    if _TAME.fullmatch(text):
        document = libyaml(text)
        if document.fault is None and document.duplicate is None:
            return document
    reader = _Reader(text, bun)
    document = Document(text, documents=0)
    try:
        for root in reader.documents():
            document.documents += 1
            document.root = document.root or root
            document.odd = bool(reader.anchors)
    except _Refused as refused:
        line, column = reader.place(refused.at)
        return Document(text, fault=Fault(line, column, refused.problem, refused.rule))
    return document


class _Reader:
    """Reads from ``pos`` on. Every method that reads a node leaves ``pos`` just behind it."""

    def __init__(self, text: str, bun: bool) -> None:
        text = text.replace("\r\n", "\n")
        self.text = text.replace("\r", "\n") if bun else text
        self.bun = bun
        self.name = _NAME_OF_BUN if bun else _NAME
        self.pos = self.line_start = int(text.startswith("\ufeff"))
        self.fresh = True
        """Whether there is nothing but blanks before ``pos`` on its line."""
        self.tabbed = False
        """Whether there is a tab in the blanks before ``pos``."""
        self.taken = 0
        """How many blank lines behind ``pos`` belong to the plain or block scalar that has just ended."""
        self.later = False
        """Whether ``pos`` is in or behind the value of a pair that is not the first of its mapping."""
        self.depth = 0
        self.anchors: set[str] = set()
        self._breaks = [match.start() for match in re.finditer("\n", self.text)]

    def place(self, at: int) -> tuple[int, int]:
        """Return the line and the column, from 0, of an offset."""
        line = bisect_left(self._breaks, at)
        return line, at - (self._breaks[line - 1] + 1 if line else 0)

    def documents(self) -> Iterator[Node | None]:
        """Yield the root of each document, None for one that is empty."""
        more = False
        if self.bun and "\0" in self.text:
            raise _Refused(self.text.index("\0"), "a NUL character stands in it", "encoding-control")
        self._skip()
        while self.pos < len(self.text) or not more:
            opened = self._marker() == "---"
            if more and not self.bun:
                raise _Refused(self.pos, "it holds more than one YAML document", "yaml-documents")
            if opened:
                self._take(3)
            root = self._block(-1, compact=not opened)
            yield None if root.plain and root.start == root.end and not root.anchor else root
            self._skip()
            if not self._ended():
                raise _Refused(self.pos, "nothing may follow the end of a value")
            if self._marker() == "...":
                self._take(3)
                if not self._skip() and self.pos < len(self.text):
                    raise _Refused(self.pos, "nothing may follow the end of a document on its line")
            more = True

    def _skip(self) -> bool:
        """Pass blanks, comments and line ends; tell whether there is nothing but blanks before ``pos`` on its line."""
        text = self.text
        while True:
            pos = _end(_BLANKS, text, self.pos)
            if pos > self.pos:
                self.tabbed = "\t" in text[self.pos : pos]
            char = text[pos : pos + 1]
            if char == "#":
                if pos > self.line_start and text[pos - 1] not in " \t":
                    raise _Refused(pos, "a comment needs a blank before it")
                self._pass_blank_line(pos)
                self.taken, self.tabbed = 0, False
                pos = _end(_REST, text, pos)
                char = text[pos : pos + 1]
            elif not char or char == "\n":
                self._pass_blank_line(pos)
            self.pos = pos
            if char != "\n":
                return self.fresh
            self._start_line(pos + 1)

    def _pass_blank_line(self, end: int) -> None:
        """Refuse, as Bun does, a line of blanks or a comment that begins with a tab; first pairs may have some."""
        if self.pos == self.line_start:
            if self.later and not self.taken and self.text[self.pos : end].startswith("\t"):
                raise _Refused(end, "tabs are not allowed as indentation", "yaml-tab")
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

    # Nodes of block collections

    def _block(self, parent: int, *, compact: bool, dash: bool = False, lead: int | None = None) -> Node:
        """Read what stands in an entry of a collection whose entries begin in column ``parent``.

        ``compact``: whether a collection may begin on this line. ``dash``: whether the entries of a
        list may begin in column ``parent`` too. ``lead``: the indentation of the line, if not ``parent``, that
        further lines of a scalar must be deeper than.
        """
        start, first = self.pos, -1
        outer = inner = _NO_PROPS  # those of lines before, those of this line
        while True:
            if self._skip():
                compact = True
                outer, inner = self._joined(outer, inner), _NO_PROPS
                if self._ended() and self.tabbed and not self.bun and self._spaces() <= parent:
                    raise _Refused(self.pos, "tabs are not allowed as indentation", "yaml-tab")
                if self._ended() or not self._belongs(parent, dash):
                    return self._empty(start, outer)
            elif self.pos == len(self.text):
                return self._empty(start, self._joined(outer, inner))
            if self.fresh and self.tabbed and self._spaces() <= parent:
                raise _Refused(self.pos, "tabs are not allowed as indentation", "yaml-tab")
            if self.text[self.pos] not in "&!":
                break
            first = first if inner != _NO_PROPS else self.pos
            inner = self._joined(inner, self._property(flow=False))
        column = (first if inner != _NO_PROPS else self.pos) - self.line_start
        indicator = self._indicator()
        if self.tabbed and indicator:
            raise _Refused(self.pos, "tabs are not allowed as indentation", "yaml-tab")
        if indicator and (not compact or (indicator == "-" and inner != _NO_PROPS)):
            raise _Refused(self.pos, f"no collection may begin here with {indicator!r}")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _Refused(self.pos, f"it is nested more than {MAX_DEPTH} deep")
        lead = min(parent if lead is None else lead, self._column() - 1)
        node = self._content(lead, column, outer, inner, compact)
        self.depth -= 1
        return node

    def _content(self, lead: int, column: int, outer: _Props, inner: _Props, compact: bool) -> Node:
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
            raise _Refused(self.pos, "no mapping may begin behind a key on its line")
        if tabbed:
            raise _Refused(node.start, "tabs are not allowed as indentation", "yaml-tab")
        self._check_key(node)
        return self._mapping(column, outer, self._with(node, inner), _NO_PROPS)

    def _belongs(self, parent: int, dash: bool) -> bool:
        column = self._column()
        return column > parent or (dash and column == parent and self._indicator() == "-")

    def _spaces(self) -> int:
        return _end(_SPACES, self.text, self.line_start) - self.line_start

    def _sequence(self, column: int, props: _Props) -> Node:
        node = self._with(self._node("seq", self.pos), props)
        while True:
            self._take()
            node.items.append(self._block(column, compact=True))
            if not self._at_entry(column, colon=False) or self._indicator() != "-":
                break
        return self._closed(node, node.items[-1].end)

    def _mapping(self, column: int, props: _Props, key: Node | None, key_props: _Props) -> Node:
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
                self._move(_end(_COLON, self.text, self.pos))
                value = self._block(column, compact=explicit, dash=True, lead=lead)
            else:
                value = self._empty(self.pos, _NO_PROPS)
            self._add(node, seen, key, value)
            if not self._at_entry(column):
                self.later = later
                break
            key, key_props = self._list_as_key() if self._indicator() == "-" else None, _NO_PROPS
        return self._closed(node, node.pairs[-1][1].end)

    def _explicit_key(self, column: int, props: _Props) -> Node:
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
            raise _Refused(self.pos, "nothing but a further entry may follow here, in the column of the first")
        if self.tabbed:
            raise _Refused(self.pos, "tabs are not allowed as indentation", "yaml-tab")
        return self._column() == column

    def _key(self, column: int, props: _Props) -> Node:
        """Read a key that a colon has to follow on its line.

        npm's ``yaml`` finds one on an indented next line too; Bun needs none if a line with ``?`` follows.
        """
        while self.text[self.pos : self.pos + 1] in ("&", "!"):
            props = self._joined(props, self._property(flow=False))
            if self._skip():
                raise _Refused(self.pos, "a key may not be on another line than its anchor or tag")
        indicator = self._indicator()
        if indicator == ":":
            return self._empty(self.pos, props)
        if indicator or self.pos == len(self.text):
            raise _Refused(self.pos, "a key is missing")
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
            key = self._key(self._column(), _NO_PROPS)
            self._move(_end(_COLON, self.text, self.pos))
            if not self._skip() and self.pos < len(self.text):
                self._add(item, set(), key, self._leaf(self._column()))
                self._check_key(self._closed(item, self.pos))
                node.items.append(item)
                return node
        raise _Refused(node.start, "a list may not stand among the keys of a mapping")

    def _check_key(self, node: Node) -> None:
        if self.fresh or node.end_line > node.line:
            raise _Refused(node.start, "a key must be on a single line")
        if not _COLON.match(self.text, self.pos) or self.pos - node.start > MAX_KEY:
            raise _Refused(node.start, "a key must be followed by a colon")

    def _add(self, node: Node, seen: set[tuple[str, str]], key: Node, value: Node) -> None:
        """Add a pair to a mapping; Bun lets the last of a key win."""
        if key.kind == "scalar" and not self.bun:
            kind = kind_of(key)
            identity = (kind, "" if kind == "null" else shown_value(key))
            if identity in seen:
                raise _Refused(key.start, f"map keys must be unique: {key.value}", "yaml-duplicate")
            seen.add(identity)
        node.pairs.append((key, value))

    # Properties

    def _property(self, *, flow: bool, tight: bool = False) -> _Props:
        """Read an anchor or a tag; if ``tight``, no blank is needed behind it."""
        start, props = self.pos, _NO_PROPS
        if self.text[start] == "&":
            self._move(_end(self.name, self.text, start + 1))
            props = _Props(anchor=self.text[start + 1 : self.pos])
            self.anchors.add(self.text[start + 1 : self.pos])
        else:
            self._move(_end(_TAG, self.text, start))
            props = _Props(tag=self._resolved(self.text[start : self.pos], start))
        tight = tight or (self.bun and props.tag != "!" and (flow or props.tag is not None))
        behind = self.text[self.pos : self.pos + 1]
        if props.anchor == "" or not (tight or behind in _BEHIND_PROPERTY or (flow and behind in ",]}")):
            raise _Refused(start, "an anchor or tag needs a name, and a blank behind it", "yaml-start")
        return props

    def _resolved(self, tag: str, at: int) -> str:
        if tag.startswith("!<"):
            if tag.endswith(">") and (tag != "!<>" if self.bun else tag not in ("!<!>", "!<!!>")):
                return tag[2:-1]
        elif tag == "!" or ("!" not in tag[1:] and (tag[1].isalnum() or tag[1] == "-" or not self.bun)):
            return tag
        elif tag.startswith("!!") and "!" not in tag[2:] and len(tag) > 2:
            return CORE + tag[2:]
        raise _Refused(at, f"unknown tag {tag}", "yaml-tag")

    def _joined(self, one: _Props, other: _Props) -> _Props:
        if (one.anchor and other.anchor) or (one.tag and other.tag):
            raise _Refused(self.pos, "a value has at most one anchor and one tag")
        return _Props(one.anchor or other.anchor, one.tag or other.tag) if other != _NO_PROPS else one

    def _with(self, node: Node, props: _Props) -> Node:
        if node.kind == "alias" and props != _NO_PROPS:
            raise _Refused(node.start, "an alias has neither anchor nor tag")
        node.anchor, node.tag = props.anchor, props.tag
        return node

    def _empty(self, at: int, props: _Props) -> Node:
        """Return the node that stands where nothing does; Bun takes it for null in spite of a tag of somebody's own."""
        own = props.tag is not None and props.tag != "!" and not props.tag.startswith(CORE)
        return self._with(self._node("scalar", at), _Props(props.anchor, None if self.bun and own else props.tag))

    def _node(self, kind: str, start: int, value: str = "", style: str = "") -> Node:
        """Return a node that ends at ``pos``."""
        line, column = self.place(start)
        end = max(start, self.pos)
        return Node(kind, line, column, start, value, style, end_line=self.place(end)[0], end=end)

    # Scalars, aliases and flow collections

    def _leaf(self, parent: int, *, flow: bool = False) -> Node:
        """Read a node that is no block collection, within one whose entries begin in column ``parent``."""
        start, char = self.pos, self.text[self.pos]
        if char in "'\"":
            return self._quoted(parent + 1)
        if char in "[{":
            return self._flow(parent + 1)
        if char == "*":
            self._move(_end(self.name, self.text, start + 1))
            name = self.text[start + 1 : self.pos]
            if name not in self.anchors:
                raise _Refused(start, f"unresolved alias {name}", "yaml-start")
            return self._node("alias", start, name)
        if char in "|>" and not flow:
            return self._block_scalar(parent)
        if char in "]}@`%|>" or (char == "," and not self.bun):
            raise _Refused(start, f"no value may begin with {char!r}")
        value = self._plain(parent + 1, _FLOW_PLAIN_END if flow else _PLAIN_END)
        self.taken = 0 if flow else len(self.text)
        return self._node("scalar", start, value)

    def _plain(self, need: int, ending: re.Pattern[str]) -> str:
        """Read a scalar without quotes whose further lines are indented by ``need``."""
        start, text = self.pos, self.text
        while True:
            found = ending.search(text, self.pos)
            assert found is not None
            stop = found.start()
            self._move(self.pos + len(text[self.pos : stop].rstrip(" \t")))
            goes_on = self._further_line(stop, need) if text[stop : stop + 1] == "\n" else -1
            if goes_on < 0 or ending.match(text, goes_on) or text[goes_on] == "#":
                return fold(text[start : self.pos])
            self._move(goes_on)

    def _further_line(self, at: int, need: int) -> int:
        """Return where a plain scalar goes on behind the line break ``at``, or -1 if it does not."""
        text = self.text
        while True:
            spaces = _end(_SPACES, text, at + 1)
            content = _end(_BLANKS, text, spaces)
            blank = text[content : content + 1] == "\n"
            if not (blank and (self.bun or content == spaces)) and spaces - at - 1 < need:
                return -1
            if not blank:
                ended = content == len(text) or (content == at + 1 and self._marker(content))
                return -1 if ended else content
            at = content

    def _quoted(self, need: int) -> Node:
        """Read a scalar in quotes whose further lines are indented by ``need``, but for blank ones."""
        start, text, quote = self.pos, self.text, self.text[self.pos]
        match = _QUOTED[quote].match(text, start)
        stop = match.end() if match else len(text)
        for line in re.finditer("\n", text[start:stop]) if match else ():
            if not self._is_further_line(start + line.start(), need):
                match, stop = None, start + line.start()
                break
        # npm's yaml is content with what stands before if that ends in such a quote, escaped or not
        if match is None and (self.bun or stop == start + 1 or text[stop - 1] != quote):
            if stop < len(text):
                raise _Refused(stop + 1, "a value over several lines must be indented", "yaml-indent")
            raise _Refused(start, "a quote is not closed", "yaml-quote")
        self._move(stop)
        inner = text[start + 1 : stop - 1] + ('"' if match is None and quote == '"' else "")
        try:
            value = unescape(inner) if quote == '"' else fold(inner).replace("''", "'")
        except ValueError as error:
            raise _Refused(start, f"unknown escape {error}") from None
        if quote == '"' and self.bun and _SURROGATE.search(value):
            raise _Refused(start, "an escape stands for half a character")
        return self._node("scalar", start, value, quote)

    def _is_further_line(self, at: int, need: int) -> bool:
        """Tell whether a scalar in quotes may go on behind the line break ``at``."""
        text = self.text
        spaces = _end(_SPACES, text, at + 1)
        blank = _end(_BLANKS, text, spaces) if self.bun else spaces
        return text[blank] == "\n" or (spaces - at - 1 >= need and not (need == 0 and self._marker(at + 1)))

    def _block_scalar(self, parent: int) -> Node:
        """Read a scalar that begins with ``|`` or ``>``."""
        start, text = self.pos, self.text
        header = (_HEADER_OF_BUN if self.bun else _HEADER).match(text, start)
        if header is None:
            raise _Refused(start, "nothing but an indentation and + or - may follow | or >", "yaml-block")
        self._take(len(header[0]))
        if not self._skip() and self.pos < len(text):
            raise _Refused(self.pos, "nothing but a comment may follow | or >", "yaml-block")
        digit = header[1] or header[4]
        self.pos = min(len(text), _end(_REST, text, start) + 1)
        indent = max(parent, 0) + int(digit) if digit else -1
        lines: list[str] = []
        while self.pos < len(text):
            spaces = _end(_SPACES, text, self.pos)
            stop = _end(_REST, text, spaces)
            width = spaces - self.pos
            if stop > spaces:
                if indent < 0 and width > parent:
                    indent = width
                    if any(len(line) > indent for line in lines):
                        raise _Refused(start, "blank lines are indented further than the text behind", "yaml-block")
                if indent < 0 or width < indent or (not indent and self._marker(self.pos)):
                    break
            lines.append(text[self.pos : stop])
            self.pos = min(len(text), stop + 1)
        self._start_line(self.pos)
        blank = not lines or (not lines[-1].strip(" ") and len(lines[-1]) < max(indent, 1))
        if text.startswith("\t", self.pos if self.bun else _end(_SPACES, text, self.pos)) and (blank or not self.bun):
            raise _Refused(self.pos, "tabs are not allowed as indentation", "yaml-tab")
        self.taken = 1
        value = block_text(lines, max(indent, 0), folded=text[start] == ">", chomp=header[2] or header[3] or "")
        return self._node("scalar", start, value, text[start])

    def _flow(self, need: int, level: int = 1) -> Node:
        """Read a collection in brackets or braces whose further lines are indented by ``need``."""
        start = self.pos
        closing = "]" if self._take() == "[" else "}"
        node = self._node("seq" if closing == "]" else "map", start, style="flow")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _Refused(self.pos, f"it is nested more than {MAX_DEPTH} deep")
        later, self.later = self.later, False
        seen: set[tuple[str, str]] = set()
        comma = True
        last: Node | None = None
        while True:
            self._flow_skip(start, need, level, last)
            last = None
            char = self.text[self.pos]
            if char == closing:
                break
            if char == "," and comma:
                raise _Refused(self.pos, "nothing stands before a comma", "yaml-bracket")
            if char != "," and not comma:
                raise _Refused(self.pos, "a comma is missing", "yaml-bracket")
            comma = char == ","
            if comma:
                self._take()
            else:
                last = self._flow_entry(node, seen, start, need, level)
        self._take()
        self.later = later
        self.depth -= 1
        return self._closed(node, self.pos)

    def _flow_skip(self, start: int, need: int, level: int, behind: Node | None = None) -> None:
        """Pass what stands between the parts of a flow collection, and check the indentation of a further line."""
        line_start = self.line_start
        self._skip()
        char = self.text[self.pos : self.pos + 1]
        if not char:
            raise _Refused(start, "a bracket is not closed", "yaml-bracket")
        if self.line_start == line_start:
            return
        if self.bun:
            free = char in "]}" or (char in ",:" and behind is not None and behind.kind == "scalar")
        else:
            free = char in "]}" and level == 1 and self._spaces() == need - 1
        if (self._spaces() < need and not free) or (not need and self._marker()):
            raise _Refused(self.pos, "a value over several lines must be indented", "yaml-indent")

    def _flow_entry(self, node: Node, seen: set[tuple[str, str]], start: int, need: int, level: int) -> Node:
        """Read an item or a pair, and return the last node of it."""
        first, line_start = self.pos, self.line_start
        explicit = self._flow_indicator() == "?"
        if explicit:
            self._take()
            self._flow_skip(start, need, level)
        key = self._flow_node(start, need, level, item=node.kind == "seq")
        tight = key.style in ("flow", "'", '"')  # then no blank is needed behind the colon
        self._flow_skip(start, need, level, key)
        colon = self.text[self.pos] == ":" and (tight or self._flow_indicator() == ":")
        if not colon:
            value = None
        else:
            if node.kind == "seq" and not explicit and (self.line_start > line_start or self.pos - first > MAX_KEY):
                raise _Refused(first, "a key must be on a single line")
            self._take()
            self._flow_skip(start, need, level)
            value = self._flow_node(start, need, level)
        if node.kind == "map":
            self._add(node, seen, key, value or self._empty(self.pos, _NO_PROPS))
        elif value is None and not explicit:
            node.items.append(key)
        else:
            pair = self._node("map", first, style="flow")
            pair.pairs.append((key, value or self._empty(self.pos, _NO_PROPS)))
            node.items.append(pair)
        return value or key

    def _flow_indicator(self) -> str:
        match = _FLOW_INDICATOR.match(self.text, self.pos)
        return match[0] if match else ""

    def _flow_node(self, start: int, need: int, level: int, *, item: bool = False) -> Node:
        """Read a node of a flow collection, or find that there is none."""
        props = _NO_PROPS
        while self.text[self.pos] in "&!":
            props = self._joined(props, self._property(flow=True, tight=item))
            self._flow_skip(start, need, level)
        char = self.text[self.pos]
        indicator = self._flow_indicator()
        if char in ",]}" or indicator == ":":
            return self._empty(self.pos, props)
        if indicator:
            raise _Refused(self.pos, f"no value may begin with {indicator!r}", "yaml-bracket")
        if char in "[{":
            return self._with(self._flow(need, level + 1), props)
        return self._with(self._leaf(need - 1, flow=True), props)

    def _closed(self, node: Node, end: int) -> Node:
        node.end, node.end_line = end, self.place(end)[0]
        return node


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a pattern that matches everywhere ends."""
    match = pattern.match(text, at)
    return match.end() if match else at
