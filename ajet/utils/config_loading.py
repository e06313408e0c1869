"""Whole configurations from files and text: layers composed, keys in the order of released engines."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ajet.utils.config_layers import DEFAULTS, PACKAGED, compose, open_document, resolve
from ajet.utils.config_tree import ConfigError, ConfigKeyError, ConfigTree
from ajet.utils.config_yaml import Document, parse_document

_LOOKS_LIKE_YAML = re.compile(r"\n|^\s*[\w\"'{\[].*:(?:\s|$)|^\s*[{\[]")


def default_path(mode: str = "swarm") -> Path:
    """Return the packaged default file of a mode (``swarm`` or ``classic``)."""
    return PACKAGED / f"{DEFAULTS[mode]}.yaml"


def open_source(source: str | os.PathLike[str]) -> tuple[Document, Path | None]:
    """Return the document of a path or of YAML text, and the folder of the former. Raises ConfigError."""
    if isinstance(source, str) and _LOOKS_LIKE_YAML.search(source):
        return parse_document(source, "YAML text"), None
    path = Path(source)
    return open_document(path), path.absolute().parent


def load_config(source: str | os.PathLike[str] | None = None, mode: str = "swarm") -> ConfigTree:
    """Return the whole configuration of a YAML file or of YAML text, defaults filled in.

    The layers are those of its ``defaults`` list (of text: only packaged files, wherever it points
    to); without one it is laid over the packaged defaults of ``mode`` (``swarm`` or ``classic``).
    Keys that are not known are kept. Raises ConfigError if the source cannot be read, is
    malformed, or has no ``ajet`` mapping.
    """
    document, folder = open_source(source if source is not None else default_path(mode))
    require_ajet(document)
    return compose_document(document, folder, mode)


def compose_document(document: Document, folder: Path | None, mode: str = "swarm") -> ConfigTree:
    """Return a document with its layers below it, and its own ``defaults`` and ``hydra`` last."""
    return _ordered(compose(layers_of(document, folder, mode)), document)


def layers_of(document: Document, folder: Path | None, mode: str = "swarm") -> list[ConfigTree]:
    """Return the layers of a document, lowest first; without ``defaults`` it lies on the packaged ones of ``mode``."""
    if "defaults" in document.tree or document.name == str(default_path("classic")):
        return [layer.tree for layer in resolve(document, folder)]
    return [*layers_of(open_document(default_path(mode)), PACKAGED), document.tree]


def require_ajet(document: Document) -> None:
    """Raise ConfigError if a document has no ``ajet`` mapping."""
    ajet = document.tree.get("ajet")
    if not isinstance(ajet, ConfigTree):
        keys = ", ".join(map(str, document.tree))
        found = f"`ajet` is {ajet!r}" if "ajet" in document.tree else f"its keys are {keys}"
        raise ConfigError(
            f"{document.name}: has no `ajet` mapping ({found}); put the training parameters below a top-level `ajet:`",
            key="ajet",
            value=ajet,
        )


def _ordered(tree: ConfigTree, document: Document) -> ConfigTree:
    """Return the keys in the order that released engines write: ajet, verl's own, defaults, hydra."""
    result = ConfigTree()
    preamble = (document if "defaults" in document.tree else open_document(default_path("swarm"))).tree.copy()
    for key in ["ajet", *(key for key in tree if key not in ("ajet", "defaults", "hydra"))]:
        if key in tree:
            result.put(key, tree[key], tree.provenance(key))
    for key in ("defaults", "hydra"):
        if key in preamble:
            result.put(key, preamble[key], preamble.provenance(key))
    return result


def require_preamble(document: Document) -> None:
    """Raise ConfigKeyError if a document lacks the ``defaults`` or ``hydra`` key that a released AgentJet needs."""
    for key in ("defaults", "hydra"):
        if key not in document.tree:
            raise ConfigKeyError(
                f"{document.name}: has no top-level `{key}`, and released AgentJet refuses such a base file; "
                f"copy the last lines of {DEFAULTS['swarm']}.yaml (`hydra:` and `defaults:`) into it",
                key=key,
            )
