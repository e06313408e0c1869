"""Read an ``evals/scripts.yaml``, and remember the line of each thing in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from skillpack.pack import SCHEMAS

MAX_BYTES = 2**20


class EvalsError(ValueError):
    """An ``evals/scripts.yaml`` that cannot be used; the message says why, ``line`` (from 1) where."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Document:
    """``value`` is the content, which keeps the schema; ``node`` is the YAML node that it was made of."""

    value: Any
    node: Any

    def line(self, path: Iterable[str | int]) -> int:
        """Return the line (from 1) of what stands at ``path`` (keys and indices), or of the last that is there."""
        node = self.node
        for step in path:
            below = _child(node, step)
            if below is None:
                break
            node = below
        return int(node.start_mark.line) + 1


def read(path: Path) -> Document:
    """Return the document in a file. Raises EvalsError."""
    import yaml

    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            raise EvalsError(f"expected a file of at most {MAX_BYTES} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvalsError(f"cannot be read as UTF-8 text: {error}") from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        value = None if node is None else loader.construct_document(node)
        size = _size(value, {})
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise EvalsError(f"not YAML: {' '.join(str(error).split())}", mark.line + 1 if mark else 1) from None
    finally:
        loader.dispose()
    if size > MAX_BYTES:
        raise EvalsError("its aliases expand to more than anybody would write")
    document = Document(value, node)
    _check_shape(document)
    return document


def _child(node: Any, step: str | int) -> Any:
    """Return the node at a key or an index of a node, or None."""
    if isinstance(step, int):
        return node.value[step] if node.id == "sequence" and step < len(node.value) else None
    pairs = node.value if node.id == "mapping" else []
    return next((value for key, value in pairs if key.value == step), None)


def _size(value: object, known: dict[int, int]) -> int:
    """Return how many values a document has with its aliases expanded, without expanding them."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = 0  # an alias within what it names adds nothing
        below = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(one, known) for one in below)
    return known[id(value)]


@lru_cache
def _shape() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads((SCHEMAS / "evals.schema.json").read_text(encoding="utf-8")))


def _check_shape(document: Document) -> None:
    from jsonschema.exceptions import best_match

    error = best_match(_shape().iter_errors(document.value))
    if error is not None:
        line = document.line(error.absolute_path) if document.node else 1
        raise EvalsError(f"{error.json_path.removeprefix('$.')}: {error.message}", line)
