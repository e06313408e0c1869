"""What becomes of a YAML node in JavaScript, which Claude Code and ``npx skills`` are written in."""

from __future__ import annotations

import re

from skillpack.validate.tree import NULLS, Node

CORE = "tag:yaml.org,2002:"
"""What ``!!`` stands for at the beginning of a tag."""

MAX_DEPTH = 100
"""Lists within lists that are shown; nobody writes more, and the stack has an end."""

BLANKS = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
"""What ``trim`` takes off and ``\\s`` matches."""

_BOOLEAN = re.compile(r"[Tt]rue|TRUE|[Ff]alse|FALSE")
_NUMBER = re.compile(
    r"0o[0-7]+|0x[0-9a-fA-F]+|[-+]?[0-9]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


def kind_of(node: Node | None) -> str:
    """Return the type a resolved node has in JavaScript: undefined, null, boolean, number, string, array or object."""
    if node is None:
        return "undefined"
    if node.kind != "scalar":
        return "array" if node.kind == "seq" else "object"
    tag = node.tag.removeprefix(CORE) if node.tag else ""
    if node.style or (tag and tag not in ("int", "float", "bool", "null")):
        return "number" if tag in ("int", "float") and _NUMBER.fullmatch(node.value) else "string"
    if node.value in NULLS:
        return "null"
    if _BOOLEAN.fullmatch(node.value):
        return "boolean"
    return "number" if _NUMBER.fullmatch(node.value) else "string"


def shown_value(node: Node | None, depth: int = 0) -> str:
    """Return a scalar or list as JavaScript's ``String()`` would, odd characters back in place."""
    if node is None:
        return ""
    if node.kind == "map":
        return "[object Object]"
    if node.kind == "seq":
        return ",".join(shown_value(item, depth + 1) for item in node.items) if depth < MAX_DEPTH else ""
    kind = kind_of(node)
    if kind == "number":
        return _shown_number(node.value.lower())
    return node.value.lower() if kind == "boolean" else node.value


def _shown_number(text: str) -> str:
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text.removeprefix("+"))
    if digits in (".inf", ".nan"):
        return sign + "Infinity" if digits == ".inf" else "NaN"
    if digits[:2] in ("0x", "0o"):
        return sign + str(int(digits, 0))
    number = float(digits)
    return sign + (str(int(number)) if number.is_integer() and number < 1e21 else repr(number))


def falsy(node: Node | None) -> bool:
    """Tell whether JavaScript takes a resolved node for false."""
    kind = kind_of(node)
    if node is None or kind in ("undefined", "null"):
        return True
    if kind == "number":
        digits = node.value.lower().lstrip("+-")
        return digits == ".nan" or not digits.partition("e")[0].strip("0.ox")
    return (kind == "boolean" and node.value.lower() == "false") or (kind == "string" and not node.value)


def trim(text: str) -> str:
    """Return ``text`` without blanks at its ends."""
    return text.strip(BLANKS)
