"""The reader of YAML 1.2 does what npm's ``yaml`` 2.9.1 and Bun 1.4.5 were seen to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillpack.validate.clients.javascript import kind_of, shown_value
from skillpack.validate.clients.yaml12 import read_yaml12
from skillpack.validate.clients.yaml12.flow import MAX_DEPTH
from skillpack.validate.tree import Document

SEEN = json.loads((Path(__file__).parent / "data" / "yaml12.json").read_text(encoding="utf-8"))
"""Texts, and what came of each: ``refused``, the type of the root, or of a mapping's values the types and texts."""


def outcome(document: Document, bun: bool) -> Any:
    if document.fault is not None:
        return "refused"
    if document.documents > 1:
        return "array"
    if document.root is None or document.root.kind != "map":
        return "null" if document.root is None else kind_of(document.root)
    values = {}
    for key, value in document.root.pairs:
        value = document.resolve(value)
        kind = kind_of(value)
        name = "null" if bun and kind_of(key) == "null" else shown_value(document.resolve(key))
        values[name] = [kind] if kind in ("object", "array", "null") else [kind, shown_value(value)]
    return values


@pytest.mark.parametrize("bun", [False, True], ids=["npm", "bun"])
def test_each_text_is_read_or_refused_as_it_was_seen(bun):
    wrong = []
    for case in SEEN:
        seen = case.get("bun", case["npm"]) if bun else case["npm"]
        ours = outcome(read_yaml12(case["text"], bun=bun), bun)
        if squeezed(ours) != squeezed(seen):
            wrong.append((case["text"], seen, ours))
    assert wrong == []


def squeezed(result: Any) -> Any:
    """Return an outcome with runs of blanks as one: no client shows more, and Bun folds lines in its own way."""
    if isinstance(result, str):
        return result
    return {key: [" ".join(part.split()) for part in value] for key, value in result.items() if key}


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000])
def test_what_is_nested_too_deep_is_a_fault_and_no_overflow(text):
    fault = read_yaml12(text).fault
    assert fault is not None
    assert str(MAX_DEPTH) in fault.problem


def test_a_fault_tells_its_line_and_column():
    fault = read_yaml12("name: a\ndescription: b: c\n").fault
    assert fault is not None
    assert (fault.line, fault.column) == (1, len("description: b"))
