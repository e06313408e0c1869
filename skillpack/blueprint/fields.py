"""The vocabulary of blueprints, from ``fields.yaml``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_DECORATION = re.compile(r"[\s_\-*`#\[\]【】<>:：]+")
_OWN_NAME = re.compile(r"exp_[a-z_]*[a-z]", re.IGNORECASE)
_NUMBER = re.compile(r"^(?:\d+|[一二三四五六七八九十]+)[.)、．]\s*")


@dataclass(frozen=True)
class Field:
    """A field: its name, its kind (text, path, command, duration, url) and whether a run needs it."""

    name: str
    kind: str
    required: bool


@cache
def vocabulary() -> dict[str, Any]:
    """Return ``fields.yaml`` as it is."""
    data: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "fields.yaml").read_text(encoding="utf-8"))
    return data


@cache
def fields() -> dict[str, Field]:
    """Return the fields by name, in the order in which a blueprint is written."""
    return {name: Field(name, entry["kind"], entry["required"]) for name, entry in vocabulary()["fields"].items()}


def normalised(title: str) -> str:
    """Reduce a title to what names are compared by: no case, spaces, marks or leading number."""
    return _DECORATION.sub("", _NUMBER.sub("", title.strip())).casefold()


@cache
def _aliases() -> dict[str, str]:
    return {
        normalised(alias): name for name, entry in vocabulary()["fields"].items() for alias in [name, *entry["aliases"]]
    }


def field_named(title: str) -> str | None:
    """Return the field that ``title`` names, or None.

    ``Exp Purpose (why)`` names exp_purpose too, and so do ``Why (exp_purpose)`` and two of its
    names side by side: ``目的 exp_purpose``.
    """
    bare = re.sub(r"\s*[(（][^()（）]*[)）]\s*$", "", title)
    known = _aliases().get(normalised(title)) or _aliases().get(normalised(bare))
    if known is None and (own := _OWN_NAME.search(title)):
        before, behind = title[: own.start()], title[own.end() :]
        in_brackets = before.rstrip().endswith(("(", "（")) and behind.strip() in (")", "）")
        other = normalised(re.sub(r"[()（）/|]", "", before + behind))
        if own[0].lower() in fields() and (in_brackets or _aliases().get(other) == own[0].lower()):
            known = own[0].lower()
    return known
