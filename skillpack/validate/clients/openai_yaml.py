"""``agents/openai.yaml`` as Codex (0.171) reads it: how a skill is shown, and for which products it is.

The file is all or nothing: one field of a wrong type, and Codex passes over all of it without a
word. A text that is too long, a colour or an icon's path that will not do, is dropped alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from skillpack.validate.clients.serde import (
    BLANKS,
    Mismatch,
    choice,
    flag,
    items,
    load,
    one_line,
    optional,
    struct,
    text,
)
from skillpack.validate.source import SkillFile
from skillpack.validate.tree import Document, Fault

MAX_NAME, MAX_TEXT = 64, 1024
LIMITS = {"display_name": MAX_NAME, "short_description": MAX_TEXT, "default_prompt": MAX_TEXT}
ICONS = ("icon_small", "icon_large")
TOOL_LIMITS = dict.fromkeys(("value", "description", "command", "url"), MAX_TEXT)
TOOL_LIMITS |= dict.fromkeys(("type", "transport"), MAX_NAME)
PRODUCTS = ("chatgpt", "codex", "atlas")

KEYS = {
    "interface": (*LIMITS, *ICONS, "brand_color"),
    "dependencies": ("tools",),
    "policy": ("allow_implicit_invocation", "products"),
}
"""The keys that Codex reads, by the key that they stand under."""

_COLOR = re.compile(r"#[0-9A-Fa-f]{6}")
_READ = struct(
    {
        "interface": optional(struct(dict.fromkeys(KEYS["interface"], text))),
        "dependencies": optional(struct({"tools": items(struct(dict.fromkeys(TOOL_LIMITS, text)))})),
        "policy": optional(
            struct(
                {
                    "allow_implicit_invocation": flag,
                    "products": items(choice(*PRODUCTS, *(product.upper() for product in PRODUCTS))),
                }
            )
        ),
    }
)


@dataclass
class OpenAI:
    """What Codex takes from the file."""

    interface: dict[str, str] = field(default_factory=dict)
    """The fields of ``interface`` that it shows, an icon's path relative to the skill."""
    tools: list[dict[str, str]] = field(default_factory=list)
    products: list[str] = field(default_factory=list)
    """The products that the skill is for; none means all."""
    implicit: bool = True
    """Whether the model may choose the skill itself."""
    dropped: list[tuple[tuple[str | int, ...], str]] = field(default_factory=list)
    """The way to each field that is dropped, and why."""

    @property
    def for_codex(self) -> bool:
        """Whether Codex lists the skill at all."""
        return not self.products or "codex" in self.products


def read(skill: SkillFile) -> OpenAI | Fault:
    """Return what Codex takes from a skill's file, or why it passes over the file."""
    document = skill.openai
    if document is None or (document.fault is None and document.root is None):
        return OpenAI()
    try:
        fields = load(document, _READ)
    except Mismatch as mismatch:
        return mismatch.fault
    policy = fields.get("policy") or {}
    taken = OpenAI(
        products=[product.lower() for product in policy.get("products", ())],
        implicit=policy.get("allow_implicit_invocation") is not False,
    )
    _read_interface(fields.get("interface") or {}, taken)
    for number, tool in enumerate((fields.get("dependencies") or {}).get("tools", ())):
        _read_tool(number, tool, taken)
    return taken


def _read_interface(interface: dict[str, str | None], taken: OpenAI) -> None:
    for key, value in interface.items():
        if not value:
            shown, why = "", "is empty (an unquoted # begins a comment)"
        elif key in ICONS:
            shown, why = _icon(value)
        elif key == "brand_color":
            shown = value.strip(BLANKS)
            why = "" if _COLOR.fullmatch(shown) else f"{value!r} is not #RRGGBB"
        else:
            shown, why = _short(value, LIMITS[key])
        if why:
            taken.dropped.append((("interface", key), why))
        else:
            taken.interface[key] = shown


def _read_tool(number: int, tool: dict[str, str | None], taken: OpenAI) -> None:
    place: tuple[str | int, ...] = ("dependencies", "tools", number)
    shown = {}
    for key, value in tool.items():
        if value is not None:
            words, why = _short(value, TOOL_LIMITS[key])
            if why:
                taken.dropped.append(((*place, key), why))
            else:
                shown[key] = words
    if "type" in shown and "value" in shown:
        taken.tools.append(shown)
    else:
        taken.dropped.append((place, "needs a type and a value"))


def _short(value: str, limit: int) -> tuple[str, str]:
    shown = one_line(value)
    if len(shown) > limit:
        return "", f"has {len(shown)} characters, Codex takes {limit}"
    return shown, "" if shown else "is empty"


def _icon(value: str) -> tuple[str, str]:
    path = PurePosixPath(value)
    if not path.is_absolute() and ".." not in path.parts and path.parts[:1] == ("assets",):
        return str(path), ""
    return "", f"{value} does not lie in assets/"


def place_of(document: Document, way: tuple[str | int, ...]) -> int:
    """Return the line, from 0, of the field at the end of a way through mappings and lists."""
    node: Any = document.root
    for step in way:
        found = node.items[step] if isinstance(step, int) else node.get(step)
        node = document.resolve(found)
    line: int = node.line
    return line
