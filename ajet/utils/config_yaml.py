"""YAML in and out: every key keeps its line, numbers are read as AgentJet reads them, errors say where."""

from __future__ import annotations

import codecs
import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import yaml

from ajet.utils.config_tree import ConfigError, ConfigTree, Origin

_HEADER = re.compile(r"\s*#\s*@package[ \t]+([\w.]+)")
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}

NODE_LIMIT = 100_000
"""Values that one file may hold after its aliases are followed; a real one has about 1,000."""

_BASE_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BASE_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_FLOAT = "tag:yaml.org,2002:float"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
# "3e-5" is text to PyYAML (YAML 1.1 wants "3.0e-5") but a number to OmegaConf, which AgentJet reads with.
_EXPONENT = re.compile(r"^[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+$")


class _Loader(_BASE_LOADER):
    """PyYAML's safe loader with OmegaConf's idea of numbers and dates."""


class _Dumper(_BASE_DUMPER):
    """The counterpart of the loader: text that it would take for a number is quoted."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in _BASE_LOADER.yaml_implicit_resolvers.items()
}
for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver(_FLOAT, _EXPONENT, list("-+0123456789"))


@dataclasses.dataclass
class Duplicate:
    """A key that one mapping of a file names twice; only the last counts."""

    key: str
    first_line: int
    line: int


@dataclasses.dataclass
class Document:
    """A parsed YAML file: its tree with the line of every key, and the keys that stood in it twice.

    ``package`` is the key of Hydra's header ``# @package key``, under which others' ``defaults`` place it.
    """

    tree: ConfigTree
    name: str
    duplicates: list[Duplicate] = dataclasses.field(default_factory=list)
    encoding: str = "utf-8"
    package: str | None = None


def read_document(path: str | os.PathLike[str], layer: str = "file") -> Document:
    """Read a YAML file. Raises ConfigError (missing, a folder, not text, malformed, no mapping)."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file (relative paths start at {Path.cwd()})") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder, a YAML file was expected; name the file in it") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    return parse_bytes(data, str(path), layer)


def parse_bytes(data: bytes, name: str, layer: str = "text") -> Document:
    """Parse the bytes of a YAML file, in UTF-8 or what a byte-order mark says. Raises ConfigError."""
    text, encoding = _decode(data, name)
    document = parse_document(text, name, layer)
    document.encoding = encoding
    return document


def parse_document(text: str, name: str, layer: str = "text") -> Document:
    """Parse YAML text; ``name`` is the file it came from, or a word for it. Raises ConfigError."""
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise ConfigError(f"{name}: is empty; expected YAML with an `ajet:` section")
        if not isinstance(node, yaml.MappingNode):
            kind = "a list" if isinstance(node, yaml.SequenceNode) else "a single value"
            line = node.start_mark.line + 1
            raise ConfigError(f"{name}:{line}: the file holds {kind}; expected a mapping with an `ajet:` section")
        builder = _Builder(loader, name, layer)
        header = _HEADER.match(text)
        return Document(builder.mapping(node, ""), name, builder.duplicates, package=header[1] if header else None)
    except yaml.YAMLError as error:
        raise ConfigError(_explain(error, name, text)) from None
    except RecursionError:
        raise ConfigError(f"{name}: is nested too deeply to be a configuration") from None
    finally:
        if loader is not None:
            loader.dispose()


def dump_text(values: Any) -> str:
    """Return plain dicts, lists and scalars as YAML, keys in their order. Raises ConfigError on other types."""
    try:
        return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False)
    except yaml.representer.RepresenterError as error:
        value = error.args[-1]
        key = _find(values, value)
        raise ConfigError(
            f"{key or 'the configuration'} is {value!r} ({type(value).__name__}), which YAML cannot hold; "
            "use numbers, text, booleans, None, lists and dicts",
            key=key,
            value=value,
        ) from None


