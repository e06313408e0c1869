"""Strip from a console line what stands in front of the message, and say who wrote it."""

from __future__ import annotations

import re

from skillpack.metrics.console import ANSI, RAY_PREFIX, RAY_REPEATED

_REPEATS = re.compile(r"\[repeated (\d+)x across cluster\]")
_PART = re.compile(r"^\[[\w-]+\] ")
_LOGURU = re.compile(
    r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,\d]*\s*\|\s*\w+\s*\|\s*[^|]*? - |"
    r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]?\d*\s*(?:[-|:]\s*)?(?:\[?\w+\]?\s*[-|:]\s*)?|"
    r"^(?:INFO|WARNING|ERROR|CRITICAL|DEBUG)[ :]+(?:\d\d-\d\d \d\d:\d\d:\d\d )?(?:\[[^\]]*\] )?|"
    r"^\[\d{4}-\d\d-\d\d[^\]]*\]\s*(?:\[\w+\]\s*)?"
)
_RANK = re.compile(r"^\[?(?:rank|Rank )\d+\]?:? ?")
_BAR = re.compile(r"^.*?\d+%\|[^|]*\|[^\[]*\[[^\]]*\]\s*(?=\S)")


def clean(line: str) -> str:
    """Return the message of a console line.

    Colours, Ray's ``(Worker pid=1, ip=2)``, the name of a run's part, a rank, a logger's time and
    level, a progress bar that was drawn before the message, and Ray's note of repetition go.
    """
    text = ANSI.sub("", line).replace("\0", "").rstrip()
    if "\r" in text:
        text = text.rsplit("\r", 1)[-1]
    text = _PART.sub("", text)
    text = RAY_REPEATED.sub("", text)
    while prefix := RAY_PREFIX.match(text):  # an engine's own prefix may follow its worker's
        text = text[prefix.end() :]
    text = _RANK.sub("", text)
    text = _LOGURU.sub("", text, count=1)
    if "%|" in text:
        text = _BAR.sub("", text)
    return text


def writer(line: str) -> str:
    """Return who wrote a line, as Ray's prefix says (``WorkerDict pid=31``), or ""."""
    found = re.match(r"\((\S+(?:\([^()]*\))? pid=\d+)", ANSI.sub("", line))
    return found[1] if found else ""


def repeats(line: str) -> int:
    """Return how many lines this one stands for: Ray prints alike lines of many workers once."""
    found = _REPEATS.search(line)
    return 1 + int(found[1]) if found else 1
