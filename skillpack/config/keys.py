"""The keys of the configuration: what each does, takes and defaults to, and how a user may call it."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ajet.default_config import kwarg_table, schema, verl_mapping
from ajet.utils.config_loading import load_config
from ajet.utils.config_tree import closest
from skillpack.script import BadInput

VERL_SECTIONS = frozenset(
    {
        "actor_rollout_ref",
        "data",
        "critic",
        "custom_reward_function",
        "reward_model",
        "sandbox_fusion",
        "reward",
        "algorithm",
        "trainer",
        "global_profiler",
        "transfer_queue",
        "ray_kwargs",
    }
)
"""verl's own top-level keys."""

TOP_LEVEL = VERL_SECTIONS | {"ajet", "defaults", "hydra", "trinity"}


@dataclass(frozen=True)
class Key:
    """A key or section of the ajet tree: its JSON Schema, the AgentJetJob kwarg that sets it, verl's keys for it."""

    name: str
    schema: dict[str, Any]
    kwarg: str | None
    verl: tuple[str, ...]

    @property
    def is_section(self) -> bool:
        """Whether further keys stand below it."""
        return "properties" in self.schema

    @property
    def description(self) -> str:
        """What it does."""
        return str(self.schema["description"])

    @property
    def takes(self) -> str:
        """The values that it takes, in words."""
        return _takes(self.schema)

    def default(self, mode: str) -> Any:
        """The default in ``swarm`` or ``classic`` mode; None where the default files leave it out."""
        return _defaults(mode).get(self.name, self.schema.get("default") if self.name == self.kwarg else None)


@functools.cache
def all_keys() -> dict[str, Key]:
    """Return every key and section of the ajet tree by dotted name, in the order of the default file."""
    kwargs = {row["key"]: name for name, row in kwarg_table().items()}
    return {
        name: Key(name, node, kwargs.get(name), tuple(verl_mapping().get(name, ())))
        for name, node in _walk(schema()["properties"], "")
    }


@functools.cache
def verl_targets() -> dict[str, str]:
    """Return verl key: the ajet key that it is set from."""
    return {target: name for name, targets in verl_mapping().items() for target in targets}


def find_key(word: str, present: Container[str] = ()) -> Key:
    """Return the key that a user means: a dotted key (``ajet.`` may be missing), a kwarg, or the last part of a key.

    A key that is only ``present`` in a configuration is one too, though AgentJet does not know it.
    Raises BadInput with what was probably meant if none or several fit.
    """
    keys = all_keys()
    for name in (word, kwarg_table().get(word, {}).get("key"), f"ajet.{word}", verl_targets().get(word)):
        if name in keys:
            return keys[name]
    if word in KEYLESS_KWARGS:
        return Key(word, KEYLESS_KWARGS[word], word, ())
    fitting = [name for name in keys if name.endswith(f".{word}")]
    if len(fitting) == 1:
        return keys[fitting[0]]
    if fitting:
        raise BadInput(f"{word} is the end of {len(fitting)} keys", expected=f"one of {', '.join(fitting)}")
    for name in (word, f"ajet.{word}"):
        if name in present:
            return Key(name, _UNREAD if name.startswith("ajet.") else _VERLS, None, ())
    guess = guess_key(word)
    raise BadInput(
        f"{word} is no key of the ajet tree and no kwarg of AgentJetJob",
        hint=f"did you mean {guess}?"
        if guess
        else "references/keys.md of the swarm-configuration skill lists all keys",
    )


KEYLESS_KWARGS: dict[str, dict[str, Any]] = {
    "ensure_new_experiment": {
        "description": "Appends a timestamp to experiment_name, so that no earlier experiment is continued.",
        "type": "boolean",
        "default": False,
    },
    "base_yaml_config": {
        "description": "The YAML file that the job starts from; further kwargs win over what it sets.",
        "type": "string",
        "default": "ajet_swarm_default.yaml",
    },
}
"""JSON Schemas of the kwargs of AgentJetJob that set no key of the tree."""

_UNREAD = {"description": "No key that this release of AgentJet reads; it is carried along without effect."}
_VERLS = {"description": "Not a key of AgentJet: it is passed on as it stands, to verl or whoever reads it."}


def guess_key(word: str, *, anywhere: bool = True) -> str | None:
    """Return the key that a wrong word was probably meant to be: a neighbour, its like elsewhere, or a kwarg's key.

    Outside the word's own section only the same last part counts, unless ``anywhere``.
    """
    keys = list(all_keys())
    section, _, last = word.rpartition(".")
    beside = closest(last, [name.rpartition(".")[2] for name in keys if name.rpartition(".")[0] == section])
    if section and beside:
        return f"{section}.{beside}"
    alike = [name for name in keys if name.rpartition(".")[2] == last]
    if alike:
        return closest(word, alike, cutoff=0) or alike[0]
    ends = {name.rpartition(".")[2]: name for name in reversed(keys)}
    ends |= {name: row["key"] for name, row in kwarg_table().items() if row["key"]}
    end = closest(last, ends, cutoff=0.8 if anywhere else 1)
    return ends[end] if end else None


@functools.cache
def other_releases() -> frozenset[str]:
    """Return keys that this release does not have, but others do."""
    import yaml

    return frozenset(yaml.safe_load((Path(__file__).parent / "other_releases.yaml").read_text(encoding="utf-8")))


@functools.cache
def _defaults(mode: str) -> dict[str, Any]:
    tree = load_config(mode=mode)
    return {name: value for name, value in tree.flat().items() if name.startswith("ajet.")}


def _walk(properties: dict[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, node in properties.items():
        yield f"{prefix}{name}", node
        yield from _walk(node.get("properties", {}), f"{prefix}{name}.")


_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "mapping",
    "array": "list",
    "null": "null",
}


def _takes(node: dict[str, Any]) -> str:
    if set(node) == {"description"}:
        return "anything"
    if "anyOf" in node:
        return " or ".join(_takes(option) for option in node["anyOf"])
    if "const" in node:
        return _shown(node["const"])
    if "enum" in node:
        return "one of " + ", ".join(map(_shown, node["enum"]))
    kinds = node.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    text = " or ".join(_TYPES[kind] for kind in kinds)
    if "array" in kinds and "items" in node:
        items = _takes(node["items"])
        text = text.replace(
            "list", f"list of items, each {items}" if items.startswith("one of") else f"list of {items}s"
        )
    for bound, words in (
        ("minimum", "at least"),
        ("exclusiveMinimum", "above"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "below"),
    ):
        if bound in node:
            text += f", {words} {node[bound]:g}"
    return text


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
