"""The configuration as a tree, read and written by attribute, item or dotted key; every value knows who set it."""

from __future__ import annotations

import dataclasses
import difflib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from types import FrameType
from typing import Any


class ConfigError(ValueError):
    """A configuration that cannot be used.

    ``message`` says what was wrong and what to try; ``key`` is the dotted YAML key at fault and
    ``value`` what stood there, where there are such.
    """

    def __init__(self, message: str, *, key: str | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.key = key
        self.value = value

    def __str__(self) -> str:
        return self.message


class ConfigKeyError(ConfigError, KeyError):
    """A key that must be there is not."""


class ConfigAssertionError(ConfigError, AssertionError):
    """Values that contradict each other, where AgentJet uses ``assert``."""


class ConfigNotImplementedError(ConfigError, NotImplementedError):
    """A choice that AgentJet does not offer at this place."""


@dataclasses.dataclass(frozen=True)
class Origin:
    """Who set a value.

    ``layer`` is one of ``default`` (a file that ships with the package), ``file`` (a user's YAML
    file), ``text`` (YAML that came without a file), ``kwarg`` (of AgentJetJob, named in
    ``kwarg``), ``write`` (an attribute write after construction) and ``rule`` (forced by another
    value, see ``note``). ``file`` and ``line`` (from 1) say where, as far as it is known.
    """

    layer: str
    file: str | None = None
    line: int | None = None
    kwarg: str | None = None
    note: str = ""

    @property
    def where(self) -> str:
        """``file:line``, or as much of it as is known."""
        name = self.file or ("YAML text" if self.layer == "text" else "")
        if self.layer == "default":
            name = os.path.basename(name)  # noqa: PTH119 - runs per value, and pathlib is slow at it
        return f"{name}:{self.line}" if name and self.line else name

    def __str__(self) -> str:
        what = {
            "default": "default",
            "file": "YAML file",
            "text": "YAML",
            "kwarg": f"kwarg {self.kwarg}",
            "write": "attribute write",
            "rule": "rule",
        }[self.layer]
        note = f" ({self.note})" if self.note else ""
        return f"{what}, {self.where}{note}" if self.where else f"{what}{note}"


def caller_origin(layer: str, *, kwarg: str | None = None) -> Origin:
    """Return the origin of a value that is set by the nearest calling code outside ``ajet``'s configuration modules."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "") in _OWN_MODULES:
        frame = frame.f_back
    if frame is None:
        return Origin(layer, kwarg=kwarg)
    return Origin(layer, file=frame.f_code.co_filename, line=frame.f_lineno, kwarg=kwarg)


_OWN_MODULES = {__name__, "ajet.copilot.job", "ajet.default_config.ajet_config_schema"}


def closest(word: str, names: Iterable[str], cutoff: float = 0.7) -> str | None:
    """Return the name that ``word`` was probably meant to be (how alike, from 0 to 1, is ``cutoff``), or None."""
    found = difflib.get_close_matches(word, list(names), n=1, cutoff=cutoff)
    return found[0] if found else None


def plain(value: Any) -> Any:
    """Return ``value`` as YAML knows it: paths as text, dataclasses as mappings, numpy scalars as numbers."""
    if isinstance(value, ConfigTree):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return value.tolist()
    return value


class ConfigTree(MutableMapping[str, Any]):
    """A mapping of keys to values and further trees, in file order, with the origin of every key.

    ``tree.a.b``, ``tree["a"]["b"]`` and ``tree.get("a.b")`` read the same value; all three forms of
    access also write. Unknown keys are kept as they are. A key that is named like a method
    (``get``, ``items`` …) is reached by item.
    """

    __slots__ = ("_origins", "_values")

    def __init__(self, values: Mapping[str, Any] | None = None, origin: Origin | None = None) -> None:
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "_origins", {})
        for key, value in (values or {}).items():
            self._assign(key, value, origin)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ConfigTree.__slots__:
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            guess = closest(name, map(str, self._values))
            hint = f"; did you mean {guess!r}?" if guess else f"; there are: {', '.join(map(str, self._values))}"
            raise AttributeError(f"no configuration key {name!r} here{hint}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ConfigTree.__slots__:
            object.__setattr__(self, name, value)
        else:
            self._assign(name, value, caller_origin("write"))

    def __delattr__(self, name: str) -> None:
        if name not in self._values:
            raise AttributeError(f"no configuration key {name!r} here")
        del self[name]

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *(key for key in self._values if isinstance(key, str))]

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._assign(key, value, caller_origin("write"))

    def __delitem__(self, key: str) -> None:
        del self._values[key]
        self._origins.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            return self.to_dict() == plain(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()!r})"

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value at a key, which may be dotted (``"ajet.rollout.num_repeat"``); else ``default``."""
        try:
            parent, last = self._parent(key)
            return parent._values[last]
        except KeyError:
            return default

    def set(self, key: str, value: Any, origin: Origin | None = None) -> None:
        """Set the value at a dotted key; trees on the way are made. Without ``origin`` the caller's line is noted."""
        origin = origin or caller_origin("write")
        *parents, last = key.split(".")
        tree = self
        for name in parents:
            child = tree._values.get(name)
            if not isinstance(child, ConfigTree):
                child = ConfigTree()
                tree._values[name] = child
                tree._origins[name] = origin
            tree = child
        tree._assign(last, value, origin)

    def provenance(self, key: str) -> Origin | None:
        """Return who set the value at a dotted key (for a section: who named it last). Raises KeyError."""
        parent, last = self._parent(key)
        if last not in parent._values:
            raise KeyError(key)
        return parent._origins.get(last)

    def flat(self) -> dict[str, Any]:
        """Return ``{dotted key: value}`` of all leaves; lists and empty sections are leaves."""
        return {key: value for key, value, _ in self.leaves()}

    def leaves(self, prefix: str = "") -> Iterator[tuple[str, Any, Origin | None]]:
        """Yield dotted key, value and origin of every leaf, in order."""
        for key, value in self._values.items():
            if isinstance(value, ConfigTree) and value:
                yield from value.leaves(f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", plain(value), self._origins.get(key)

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as plain dicts, lists and scalars, in order."""
        return {key: plain(value) for key, value in self._values.items()}

    def copy(self) -> ConfigTree:
        """Return an independent copy of the same type, with its origins."""
        twin = type(self).__new__(type(self))
        object.__setattr__(twin, "_values", {key: _copy(value) for key, value in self._values.items()})
        object.__setattr__(twin, "_origins", dict(self._origins))
        return twin

    def merge(self, upper: ConfigTree) -> None:
        """Lay ``upper`` over this tree: sections are merged, all else (lists too) is replaced; origins come along."""
        for key, value in upper._values.items():
            mine = self._values.get(key)
            if isinstance(value, ConfigTree) and isinstance(mine, ConfigTree):
                mine.merge(value)
            else:
                self._values[key] = _copy(value)
            if key in upper._origins:
                self._origins[key] = upper._origins[key]

    def put(self, key: Any, value: Any, origin: Origin | None) -> None:
        """Set one key of this tree, taken literally even if it has dots; what a loader uses."""
        self._values[key] = value
        if origin is not None:
            self._origins[key] = origin

    def _assign(self, key: Any, value: Any, origin: Origin | None) -> None:
        value = plain(value)
        self._values[key] = ConfigTree(value, origin) if isinstance(value, dict) else value
        if origin is not None:
            self._origins[key] = origin

    def _parent(self, key: str) -> tuple[ConfigTree, str]:
        """Return the tree that holds the last part of a dotted key, and that part. Raises KeyError."""
        if key in self._values:
            return self, key
        *parents, last = key.split(".")
        tree: Any = self
        for name in parents:
            tree = tree._values[name]
            if not isinstance(tree, ConfigTree):
                raise KeyError(key)
        return tree, last


def _copy(value: Any) -> Any:
    if isinstance(value, ConfigTree):
        return value.copy()
    if isinstance(value, list):
        return [_copy(item) for item in value]
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return value


__all__ = [
    "ConfigAssertionError",
    "ConfigError",
    "ConfigKeyError",
    "ConfigNotImplementedError",
    "ConfigTree",
    "Origin",
    "caller_origin",
    "closest",
    "plain",
]
