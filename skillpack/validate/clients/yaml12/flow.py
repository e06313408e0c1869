"""The nodes of YAML 1.2 that are no block collections: scalars, aliases, what is in brackets, and their properties."""

from __future__ import annotations

import re
from dataclasses import dataclass

from skillpack.validate.clients.javascript import CORE, kind_of, shown_value
from skillpack.validate.clients.yaml12.scalars import block_text, fold, unescape
from skillpack.validate.clients.yaml12.scanner import BLANKS, REST, SPACES, Refused, Scanner, end, tab
from skillpack.validate.tree import Node

MAX_DEPTH = 100
"""Nodes within nodes that are read; nobody writes more, and the stack has an end."""
MAX_KEY = 1024
"""Characters from the beginning of a key to the colon behind it."""

_FLOW_INDICATOR = re.compile(r"[-?:](?=[ \t\r\n,\[\]{}]|\Z)")
_PLAIN_END = re.compile(r"[ \t\r]#|:(?=[ \t\r\n]|\Z)|\n|\Z")
_FLOW_PLAIN_END = re.compile(r"[ \t\r]#|[,\[\]{}]|:(?=[ \t\r\n,\[\]{}]|\Z)|\n|\Z")
_NAME = re.compile(r"[^ \t\r\n,\[\]{}]*")
_NAME_OF_BUN = re.compile(r"[^\x00-\x20\x7f,\[\]{}]*")
_TAG = re.compile(r"!(?:<[^ \t\r\n>]*>?|(?:[\w\-#;/?:@&=+$.!~*'()]|%[0-9A-Fa-f]{2})*)", re.ASCII)
_BEHIND_PROPERTY = ("", " ", "\t", "\n")
_QUOTED = {"'": re.compile(r"'(?:[^']|'')*'(?!')"), '"': re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)}
_HEADER = re.compile(r"[|>](?:([1-9])?([-+])?|([-+])([1-9]))(?=[ \t\n#]|\Z)")
_HEADER_OF_BUN = re.compile(r"[|>][ \t]*(?:([1-9])?[ \t]*([-+])?|([-+])[ \t]*([1-9]))(?=[ \t\n#]|\Z)")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Props:
    """The anchor and the tag before a node."""

    anchor: str | None = None
    tag: str | None = None


NO_PROPS = Props()


