"""Name the mistake behind a YAML fault: parsers report where they gave up, people need to know why."""

from __future__ import annotations

import re

from skillpack.validate.tree import Fault

_PAIR = re.compile(
    r"^(?P<indent>[ \t]*)(?:- +)?(?P<key>[^\s#'\"\[{:][^:#]*?|'[^']*'|\"[^\"]*\")[ \t]*:[ \t]+(?P<value>\S.*)$"
)


def cause_of(text: str, fault: Fault) -> tuple[str, int]:
    """Return the rule that a YAML text breaks, and the line (from 0) to blame for it.

    A parser may notice only on a later line what is wrong on an earlier one (an open quote or
    bracket), so the lines before are looked at too, the nearest first.
    """
    if fault.rule:
        return fault.rule, fault.line
    lines = text.split("\n")
    line = min(fault.line, len(lines) - 1)
    for number in (line, *range(line - 1, -1, -1)):
        rule = _mistake(lines[number])
        if rule:
            return rule, number
    return "yaml-invalid", line


def _mistake(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    if "\t" in indent:
        return "yaml-tab"
    if "\u00a0" in line.split(":")[0] or line.partition(":")[2].startswith("\u00a0"):
        return "yaml-blank"
    pair = _PAIR.match(line)
    if pair is None:
        return ""
    value = pair["value"].rstrip()
    if "{{" in value[:2] or (value.startswith("<") and value.endswith(">")):
        return "yaml-placeholder"
    if value[0] in "\"'":
        closing = value.find(value[0], 1)
        return "yaml-quote" if closing != len(value) - 1 else ""
    if value[0] in "[{":
        return "yaml-bracket"
    if value[0] in "|>":
        return "yaml-block" if len(value.split(" #")[0].strip()) > 3 else ""
    if re.search(r":(\s|$)", re.split(r"\s#", value)[0]):
        return "yaml-colon"
    return "yaml-start" if value[0] in "@`%*&!,]}" else ""