class _Builder:
    """Turns YAML nodes into a ConfigTree."""

    def __init__(self, loader: Any, name: str, layer: str) -> None:
        self.loader = loader
        self.name = name
        self.layer = layer
        self.duplicates: list[Duplicate] = []
        self.nodes = 0
        self.open: set[int] = set()

    def mapping(self, node: yaml.MappingNode, prefix: str) -> ConfigTree:
        self._enter(node)
        tree = ConfigTree()
        file = None if self.layer == "text" else self.name
        lines: dict[Any, int] = {}
        self._pull_in_merge_keys(node, tree, prefix)
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.value(key_node, prefix)
            line = key_node.start_mark.line + 1
            try:
                hash(key)
            except TypeError:
                raise ConfigError(f"{self.name}:{line}: a list or mapping cannot be a key") from None
            if key in lines:
                self.duplicates.append(Duplicate(f"{prefix}{key}", lines[key], line))
            lines[key] = line
            tree.put(key, self.value(value_node, f"{prefix}{key}."), Origin(self.layer, file=file, line=line))
        self.open.discard(id(node))
        return tree

    def value(self, node: yaml.Node, prefix: str) -> Any:
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
            raise _unknown_tag(node, self.name)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, prefix)
        if isinstance(node, yaml.SequenceNode):
            self._enter(node)
            items = [self.value(item, prefix) for item in node.value]
            self.open.discard(id(node))
            return [item.to_dict() if isinstance(item, ConfigTree) else item for item in items]
        self._enter(node, leaf=True)
        try:
            return self.loader.construct_object(node, deep=True)
        except yaml.constructor.ConstructorError:
            raise _unknown_tag(node, self.name) from None
        except (ValueError, LookupError, AttributeError, TypeError, OverflowError):  # PyYAML's own, on a wrong tag
            line, kind = node.start_mark.line + 1, node.tag.rpartition(":")[2]
            raise ConfigError(f"{self.name}:{line}: {node.value!r} cannot be read as {kind}") from None

    def _pull_in_merge_keys(self, node: yaml.MappingNode, tree: ConfigTree, prefix: str) -> None:
        for key_node, value_node in node.value:
            if key_node.tag != "tag:yaml.org,2002:merge":
                continue
            sources = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            for source in reversed(sources):
                if not isinstance(source, yaml.MappingNode):
                    line = value_node.start_mark.line + 1
                    raise ConfigError(f"{self.name}:{line}: `<<` takes a mapping or a list of mappings")
                for key, value in self.mapping(source, prefix).items():
                    tree.put(key, value, Origin(self.layer, file=self.name, line=key_node.start_mark.line + 1))

    def _enter(self, node: yaml.Node, *, leaf: bool = False) -> None:
        self.nodes += 1
        line = node.start_mark.line + 1
        if self.nodes > NODE_LIMIT:
            raise ConfigError(f"{self.name}:{line}: more than {NODE_LIMIT} values (aliases multiply): no configuration")
        if not leaf:
            if id(node) in self.open:
                raise ConfigError(f"{self.name}:{line}: an alias (`*name`) contains itself")
            self.open.add(id(node))


def _unknown_tag(node: yaml.Node, name: str) -> ConfigError:
    line = node.start_mark.line + 1
    return ConfigError(f"{name}:{line}: the tag {node.tag} is not plain YAML; write numbers, text, lists and mappings")


def _decode(data: bytes, name: str) -> tuple[str, str]:
    """Return the text and its encoding: UTF-8, or what a byte-order mark says."""
    encoding = next((encoding for mark, encoding in _MARKS.items() if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start : error.start + 1].hex()
        raise ConfigError(
            f"{name}:{line}: is not {encoding.upper()} text (byte 0x{byte}); save it as UTF-8, or convert it: "
            f"iconv -f GB18030 -t UTF-8 (if it is Chinese)"
        ) from None


def _explain(error: yaml.YAMLError, name: str, text: str) -> str:
    """Say where the YAML is malformed, show the line, and what to try."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        position = getattr(error, "position", None)
        if position is not None:
            line = text.count("\n", 0, position) + 1
            code = getattr(error, "character", "?")
            return f"{name}:{line}: a character that YAML does not allow (code {code}); delete it"
        return f"{name}: malformed YAML: {error}"
    problem = getattr(error, "problem", None) or str(error)
    lines = text.splitlines()
    shown = lines[mark.line].rstrip()[:120] if mark.line < len(lines) else ""
    place = f"{name}:{mark.line + 1}:{mark.column + 1}"
    return f"{place}: malformed YAML: {problem}\n    {shown}\ntry: {_advice(problem, shown)}"


def _advice(problem: str, line: str) -> str:
    if "\t" in line[: len(line) - len(line.lstrip())] or ("token" in problem and "\t" in line):
        return "indent with spaces, not tabs"
    if "mapping values are not allowed" in problem:
        return "one `key: value` per line, and quotes around text that contains `: `"
    if "expected <block end>" in problem or "could not find expected" in problem or "did not find expected" in problem:
        return "give the keys of one section the same indentation, and end each key with a colon and a space"
    if "alias" in problem or "undefined" in problem:
        return "quote text that starts with *"
    if "single document" in problem or "document" in problem:
        return "keep one document per file: remove `---` separators"
    return "compare indentation, colons, quotes and brackets with the line above"


def _find(values: Any, wanted: Any, prefix: str = "") -> str | None:
    """Return the dotted key under which the very object ``wanted`` stands."""
    pairs = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in pairs:
        name = f"{prefix}.{key}" if prefix else str(key)
        if value is wanted:
            return name
        found = _find(value, wanted, name)
        if found:
            return found
    return None
