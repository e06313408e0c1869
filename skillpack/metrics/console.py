"""Metric series out of a console log, as verl's LocalLogger prints them.

One logged call is one line, ``step:7 - actor/entropy:0.51 - response_length/mean:np.float64(212.0)``.
Between the trainer and the log file the line may gain a Ray prefix, colours and a progress bar in
front of it, lose its end to another writer, or be broken at the width of a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
RAY_PREFIX = re.compile(r"^\s*\((?P<actor>[\w.:-]+(?:\([^()]*\))?) (?:pid=\d+)(?:, ip=[^()\s]+)?\) ?")
RAY_REPEATED = re.compile(r"\s*\[repeated \d+x across cluster\].*$")
HEAD = re.compile(r"step:(\d{1,18})(?= - |$)")  # what an int64 holds
NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)"
IN_A_KEY = re.compile(r"[\w/@.\-]$")
RAN_INTO = re.compile(rf"(?::{NUMBER}|(?:^|\s)\d+(?:/\d+)?)$", re.IGNORECASE)
ITEM = re.compile(
    rf"(?P<key>[^\s:][^:]*):(?:(?:np|numpy)\.\w+\((?P<numpy>{NUMBER})\)|tensor\((?P<tensor>{NUMBER})[^)]*\)"
    rf"|(?P<flag>True|False)|(?P<plain>{NUMBER}))(?P<rest>(?![\w.]).*)$",
    re.IGNORECASE | re.DOTALL,
)
BEFORE_HEAD = 40
LONGEST_ITEM, LONGEST_LINE = 1_000, 200_000
"""Characters beyond which what looks like the rest of a broken metric line is something else."""
PATIENCE = 50
"""Foreign lines after which a half-finished metric line is given up waiting for its end."""

Step = tuple[int, dict[str, float]]


def iter_steps(lines: Iterable[str]) -> Iterator[Step]:
    """Yield ``(step, {key: value})`` for every metric line of a console log, in the order of the log.

    A validation pass is logged alone and again inside its step's training line, and a resumed run
    logs steps again: both are yielded as they come, ``read_console`` merges them. Values are
    floats; NaN and infinities are kept. An item that was cut or is no number is left out.
    """
    open_line: _OpenLine | None = None
    for raw in lines:
        if open_line is None and "step:" not in raw:
            continue
        for physical in ANSI.sub("", raw).rstrip("\n").split("\r"):
            if not physical.strip():
                continue
            text = RAY_REPEATED.sub("", physical)
            body = RAY_PREFIX.sub("", text)
            heads = _heads(body)
            if open_line is not None:
                before = body[: heads[0].start()] if heads else body
                if open_line.take(before, width=len(physical)) and not heads:
                    continue
                if open_line.given_up:
                    yield from open_line.close()
                    open_line = None
            for head, end in zip(heads, [*(later.start() for later in heads[1:]), len(body)], strict=False):
                if open_line is not None:
                    yield from open_line.close()
                open_line = _OpenLine(int(head[1]), body[head.end() : end], width=len(physical))
    if open_line is not None:
        yield from open_line.close()


def read_console(source: str | PathLike[str] | Iterable[str]) -> pandas.DataFrame:
    """Return a console log's metrics as a wide frame: index ``step``, a column per key, gaps as NaN.

    ``source`` is a path, or the lines themselves. Where a step was logged more than once, its
    values are merged and the later wins: after a resume the later ones belong to the model that
    went on. ``frame.attrs["repeated"]`` counts the values that were replaced by different ones.
    Raises OSError.
    """
    import pandas

    steps, repeated = merge_steps(read_steps(source))
    frame = pandas.DataFrame.from_dict(steps, orient="index", dtype="float64").sort_index()
    frame.index = frame.index.astype("int64")
    frame.index.name = "step"
    frame.attrs["repeated"] = repeated
    return frame


def read_steps(source: str | PathLike[str] | Iterable[str]) -> Iterator[Step]:
    """Yield the steps of a log given by path, or by its lines. Raises OSError."""
    if isinstance(source, (str, PathLike)):
        with Path(source).open(encoding="utf-8", errors="replace", newline="\n") as stream:
            yield from iter_steps(stream)
    else:
        yield from iter_steps(source)


def merge_steps(steps: Iterable[Step]) -> tuple[dict[int, dict[str, float]], int]:
    """Merge records of the same step, later values winning; also return how many values changed by it."""
    merged: dict[int, dict[str, float]] = {}
    repeated = 0
    for step, values in steps:
        known = merged.setdefault(step, {})
        repeated += sum(1 for key, value in values.items() if key in known and known[key] != value == value)
        known.update(values)
    return merged, repeated


def _heads(body: str) -> list[re.Match[str]]:
    """Find where metric lines start: ``step:7``, but not the end of a key such as ``global_step:7``.

    A value or a progress bar's count may stand right before it, where two writers shared the line.
    """
    heads = []
    for head in HEAD.finditer(body):
        before = body[max(0, head.start() - BEFORE_HEAD) : head.start()]
        if not IN_A_KEY.search(before) or RAN_INTO.search(before):
            heads.append(head)
    return heads


class _OpenLine:
    """A metric line that may go on: a terminal breaks lines anywhere, within a number too."""

    def __init__(self, step: int, text: str, width: int) -> None:
        self.step = step
        self.text = text
        self.width = width
        self.wrapped = False
        self.foreign = 0

    @property
    def complete(self) -> bool:
        last = self.text.rsplit(" - ", 1)[-1]
        item = ITEM.match(last)
        return item is not None and not item["rest"]

    @property
    def given_up(self) -> bool:
        return self.foreign > PATIENCE

    def take(self, text: str, width: int) -> bool:
        """Append ``text`` if it is the rest of this line; tell whether it is."""
        if self._continues(text, width):
            self.text += text
            self.wrapped = self.wrapped or width == self.width
            self.foreign = 0
            return True
        self.foreign += 1
        return False

    def _continues(self, text: str, width: int) -> bool:
        if not text.strip() or width > self.width or len(self.text) > LONGEST_LINE:
            return False  # a broken line fills the terminal: what follows cannot be wider
        open_item = self.text[self.text.rfind(" - ") + 1 :]
        *whole, last = (open_item + text).removeprefix("- ").split(" - ")
        if len(last) > LONGEST_ITEM or not all(_is_item(chunk) for chunk in whole if chunk):
            return False
        if self.complete and " - " not in text:
            # "0.12" and a line "345": one number broken in two only if the line was full
            return self.wrapped and self.foreign == 0 and _is_item(last)
        if self.complete and self.foreign and not text.startswith(" - "):
            return False
        return _is_item(last) or width == self.width

    def close(self) -> Iterator[Step]:
        """Yield this line's step, if anything of it can be read."""
        values = {}
        for chunk in self.text.split(" - "):
            item = ITEM.match(chunk)
            if item is not None:
                values[item["key"]] = _number(item)
        if values:
            yield self.step, values


def _is_item(chunk: str) -> bool:
    item = ITEM.match(chunk)
    return item is not None and not item["rest"]


def _number(item: re.Match[str]) -> float:
    if item["flag"]:
        return float(item["flag"].lower() == "true")
    return float(item["numpy"] or item["tensor"] or item["plain"])
