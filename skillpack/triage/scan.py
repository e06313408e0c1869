"""Read a log once, in constant memory, and note what matters in it.

A log is read in pieces. Each is searched for the anchors of the signatures, which costs a
memory scan; only lines that hold one are decoded, cleaned and matched.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

from skillpack.metrics.console import iter_steps
from skillpack.triage.lines import clean, repeats, writer
from skillpack.triage.needles import Needles, line_end
from skillpack.triage.seen import Scan, Sighting, Traceback
from skillpack.triage.signatures import UNCAUGHT, Signature, by_anchor, quiet_exceptions, signatures, stages

PIECE = 4 << 20
BEFORE, BEHIND = 8192, 4096
LINE_LIMIT = 20_000
STEP = "step:"
TRACEBACK = "Traceback (most recent call last)"
TOTAL_STEPS = "otal training steps:"
WRAPPED = 4
"""Lines behind a metric line that may be its end, broken at a terminal's width."""
_EXCEPTION = re.compile(r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*)(?::|$)")
_TRACE_LINE = re.compile(r"^(?:\s|During handling|The above exception|Traceback|$|[~^|+]|\w+\.py:)")


@dataclass(frozen=True)
class _Place:
    """A line's start in its block, with the bytes before the block and the line's number."""

    block: bytes
    before: bytes
    start: int
    line: int

    def above(self) -> str:
        """Return the text before the line, as far as it can matter."""
        data = self.block[max(0, self.start - BEFORE) : self.start]
        if self.start < BEFORE:
            data = self.before[self.start - BEFORE :] + data
        return data.decode("utf-8", "replace")

    def below(self) -> str:
        """Return the line and the text behind it, as far as it can matter."""
        return self.block[self.start : self.start + BEHIND].decode("utf-8", "replace")


def scan_log(path: Path, scan: Scan | None = None, *, whole: bool = True) -> Scan:
    """Read a log from where ``scan`` stands (its start by default) and return what it says.

    ``.gz`` files are unpacked on the fly. With ``whole`` false a last line without its end is
    left for the next time, for a log that grows. Raises OSError; a damaged archive is read as
    far as it goes.
    """
    scan = scan or Scan()
    with path.open("rb") as probe:
        packed = probe.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if packed else path.open("rb") as stream:
        before = b""
        if scan.offset:
            start = max(0, scan.offset - BEFORE)
            stream.seek(start)
            before = stream.read(scan.offset - start)
        for block in _blocks(stream, whole):
            _scan_block(scan, block, before)
            scan.offset += len(block)
            before = (before + block)[-BEFORE:]
        if whole and before and not before.endswith(b"\n"):
            scan.lines += 1
    return scan


def _blocks(stream: BinaryIO | gzip.GzipFile, whole: bool) -> Iterator[bytes]:
    """Yield pieces that end with a line; a line longer than a piece is cut."""
    rest = b""
    while piece := _piece(stream):
        data = rest + piece
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end and len(data) >= 2 * PIECE:
            end = len(data)
        if end:
            yield data[:end]
        rest = data[end:]
    if rest and whole:
        yield rest


def _piece(stream: BinaryIO | gzip.GzipFile) -> bytes:
    """Return the next ``PIECE`` bytes, fewer at the end; what comes before the damage in a damaged archive."""
    if not isinstance(stream, gzip.GzipFile):
        return stream.read(PIECE)
    data = bytearray()
    try:
        while len(data) < PIECE and (more := stream.read1(PIECE)):
            data += more
    except (EOFError, OSError, zlib.error):
        pass
    return bytes(data)


def _scan_block(scan: Scan, block: bytes, before: bytes) -> None:
    """Find the lines worth reading in a block, read them in order."""
    if scan.open_traceback:
        trace, scan.open_traceback = scan.open_traceback, None
        _take_traceback(scan, block, before, 0, trace)
    line, counted = scan.lines, 0
    for start, anchors in _needles().lines(block).items():
        line += block.count(b"\n", counted, start)
        counted = start
        _read_line(scan, _Place(block, before, start, line + 1), anchors)
    scan.lines += block.count(b"\n")
    for raw in block[-4096:].splitlines()[-5:]:
        if text := clean(raw.decode("utf-8", "replace")):
            scan.tail.append(text[:300])


@cache
def _needles() -> Needles:
    return Needles([*by_anchor(), STEP, TRACEBACK, TOTAL_STEPS])


