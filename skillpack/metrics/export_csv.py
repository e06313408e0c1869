"""Download and read the CSV files that SwanLab exports.

The header is ``step,{experiment}-{key}_step,{experiment}-{key}_timestamp,…`` and, whatever its
name says, the ``_step`` column holds the value. Columns are found by their header: servers leave
columns out and put them in another order. The download carries no cookie and no key, because its
link leads to another host.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillpack.metrics.credentials import redact
from skillpack.metrics.series import Points, Series
from skillpack.metrics.session import NOT_REACHED, CallFailed, no_auth

ABSENT = ["", "null", "NULL", "None"]
BLOCK = 1 << 20
USER_AGENT = "agentjet-skills"


@dataclass
class Export:
    """What one CSV held: series by key, the keys without a column, and what is wrong with the file, if anything."""

    series: dict[str, Series] = field(default_factory=dict)
    without_column: list[str] = field(default_factory=list)
    cut: str = ""
    unreadable: dict[str, str] = field(default_factory=dict)


def download_session() -> Any:
    """Return a requests session that obeys the proxy settings but sends no cookie and no netrc entry."""
    from http.cookiejar import DefaultCookiePolicy

    import requests

    session = requests.Session()
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.auth = no_auth
    session.headers.update({"User-Agent": USER_AGENT, "Accept": "text/csv, */*"})
    return session


def read_export(session: Any, link: str, experiment: str, keys: Sequence[str], *, timeout: float = 60) -> Export:
    """Download the CSV behind ``link`` and return the series of ``keys``.

    Raises CallFailed: refused (its status), broken off, or a header in which the keys cannot be told apart.
    """
    import pyarrow

    body = _Body(session, link, timeout)
    try:
        return _parse(body, experiment, keys)
    except pyarrow.ArrowInvalid:
        body.close()  # a cell that is no number: the slow reader says which
        body = _Body(session, link, timeout)
        return _parse_tolerant(body, experiment, keys)
    except csv.Error as error:
        raise CallFailed(f"the download is not a CSV export: {error}") from None
    finally:
        body.close()


def match_columns(header: Sequence[str], experiment: str, keys: Sequence[str]) -> dict[str, tuple[int, int | None]]:
    """Return for each key that has a column the places of its value and its timestamp.

    The names are taken apart by what is known of them, never at a dash or underscore: experiment
    names and keys may hold either. Raises CallFailed where two readings are possible.
    """
    suffix = "_step" if any(name.endswith("_step") for name in header[1:]) else ""
    values = {
        name: place
        for place, name in enumerate(header)
        if place and name.endswith(suffix) and (suffix or not name.endswith("_timestamp"))
    }
    if len({*header}) < len(header):
        raise CallFailed(f"the export names a column twice: {_shown(header)}")
    prefix = _prefix(list(values), experiment, keys, suffix)
    stamps = {name: place for place, name in enumerate(header)}
    return {
        key: (values[f"{prefix}{key}{suffix}"], stamps.get(f"{prefix}{key}_timestamp"))
        for key in keys
        if f"{prefix}{key}{suffix}" in values
    }


def _prefix(names: list[str], experiment: str, keys: Sequence[str], suffix: str) -> str:
    known = {f"{key}{suffix}" for key in keys}
    expected = f"{experiment}-"
    if all(name.startswith(expected) and name[len(expected) :] in known for name in names):
        return expected
    candidates = {name[: -len(one)] for name in names for one in known if name.endswith(one)}
    explaining = [
        prefix
        for prefix in candidates
        if all(name.startswith(prefix) and name[len(prefix) :] in known for name in names)
    ]
    if len(explaining) != 1:
        raise CallFailed(f"cannot tell which column is which key: {_shown(names)}")
    return explaining[0]


def _shown(names: Sequence[str]) -> str:
    text = ", ".join(names)
    return text if len(text) < 300 else text[:300] + "…"


def _parse(body: _Body, experiment: str, keys: Sequence[str]) -> Export:
    """Read block by block while the download goes on; raises ArrowInvalid at a cell, or a step, that is no number.

    A block ends with a line: below the header there are only numbers, so no line break is quoted.
    It is small enough for a processor's cache; several files, not blocks, are read side by side.
    """
    import pyarrow
    from pyarrow import csv as arrow_csv

    header = body.header()
    places = match_columns(header, experiment, keys)
    wanted = sorted({0, *(place for pair in places.values() for place in pair if place is not None)})
    names = [f"c{place}" for place in range(len(header))]
    ragged: list[int] = []

    def skip(row: Any) -> str:
        ragged.append(row.actual_columns)
        return "skip"

    how = {
        "read_options": arrow_csv.ReadOptions(column_names=names, block_size=4 * BLOCK, use_threads=False),
        "parse_options": arrow_csv.ParseOptions(invalid_row_handler=skip),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.float64()),
            include_columns=[names[place] for place in wanted],
            null_values=ABSENT,
        ),
    }
    schema = pyarrow.schema([(names[place], pyarrow.float64()) for place in wanted])
    blocks = [arrow_csv.read_csv(pyarrow.BufferReader(lines), **how) for lines in body.blocks()]
    table = pyarrow.concat_tables(blocks) if blocks else schema.empty_table()
    body.check_length()
    steps = _whole(_array(table["c0"])[0])
    export = Export(without_column=[key for key in keys if key not in places])
    for key, (value, stamp) in places.items():
        export.series[key] = _series(key, steps, table[names[value]], table[names[stamp]] if stamp else None)
        if stamp and not body.ended_line and not export.cut:
            export.cut = _short_stamp(export.series[key])
    if ragged:
        export.cut = f"a row has {ragged[-1]} of {len(header)} columns: the file is cut off or broken"
    return export


def _whole(steps: Any) -> Any:
    """Return steps as int64. Raises ArrowInvalid for one that is blank, no whole number or too large."""
    import numpy
    import pyarrow

    if not (numpy.isfinite(steps) & (steps == numpy.trunc(steps)) & (abs(steps) < 2**63)).all():
        raise pyarrow.ArrowInvalid("a step is no whole number")
    return steps.astype("int64")


def _series(key: str, steps: Any, values: Any, stamps: Any) -> Series:
    import numpy

    numbers, present = _array(values)
    times = numpy.full(len(steps), numpy.nan) if stamps is None else _array(stamps)[0]
    if present is None:
        return Series(key, steps, numbers, times)
    return Series(key, steps[present], numbers[present], times[present])


def _array(column: Any) -> tuple[Any, Any]:
    """Return a column as a NumPy array, and a mask of the cells that are not blank (None: none is)."""
    if column.null_count == 0:
        return column.to_numpy(), None
    present = column.is_valid().to_numpy()
    return column.to_numpy(), present


def _short_stamp(series: Series) -> str:
    """Tell of a last timestamp that lacks digits, or is not there: the end of the file is missing."""
    if len(series) > 1 and series.stamps[0] > 0 and not series.stamps[-1] > series.stamps[0] / 5:
        return "the last line is cut off"
    return ""


def _parse_tolerant(body: _Body, experiment: str, keys: Sequence[str]) -> Export:
    """Read cell by cell; a cell that is no number is reported for its key and left out."""
    header = body.header()
    places = match_columns(header, experiment, keys)
    export = Export(without_column=[key for key in keys if key not in places])
    points = {key: Points() for key in places}
    bad: dict[str, list[str]] = {key: [] for key in places}
    for row in _rows(body):
        if len(row) != len(header):
            export.cut = f"a row has {len(row)} of {len(header)} columns: the file is cut off or broken"
            continue
        step = _to_step(row[0])
        for key, (value, stamp) in places.items():
            if row[value] in ABSENT:
                continue
            number = _to_float(row[value])
            if step is None or number is None:
                bad[key].append(f"{row[value]!r} at step {row[0]}")
            else:
                time = _to_float(row[stamp]) if stamp else None
                points[key].add(step, number, math.nan if time is None else time)
    body.check_length()
    export.series = {key: collected.series(key) for key, collected in points.items()}
    export.unreadable = {
        key: f"{len(cells)} cells are not numbers, the first is {cells[0][:80]}" for key, cells in bad.items() if cells
    }
    return export


def _rows(body: _Body) -> Iterator[list[str]]:
    text = io.TextIOWrapper(io.BufferedReader(body), encoding="utf-8", errors="replace", newline="")
    try:
        yield from csv.reader(text)
    except csv.Error as error:
        raise CallFailed(f"the download is not a CSV export: {error}") from None


def _to_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _to_step(text: str) -> int | None:
    """Return a whole number that an int64 holds, or None."""
    number = _to_float(text)
    return int(number) if number is not None and number.is_integer() and abs(number) < 2**63 else None


def _line_end(text: bytes) -> int:
    """Return where the first line ends (a line break within quotes is none), -1 if it does not end yet."""
    end = text.find(b"\n")
    while end >= 0 and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end + 1)
    return end


class _Body(io.RawIOBase):
    """The bytes of a download, read as they come, with what is needed to notice that some are missing."""

    def __init__(self, session: Any, link: str, timeout: float) -> None:
        self._count = 0
        self._ahead = b""
        self._last = b""
        self._response = self._attempt(lambda: session.get(link, stream=True, timeout=(10, timeout)))
        if self._response.status_code != 200:
            raise CallFailed(
                f"the download answers HTTP {self._response.status_code}", status=self._response.status_code
            )

    def header(self) -> list[str]:
        """Read and return the names of the columns."""
        head = b""
        while (end := _line_end(head)) < 0:
            piece = self._read(64 << 10)
            if not piece:
                end = len(head)
                break
            head += piece
        self._ahead = head[end + 1 :]
        names = next(csv.reader([head[:end].decode("utf-8-sig", errors="replace")]), [])
        if not names or names[0].startswith("<") or (len(names) == 1 and names != ["step"]):
            raise CallFailed(f"the download is not a CSV export{'' if names else ' but empty'}")
        return names

    def blocks(self) -> Iterator[Any]:
        """Yield the rest in buffers of about ``BLOCK`` bytes that end with a line."""
        import pyarrow

        begun, self._ahead = self._ahead, b""
        while piece := self._read(BLOCK):
            piece = begun + piece
            end = piece.rfind(b"\n") + 1
            begun = piece[end:]
            if end:
                yield pyarrow.py_buffer(piece).slice(0, end)
        if begun.strip():
            yield pyarrow.py_buffer(begun)

    @property
    def ended_line(self) -> bool:
        """Whether the last byte ended a line."""
        return self._last in (b"\n", b"")

    def check_length(self) -> None:
        """Raise CallFailed if fewer bytes came than were announced."""
        announced = self._response.headers.get("Content-Length")
        if announced and "Content-Encoding" not in self._response.headers and int(announced) != self._count:
            raise CallFailed(f"the download broke off after {self._count} of {announced} bytes", status=NOT_REACHED)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes (Arrow asks with a size), or nothing at the end."""
        if self._ahead:
            piece, self._ahead = self._ahead[:size], self._ahead[size:]
            return piece
        return self._read(size if size > 0 else BLOCK)

    def readinto(self, buffer: Any) -> int:
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._response.close()
        super().close()

    def _read(self, size: int) -> bytes:
        piece: bytes = self._attempt(lambda: self._response.raw.read(size, decode_content=True))
        self._count += len(piece)
        if piece:
            self._last = piece[-1:]
        return piece

    def _attempt(self, action: Callable[[], Any]) -> Any:
        from requests import RequestException
        from urllib3.exceptions import HTTPError

        try:
            return action()
        except (RequestException, HTTPError, OSError) as error:
            raise CallFailed(
                f"the download failed: {type(error).__name__}: {redact(str(error)[:200])}", status=NOT_REACHED
            ) from None