class FlowReader(Scanner):
    """Reads from ``pos`` on. Every method that reads a node leaves ``pos`` just behind it."""

    def __init__(self, text: str, bun: bool) -> None:
        super().__init__(text, bun)
        self.depth = 0
        self.anchors: set[str] = set()
        self._name = _NAME_OF_BUN if bun else _NAME

    def _leaf(self, parent: int, *, flow: bool = False) -> Node:
        """Read a node that is no block collection, within one whose entries begin in column ``parent``."""
        start, char = self.pos, self.text[self.pos]
        if char in "'\"":
            return self._quoted(parent + 1)
        if char in "[{":
            return self._flow(parent + 1)
        if char == "*":
            self._move(end(self._name, self.text, start + 1))
            name = self.text[start + 1 : self.pos]
            if name not in self.anchors:
                raise Refused(start, f"unresolved alias {name}", "yaml-start")
            return self._node("alias", start, name)
        if char in "|>" and not flow:
            return self._block_scalar(parent)
        if char in "]}@`%|>" or (char == "," and not self.bun):
            raise Refused(start, f"no value may begin with {char!r}")
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
            spaces = end(SPACES, text, at + 1)
            content = end(BLANKS, text, spaces)
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
                raise Refused(stop + 1, "a value over several lines must be indented", "yaml-indent")
            raise Refused(start, "a quote is not closed", "yaml-quote")
        self._move(stop)
        inner = text[start + 1 : stop - 1] + ('"' if match is None and quote == '"' else "")
        try:
            value = unescape(inner) if quote == '"' else fold(inner).replace("''", "'")
        except ValueError as error:
            raise Refused(start, f"unknown escape {error}") from None
        if quote == '"' and self.bun and _SURROGATE.search(value):
            raise Refused(start, "an escape stands for half a character")
        return self._node("scalar", start, value, quote)

    def _is_further_line(self, at: int, need: int) -> bool:
        """Tell whether a scalar in quotes may go on behind the line break ``at``."""
        text = self.text
        spaces = end(SPACES, text, at + 1)
        blank = end(BLANKS, text, spaces) if self.bun else spaces
        return text[blank] == "\n" or (spaces - at - 1 >= need and not (need == 0 and self._marker(at + 1)))

    def _block_scalar(self, parent: int) -> Node:
        """Read a scalar that begins with ``|`` or ``>``."""
        start, text = self.pos, self.text
        header = (_HEADER_OF_BUN if self.bun else _HEADER).match(text, start)
        if header is None:
            raise Refused(start, "nothing but an indentation and + or - may follow | or >", "yaml-block")
        self._take(len(header[0]))
        if not self._skip() and self.pos < len(text):
            raise Refused(self.pos, "nothing but a comment may follow | or >", "yaml-block")
        digit = header[1] or header[4]
        self.pos = min(len(text), end(REST, text, start) + 1)
        indent = max(parent, 0) + int(digit) if digit else -1
        lines: list[str] = []
        while self.pos < len(text):
            spaces = end(SPACES, text, self.pos)
            stop = end(REST, text, spaces)
            width = spaces - self.pos
            if stop > spaces:
                if indent < 0 and width > parent:
                    indent = width
                    if any(len(line) > indent for line in lines):
                        raise Refused(start, "blank lines are indented further than the text behind", "yaml-block")
                if indent < 0 or width < indent or (not indent and self._marker(self.pos)):
                    break
            lines.append(text[self.pos : stop])
            self.pos = min(len(text), stop + 1)
        self._start_line(self.pos)
        blank = not lines or (not lines[-1].strip(" ") and len(lines[-1]) < max(indent, 1))
        if text.startswith("\t", self.pos if self.bun else end(SPACES, text, self.pos)) and (blank or not self.bun):
            raise tab(self.pos)
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
            raise Refused(self.pos, f"it is nested more than {MAX_DEPTH} deep")
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
                raise Refused(self.pos, "nothing stands before a comma", "yaml-bracket")
            if char != "," and not comma:
                raise Refused(self.pos, "a comma is missing", "yaml-bracket")
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
            raise Refused(start, "a bracket is not closed", "yaml-bracket")
        if self.line_start == line_start:
            return
        if self.bun:
            free = char in "]}" or (char in ",:" and behind is not None and behind.kind == "scalar")
        else:
            free = char in "]}" and level == 1 and self._spaces() == need - 1
        if (self._spaces() < need and not free) or (not need and self._marker()):
            raise Refused(self.pos, "a value over several lines must be indented", "yaml-indent")

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
                raise Refused(first, "a key must be on a single line")
            self._take()
            self._flow_skip(start, need, level)
            value = self._flow_node(start, need, level)
        if node.kind == "map":
            self._add(node, seen, key, value or self._empty(self.pos, NO_PROPS))
        elif value is None and not explicit:
            node.items.append(key)
        else:
            pair = self._node("map", first, style="flow")
            pair.pairs.append((key, value or self._empty(self.pos, NO_PROPS)))
            node.items.append(pair)
        return value or key

    def _flow_indicator(self) -> str:
        match = _FLOW_INDICATOR.match(self.text, self.pos)
        return match[0] if match else ""

    def _flow_node(self, start: int, need: int, level: int, *, item: bool = False) -> Node:
        """Read a node of a flow collection, or find that there is none."""
        props = NO_PROPS
        while self.text[self.pos] in "&!":
            props = self._joined(props, self._property(flow=True, tight=item))
            self._flow_skip(start, need, level)
        char = self.text[self.pos]
        indicator = self._flow_indicator()
        if char in ",]}" or indicator == ":":
            return self._empty(self.pos, props)
        if indicator:
            raise Refused(self.pos, f"no value may begin with {indicator!r}", "yaml-bracket")
        if char in "[{":
            return self._with(self._flow(need, level + 1), props)
        return self._with(self._leaf(need - 1, flow=True), props)

    def _property(self, *, flow: bool, tight: bool = False) -> Props:
        """Read an anchor or a tag; if ``tight``, no blank is needed behind it."""
        start, props = self.pos, NO_PROPS
        if self.text[start] == "&":
            self._move(end(self._name, self.text, start + 1))
            props = Props(anchor=self.text[start + 1 : self.pos])
            self.anchors.add(self.text[start + 1 : self.pos])
        else:
            self._move(end(_TAG, self.text, start))
            props = Props(tag=self._resolved(self.text[start : self.pos], start))
        tight = tight or (self.bun and props.tag != "!" and (flow or props.tag is not None))
        behind = self.text[self.pos : self.pos + 1]
        if props.anchor == "" or not (tight or behind in _BEHIND_PROPERTY or (flow and behind in ",]}")):
            raise Refused(start, "an anchor or tag needs a name, and a blank behind it", "yaml-start")
        return props

    def _resolved(self, tag: str, at: int) -> str:
        if tag.startswith("!<"):
            if tag.endswith(">") and (tag != "!<>" if self.bun else tag not in ("!<!>", "!<!!>")):
                return tag[2:-1]
        elif tag == "!" or ("!" not in tag[1:] and (tag[1].isalnum() or tag[1] == "-" or not self.bun)):
            return tag
        elif tag.startswith("!!") and "!" not in tag[2:] and len(tag) > 2:
            return CORE + tag[2:]
        raise Refused(at, f"unknown tag {tag}", "yaml-tag")

    def _joined(self, one: Props, other: Props) -> Props:
        if (one.anchor and other.anchor) or (one.tag and other.tag):
            raise Refused(self.pos, "a value has at most one anchor and one tag")
        return Props(one.anchor or other.anchor, one.tag or other.tag) if other != NO_PROPS else one

    def _with(self, node: Node, props: Props) -> Node:
        if node.kind == "alias" and props != NO_PROPS:
            raise Refused(node.start, "an alias has neither anchor nor tag")
        node.anchor, node.tag = props.anchor, props.tag
        return node

    def _empty(self, at: int, props: Props) -> Node:
        """Return the node that stands where nothing does; Bun takes it for null in spite of a tag of somebody's own."""
        own = props.tag is not None and props.tag != "!" and not props.tag.startswith(CORE)
        return self._with(self._node("scalar", at), Props(props.anchor, None if self.bun and own else props.tag))

    def _add(self, node: Node, seen: set[tuple[str, str]], key: Node, value: Node) -> None:
        """Add a pair to a mapping; Bun lets the last of a key win."""
        if key.kind == "scalar" and not self.bun:
            kind = kind_of(key)
            identity = (kind, "" if kind == "null" else shown_value(key))
            if identity in seen:
                raise Refused(key.start, f"map keys must be unique: {key.value}", "yaml-duplicate")
            seen.add(identity)
        node.pairs.append((key, value))