def _line_at(block: bytes, start: int) -> str:
    return block[start : min(line_end(block, start), start + LINE_LIMIT)].decode("utf-8", "replace")


def _read_line(scan: Scan, place: _Place, anchors: set[str]) -> None:
    raw = _line_at(place.block, place.start)
    text = clean(raw)
    if STEP in anchors and _take_steps(scan, place):
        return
    if TOTAL_STEPS in anchors and (total := re.search(rf"{TOTAL_STEPS}\s*(\d+)", text)):
        scan.total_steps = int(total[1])
    if TRACEBACK in anchors:
        behind = line_end(place.block, place.start) + 1
        _take_traceback(scan, place.block, place.before, behind, Traceback(writer(raw), place.line))
    for one in _candidates(anchors):
        found = one.pattern.search(text)
        if found and _fits(one, place) and not _is_quoted_source(place, text):
            _note(scan, one, found, place, raw, text)
            return


def _is_quoted_source(place: _Place, text: str) -> bool:
    """Tell whether a line is code that a traceback quotes, such as ``    raise ConfigKeyError(``."""
    return text.startswith("    ") and ' File "' in place.above().rstrip("\n").rpartition("\n")[2]


def _candidates(anchors: Iterable[str]) -> list[Signature]:
    """Return the signatures that a line with these anchors may match, in the order of their claims."""
    ids = {one.id for anchor in anchors for one in by_anchor().get(anchor, ())}
    return [one for id_, one in signatures().items() if id_ in ids]


def _fits(one: Signature, place: _Place) -> bool:
    if one.context is None and one.unless is None:
        return True
    around = place.above() + place.below()
    if one.context is not None and not one.context.search(around):
        return False
    return one.unless is None or not one.unless.search(around)


def _note(scan: Scan, one: Signature, found: re.Match[str], place: _Place, raw: str, text: str) -> None:
    seen = scan.seen.get(one.id)
    if seen and seen.current:  # only the first since the last step is kept, the others are counted
        seen.count += repeats(raw)
        return
    groups = {name: value for name, value in found.groupdict().items() if value is not None}
    if one.detail and (detail := one.detail.search(place.below())):
        groups |= {name: value for name, value in detail.groupdict().items() if value is not None}
    stage = one.stage if one.stage != "any" else _stage(place.above())
    sighting = Sighting(place.line, scan.offset + place.start, text[:500], stage, writer(raw), groups)
    scan.note(one, sighting, repeats(raw))


def _stage(above: str) -> str:
    """Return the stage whose words stand nearest, or "any"."""
    last = {
        name: max((found.end() for found in pattern.finditer(above)), default=-1) for name, pattern in stages().items()
    }
    name = max(last, key=lambda key: last[key])
    return name if last[name] >= 0 else "any"


def _take_steps(scan: Scan, place: _Place) -> bool:
    """Read a metric line; tell whether it is one."""
    block, at = place.block, place.start
    lines = [_line_at(block, at)]
    for _ in range(WRAPPED):
        at = line_end(block, at) + 1
        if at >= len(block) or STEP.encode() in block[at : at + 200]:
            break
        lines.append(_line_at(block, at))
    found = False
    for step, values in iter_steps(lines):
        scan.note_step(step, values, place.line)
        found = True
    return found


def _take_traceback(scan: Scan, block: bytes, before: bytes, at: int, trace: Traceback) -> None:
    """Note the exception that a traceback ends with, unless a signature of its own claims that line.

    ``at`` is where its next line starts; a traceback that goes on behind the block stays open.
    """
    while trace.left:
        if at >= len(block):
            scan.open_traceback = trace
            return
        raw = _line_at(block, at)
        trace.left -= 1
        trace.line += 1
        position, at = at, line_end(block, at) + 1
        if writer(raw) != trace.who:
            continue  # another worker's line in between
        text = clean(raw)
        if _TRACE_LINE.match(text) or "RayTaskError" in text:
            continue
        name = _EXCEPTION.match(text)
        claimed = any(one.pattern.search(text) for one in _candidates(a for a in by_anchor() if a in text))
        if name and not claimed and name["name"].rsplit(".", 1)[-1] not in quiet_exceptions():
            _note(scan, UNCAUGHT, name, _Place(block, before, position, trace.line), raw, text)
        return
