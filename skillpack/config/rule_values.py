"""Checks of single keys and of the file: names, types, choices, ranges, duplicates, preamble."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ajet.utils.config_tree import ConfigTree, closest, plain
from skillpack.config.hits import Hit
from skillpack.config.keys import TOP_LEVEL, Key, all_keys, guess_key, other_releases
from skillpack.config.sources import Source

_NAMES = {bool: "true/false", int: "a whole number", float: "a number", str: "text", list: "a list", dict: "a mapping"}


def names_and_values(source: Source) -> Iterator[Hit]:
    """Yield keys that AgentJet does not know, and values that it does not take."""
    for key, value in source.tree.items():
        if key == "ajet" and isinstance(value, ConfigTree):
            yield from _section(source, value, "ajet")
        elif not isinstance(key, str) or key not in TOP_LEVEL:
            yield from _top_level(source, str(key))


def _top_level(source: Source, key: str) -> Iterator[Hit]:
    if "." in key:
        yield Hit("dotted-key", (key,), {"key": key})
    elif f"ajet.{key}" in all_keys():
        yield Hit("misplaced-key", (key,), {"key": key, "guess": f"ajet.{key}"})
    else:
        guess = closest(key, TOP_LEVEL)
        yield Hit("misspelled-key" if guess else "unknown-key", (key,), {"key": key, "guess": guess})


def _section(source: Source, tree: ConfigTree, prefix: str) -> Iterator[Hit]:
    for name, value in tree.items():
        key = f"{prefix}.{name}"
        origin = tree.provenance(name) if isinstance(name, str) else None
        known = all_keys().get(key)
        if "." in str(name):
            yield Hit("dotted-key", (key,), {"key": name})
        elif known is None:
            if origin is None or origin.layer != "default":
                yield _unknown(key)
        elif known.is_section and isinstance(value, ConfigTree):
            yield from _section(source, value, key)
        elif origin is not None and origin.layer not in ("default", "rule"):
            yield from _value(known, plain(value))


def _unknown(key: str) -> Hit:
    guess = guess_key(key, anywhere=False) if key not in other_releases() else None
    return Hit("misspelled-key" if guess else "unknown-key", (key,), {"key": key, "guess": guess})


def _value(key: Key, value: Any) -> Iterator[Hit]:
    if isinstance(value, str) and "${" in value:
        return  # filled in when the engine reads it
    error = _error(key.name, value)
    if error is None:
        return
    names = {"key": key.name, "value": value, "takes": key.takes, "advice": _advice(key, value)}
    if error in ("type", "anyOf") and not _is_choice(key, value):
        kind = "empty" if value is None else _NAMES.get(type(value), type(value).__name__)
        yield Hit("wrong-type", (key.name,), {**names, "found": kind})
    elif error in ("enum", "const", "anyOf"):
        otherwise = key.schema.get("x-otherwise")
        rule = "unlisted-value" if otherwise else "bad-value"
        yield Hit(rule, (key.name,), {**names, "otherwise": otherwise})
    else:
        yield Hit("out-of-range", (key.name,), names)


def _error(key: str, value: Any) -> str | None:
    """Return the JSON Schema keyword that a value breaks, None if it is right."""
    if isinstance(value, float) and not math.isfinite(value):
        return "minimum"  # no comparison tells that about nan
    error = next(iter(_validator(key).iter_errors(value)), None)
    return str(error.validator) if error is not None else None


@functools.cache
def _validator(key: str) -> Any:
    import jsonschema

    base = jsonschema.Draft202012Validator
    checker = base.TYPE_CHECKER.redefine("integer", _is_integer)
    return jsonschema.validators.extend(base, type_checker=checker)(all_keys()[key].schema)


def _is_integer(checker: Any, instance: Any) -> bool:
    """JSON Schema takes 4.0 for an integer; the engine counts with it, and Python will not."""
    return isinstance(instance, int) and not isinstance(instance, bool)


def _choices(key: Key) -> list[Any]:
    """Return the values to choose from, of the key itself or of the items of its list."""
    options = [key.schema, *key.schema.get("anyOf", [])]
    found = [
        choice for option in options for choice in [*option.get("enum", []), *option.get("items", {}).get("enum", [])]
    ]
    found += [option["const"] for option in options if "const" in option]
    return found


def _is_choice(key: Key, value: Any) -> bool:
    """Tell whether a wrong value is at least of the type of the choices."""
    values = value if isinstance(value, list) else [value]
    return any(isinstance(one, str) for one in values) and any(isinstance(choice, str) for choice in _choices(key))


def _advice(key: Key, value: Any) -> str:
    choices = [choice for choice in _choices(key) if isinstance(choice, str)]
    for one in value if isinstance(value, list) else [value]:
        guess = closest(one, choices) if isinstance(one, str) and one not in choices else None
        if guess:
            return f"did you mean {guess}?"
    if choices:
        return "choose one of them"
    if value is None:
        return "give it a value, or remove the line"
    if isinstance(value, str) and value.strip():
        number = _number(value)
        if number is not None and _error(key.name, number) is None:
            return f"write it without quotes: {number}"
    if isinstance(value, float) and value.is_integer() and _error(key.name, int(value)) is None:
        return f"write {int(value)}"
    if isinstance(value, bool) and "string" in str(key.schema.get("type")):
        return "put the word in quotes: YAML reads yes, no, on and off as true/false"
    return f"write a value of this kind: {key.takes}"


def _number(text: str) -> int | float | bool | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower())


def file_form(source: Source) -> Iterator[Hit]:
    """Yield what is wrong with the YAML file as a file: name, encoding, duplicates, preamble."""
    document = source.document
    if document is None:
        return
    if source.job is None and source.path.suffix and Path(document.name).suffix != ".yaml":
        yield Hit("yaml-suffix", (), {"name": Path(document.name).name})
    if document.encoding.startswith(("utf-16", "utf-32")):
        yield Hit("file-encoding", (), {"encoding": document.encoding.upper()}, file=document.name)
    for twice in document.duplicates:
        names = {"key": twice.key, "first_line": twice.first_line, "line": twice.line}
        yield Hit("duplicate-key", (twice.key,), names, line=twice.line, file=document.name)
    missing = [key for key in ("defaults", "hydra") if key not in document.tree]
    if missing:
        yield Hit("no-preamble", (), {"missing": "` and `".join(missing)}, file=document.name)
    entries = document.tree.get("defaults")
    if isinstance(entries, list) and "_self_" in entries and entries[-1] != "_self_":
        after = [str(entry) for entry in entries[entries.index("_self_") + 1 :]]
        yield Hit("self-not-last", ("defaults",), {"after": after})


VALUE_CHECKS = (names_and_values, file_form)
