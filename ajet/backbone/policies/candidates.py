"""The replies that the learning policy chooses from, read off the prompt.

A laptop has no language model, so the policy picks among replies that simple rules make: the
numbers of the question and what arithmetic makes of them, its options, its quoted strings, the
result of the last tool call, a call of each tool. Each has a ``kind`` that means the same in
every prompt; the kinds are what the policy learns about.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from ajet.backbone.policies.base import ChatRequest, message_text

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")
_OPTION = re.compile(r"^\s*\(?([A-Z])[).:]\s+\S", re.MULTILINE)
_QUOTED = re.compile(r"\"([^\"\n]{1,80})\"|`([^`\n]{1,80})`|“([^”\n]{1,80})”")
_CHOICES = re.compile(r"(?:one of|choose from|choose between|answer with)[:\s]+([^.?!\n]{3,120})", re.IGNORECASE)

FORMATS = {
    r"\boxed{": "\\boxed{{{}}}",
    "####": "#### {}",
    "<answer>": "<answer>{}</answer>",
}
"""Marker in the prompt: how an answer looks when the prompt asks for it."""

MAX_NUMBERS = 6
MAX_TOOLS = 16


@dataclass(frozen=True, slots=True)
class Candidate:
    """A reply (text, or a tool's name and JSON arguments) and its kind."""

    kind: str
    content: str = ""
    tool: str = ""
    arguments: str = ""


def candidates(request: ChatRequest) -> list[Candidate]:
    """Return the replies to choose from: at least one, each kind once.

    ``tool_choice`` is honoured: ``none`` leaves texts only, ``required`` or a named tool leaves
    its calls only. In JSON mode every text becomes ``{"answer": text}``.
    """
    question = _last_text(request.messages, "user")
    values = _values(question, _last_text(request.messages, "tool"))
    choice = request.tool_choice
    found: list[Candidate] = []
    if request.tools and choice != "none":
        named = choice.get("function", {}).get("name") if isinstance(choice, dict) else None
        found = [call for call in _tool_calls(request.tools, question) if named in (None, call.tool)]
        if found and (choice == "required" or named):
            return found
    asked = [shape for marker, shape in FORMATS.items() if marker in request.prompt_text()]
    json_mode = (request.response_format or {}).get("type") in ("json_object", "json_schema")
    for kind, value in values:
        if json_mode:
            found.append(Candidate(kind, json.dumps({"answer": _plain(value)}, ensure_ascii=False)))
        else:
            found.extend(Candidate(f"{kind}/{shape}", shape.format(value)) for shape in asked)
            found.append(Candidate(kind, value))
    return found


def template(request: ChatRequest) -> str:
    """Return the last question with its numbers and quoted strings masked: tasks of one sort share it."""
    question = _last_text(request.messages, "user")
    return _NUMBER.sub("#", _QUOTED.sub('"…"', question))[:400]


def _last_text(messages: list[dict[str, Any]], role: str) -> str:
    return next((message_text(message) for message in reversed(messages) if message.get("role") == role), "")


def _values(question: str, tool_result: str) -> list[tuple[str, str]]:
    values: dict[str, str] = {}
    if tool_result:
        values["tool-result"] = tool_result[:2000]
    values.update(_arithmetic(_numbers(tool_result if tool_result and not _NUMBER.search(question) else question)))
    for letter in dict.fromkeys(_OPTION.findall(question)):
        values[f"option {letter}"] = letter
    for index, groups in enumerate(_QUOTED.findall(question)[:4]):
        values[f"quoted {index}"] = next(filter(None, groups))
    choices = _CHOICES.search(question)
    if choices:
        parts = [part.strip(" '\"") for part in re.split(r",|\bor\b", choices.group(1)) if part.strip(" '\"")]
        values.update({f"choice {index}": part for index, part in enumerate(parts[:8]) if len(parts) > 1})
    values["yes"] = "yes"
    values["no"] = "no"
    words = question.split()
    if words:
        values["last word"] = words[-1].strip(".?!,;:")
    values["echo"] = question[:2000] or "(no question)"
    values["unknown"] = "I do not know."
    return list(values.items())


def _numbers(text: str) -> list[float]:
    numbers = map(float, _NUMBER.findall(text)[:MAX_NUMBERS])
    return [number for number in numbers if math.isfinite(number)]


def _arithmetic(numbers: list[float]) -> dict[str, str]:
    if not numbers:
        return {}
    values = {"first number": numbers[0], "last number": numbers[-1], "largest": max(numbers), "smallest": min(numbers)}
    if len(numbers) > 1:
        a, b = numbers[0], numbers[1]
        values |= {"sum": sum(numbers), "difference": a - b, "product": a * b, "reverse difference": b - a}
        if b:
            values["quotient"] = a / b
    return {kind: _number_text(value) for kind, value in values.items() if math.isfinite(value)}


def _number_text(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def _plain(value: str) -> str | int | float:
    try:
        number = float(value)
    except ValueError:
        return value
    if not math.isfinite(number):
        return value  # the words "nan" and "infinity" are text, and JSON has no such numbers
    return int(number) if number == int(number) else number


def _tool_calls(tools: list[dict[str, Any]], question: str) -> list[Candidate]:
    calls = []
    for tool in tools[:MAX_TOOLS]:
        function = tool.get("function") or tool
        name = str(function.get("name", ""))
        if name:
            arguments = _arguments(function.get("parameters") or {}, question)
            calls.append(Candidate(f"call {name}", tool=name, arguments=json.dumps(arguments, ensure_ascii=False)))
    return calls


def _arguments(schema: dict[str, Any], question: str) -> dict[str, Any]:
    """Fill a tool's required parameters from the question, in order, by their types."""
    numbers = iter(_numbers(question))
    quoted = iter([next(filter(None, groups)) for groups in _QUOTED.findall(question)])
    properties = schema.get("properties") or {}
    arguments: dict[str, Any] = {}
    for name in schema.get("required") or list(properties):
        kind = properties.get(name, {})
        if "enum" in kind:
            arguments[name] = kind["enum"][0]
        elif kind.get("type") == "integer":
            arguments[name] = int(next(numbers, 0))
        elif kind.get("type") == "number":
            arguments[name] = next(numbers, 0.0)
        elif kind.get("type") == "boolean":
            arguments[name] = True
        elif kind.get("type") == "array":
            arguments[name] = []
        elif kind.get("type") == "object":
            arguments[name] = {}
        else:
            arguments[name] = next(quoted, question)
    return arguments
