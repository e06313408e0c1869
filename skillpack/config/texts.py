"""What ``config.py`` answers, as text for people."""

from __future__ import annotations

import json
import textwrap
from typing import Any

WIDTH = 100


def explain(document: dict[str, Any]) -> str:
    """Return the text of an ``explain`` document."""
    if document["section"]:
        lines = [f"{document['key']}: {document['description']}"]
        return "\n".join([*lines, *(f"  {row['key']} = {_value(row)}" for row in document["keys"])])
    lines = [f"{document['key']} = {_value(document)}   ({document['source']})"]
    if "asked_for" in document:
        lines.append(_row("asked for", f"{document['asked_for']}, which AgentJet sets from {document['key']}"))
    lines.append(_row("set by", _who(document)))
    below = document["layers"][:-1]
    if below:
        lines.append(
            _row("over", "; ".join(f"{_shown(one['value'])} ({one['set_by']['text']})" for one in below[::-1]))
        )
    lines.append(_row("does", document["description"]))
    lines.append(_row("takes", document["takes"] + (f" ({document['otherwise']})" if "otherwise" in document else "")))
    lines.append(_row("kwarg", document["kwarg"] or "none"))
    lines.append(_row("set it by", document["set_it"]))
    lines.append(_row("verl", ", ".join(document["verl"]) or "not copied to verl"))
    defaults = document["defaults"]
    lines.append(_row("default", f"swarm {_shown(defaults['swarm'])}, classic {_shown(defaults['classic'])}"))
    return "\n".join(lines)


def diff(document: dict[str, Any]) -> str:
    """Return the text of a ``diff`` document."""
    if document["same"]:
        return f"{document['first']} and {document['second']} configure the same"
    lines = [f"first:  {document['first']}", f"second: {document['second']}"]
    for row in document["differing"]:
        lines.append(row["key"])
        for name in ("first", "second"):
            side = row[name]
            lines.append(f"  {name:6} {_value(side)}   ({_who(side)})")
    return "\n".join(lines)


def lint(document: dict[str, Any]) -> str:
    """Return the text of a ``lint`` document."""
    lines = []
    for one in document["configurations"]:
        for finding in one["findings"]:
            place = ":".join(str(part) for part in (finding["file"], finding["line"]) if part)
            lines.append(f"{place}: {finding['severity']} {finding['rule']}: {finding['message']}")
            lines.append(f"    mend: {finding['mend']}")
        lines += [unknown(one["source"], item) for item in one["unknown"]]
    counts = ", ".join(f"{count} {level}{'s' if count != 1 else ''}" for level, count in document["counts"].items())
    return "\n".join([*lines, f"{'ok' if document['ok'] else 'not ok'}: {counts}"])


def unknown(source: str, item: dict[str, Any]) -> str:
    """Return the line that tells what could not be read off a script."""
    return f"{source.split('#')[0]}:{item['line']}: unknown {item['key'] or 'any kwarg'}: {item['reason']}"


def _row(name: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=f"  {name:9} ", subsequent_indent=" " * 12, break_on_hyphens=False)


def _who(state: dict[str, Any]) -> str:
    if not state["known"]:
        return str(state["why"])
    if not state["present"]:
        return "nobody"
    return str(state["set_by"]["text"]) if state["set_by"] else "nobody"


def _value(state: dict[str, Any]) -> str:
    if not state["known"]:
        return "unknown"
    return _shown(state["value"]) if state["present"] else "not set"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
