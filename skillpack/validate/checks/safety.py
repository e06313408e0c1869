"""A short list of what a skill should not do, made for few false alarms (``safety.yaml``)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import yaml

from skillpack.validate.checks.shell import cannot_be_empty, commands_in
from skillpack.validate.checks.skill import PROSE, SCRIPTS, Skill
from skillpack.validate.problems import Problem, problem

_PATH = Path(__file__).parent.parent / "safety.yaml"
_HIDDEN = re.compile(
    "[\u202a-\u202e\u2066-\u2069]"  # bidirectional controls
    "|(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]+"  # tags, but for flags
    "|(?P<run>[\u200b-\u200d\u2060-\u2064\ufeff]{4,})"  # a few are hints where to break a line, or join emoji
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}"  # variation selectors: one is enough for a character
)
_UNSEEN = re.compile("[\u200b-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]")
"""What ``_HIDDEN`` begins with: most texts have none, and are not looked through by it."""

ABOVE = 600
"""Characters above a match in which it may be said what the text is about."""

LINES_NEAR = 2
"""Lines above and below a hint in which the pattern is looked for."""

MAX_LOOKED = 200
"""Matches of one pattern in one file that are looked at for a real one."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A pattern under a rule, where it is looked for, and what takes it back."""

    rule: str
    where: str
    hint: tuple[str, ...]
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None
    unless_above: re.Pattern[str] | None
    unless_said: re.Pattern[str] | None


@lru_cache(maxsize=1)
def signatures() -> tuple[Signature, ...]:
    """Return the list of ``safety.yaml``."""
    entries = yaml.safe_load(_PATH.read_text(encoding="utf-8"))
    return tuple(
        Signature(
            entry["rule"],
            entry["where"],
            tuple(entry["hint"]),
            _joined(entry["pattern"], re.MULTILINE | re.IGNORECASE * (entry["where"] == "text")),
            *(_joined(entry[key]) if key in entry else None for key in ("unless", "unless_above", "unless_said")),
        )
        for entry in entries
    )


def _joined(lines: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern whose alternatives stand on lines of their own."""
    return re.compile(re.sub(r"\s*\n?\s+(?=\|)", "", lines), flags)


def check(skill: Skill) -> Iterator[Problem]:
    """Yield the findings in SKILL.md and the skill's other text files, one for each rule and file."""
    said = skill.field("description") + "\n" + skill.field("compatibility")
    for file in skill.text_files:
        text = skill.text(file)
        yield from _check_hidden(file, text)
        yield from _check_signatures(skill, file, text, said)


def _check_hidden(file: str, text: str) -> Iterator[Problem]:
    if text.isascii() or not _UNSEEN.search(text):
        return
    match = next((found for found in _HIDDEN.finditer(text) if not _is_padding(found["run"] or "")), None)
    if match:
        character = match[0][0]
        yield problem(
            "safety-hidden-text", f"U+{ord(character):04X}", line=text.count("\n", 0, match.start()) + 1, file=file
        )


def _is_padding(run: str) -> bool:
    """Tell whether a run of zero-width characters is one that editors leave behind: of one kind, and short."""
    return 0 < len(run) < 16 and len(set(run)) == 1


def _check_signatures(skill: Skill, file: str, text: str, said: str) -> Iterator[Problem]:
    script, prose = file.endswith(SCRIPTS), file.endswith(PROSE)
    no_code = not script and not (prose and ("`" in text or "~~~" in text))
    for signature in signatures():
        if no_code and signature.where in ("code", "commands"):
            continue
        hinted = text.lower() if signature.where == "text" else text
        if not any(map(hinted.__contains__, signature.hint)):
            continue
        looked = text
        if signature.where in ("code", "commands") and not script:
            looked = commands_in(skill, file, text, quoted=signature.where == "commands")
        elif signature.where == "text" and not prose:
            continue
        if signature.unless_said and signature.unless_said.search(said):
            continue
        for match in islice(_matches(signature, looked, hinted if looked is text else looked), MAX_LOOKED):
            if _harmless(signature, match, looked):
                continue
            start = match.start("at") if match.groupdict().get("at") else match.start()
            shown = looked[start : match.end()].strip() if signature.rule != "safety-secret" else match[0][:8] + "…"
            yield problem(signature.rule, shown[:80], line=looked.count("\n", 0, start) + 1, file=file)
            break


def _matches(signature: Signature, text: str, hinted: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern in the lines of ``text`` near its hints, as they stand in ``hinted``."""
    if len(hinted) != len(text):  # a letter whose lower case is two
        yield from signature.pattern.finditer(text)
        return
    for start, end in _near(hinted, signature.hint):
        yield from signature.pattern.finditer(text, start, end)


def _near(text: str, hints: Iterable[str]) -> list[tuple[int, int]]:
    """Return the parts of a text, in whole lines, that lie near a hint; in order and apart."""
    spans = []
    for hint in hints:
        at = text.find(hint)
        while at >= 0:
            start = at
            for _ in range(LINES_NEAR + 1):
                start = text.rfind("\n", 0, max(start, 0))
            line_end = end = _line_end(text, at)
            for _ in range(LINES_NEAR):
                end = _line_end(text, end + 1)
            spans.append((start + 1, end))
            at = text.find(hint, line_end)
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _harmless(signature: Signature, match: re.Match[str], text: str) -> bool:
    line = text[text.rfind("\n", 0, match.start()) + 1 : _line_end(text, match.end())]
    if signature.where in ("code", "commands") and line.lstrip().startswith(("#", "//")):
        return True
    above = text[max(0, match.start() - ABOVE) : match.end()]
    if signature.unless and signature.unless.search(line):
        return True
    if signature.unless_above and signature.unless_above.search(above + line):
        return True
    if signature.rule == "safety-secret":
        return not _random(match[0])
    if signature.rule == "safety-rm-variable":
        return cannot_be_empty(match["name"] or match["bare"], text)
    return False


def _random(text: str) -> bool:
    """Tell whether a token looks drawn at random: not a placeholder such as xxxx or EXAMPLE."""
    if re.search(r"example|xxxx|your|dummy|fake|test|sample|placeholder|1234567|abcdef|\.\.\.", text, re.IGNORECASE):
        return False
    counted = Counter(text)
    entropy = -sum(count / len(text) * math.log2(count / len(text)) for count in counted.values())
    return entropy > 3.2
