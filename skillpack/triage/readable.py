"""Is a file a log at all? An empty or binary one must not be judged as a training that was lost."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from skillpack.script import BadInput

SAMPLE = 65_536
TEXT_SHARE = 0.7
"""Part of a sample that must be printable text; logs hold stray bytes, colours and progress bars."""
_TEXT = bytes({*range(0x20, 0x7F), 0x07, 0x08, 0x09, 0x0A, 0x0C, 0x0D, 0x1B})


def require_log(path: Path, *, may_grow: bool) -> None:
    """Raise BadInput if a file holds no text: neither its head nor its tail does.

    A hole of zero bytes, as a rotated or restored log has at one end, is no hindrance. ``may_grow``:
    an empty file may still become a log. Raises OSError.
    """
    samples = [sample for sample in _samples(path) if sample]
    if not samples:
        if may_grow:
            return
        raise BadInput(f"no training log: {path} is empty", expected="the console output of a training, plain or .gz")
    if not any(_is_text(sample) for sample in samples):
        raise BadInput(
            f"no training log: {path} is not text", expected="the console output of a training, plain or .gz"
        )


def _samples(path: Path) -> list[bytes]:
    """Return the head and the tail of a file; the head alone of an archive, as far as it is whole."""
    with path.open("rb") as stream:
        head = stream.read(SAMPLE)
        if head[:2] != b"\x1f\x8b":
            stream.seek(max(0, path.stat().st_size - SAMPLE))
            return [head, stream.read(SAMPLE)]
    try:
        with gzip.open(path, "rb") as packed:
            return [packed.read1(SAMPLE)]
    except (EOFError, OSError, zlib.error):
        return [head]


def _is_text(sample: bytes) -> bool:
    """Tell whether a sample is mostly text; characters beyond ASCII count if they are UTF-8."""
    sample = sample.strip(b"\0")
    beyond = sum(len(char.encode()) for char in sample.decode("utf-8", "ignore") if ord(char) > 0x9F)
    plain = len(sample) - len(sample.translate(None, _TEXT))
    return bool(sample) and (plain + beyond) / len(sample) >= TEXT_SHARE
