"""A policy that answers from a YAML file: the replies of a rehearsal, known beforehand.

rules:
  - when: "weather in (\\w+)"       # regular expression, searched in the last message
    tool: get_weather              # a tool call instead of a text
    arguments: {city: "{1}"}       # {1} or {name}: what a group of the expression matched
  - when: "degrees"
    in: tool                       # which message: last (default), user, tool, system, or prompt (all)
    replies: ["It is {0}.", "Ask again."]   # in turn
  - turn: 3                        # the third call of the conversation
    status: 500                    # an error instead of an answer
default: "I do not know."
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ajet.backbone.policies.base import ChatRequest, PolicyUnavailable, Reply, message_text
from ajet.backbone.policies.fixed import FixedPolicy

WHERE = ("last", "user", "tool", "system", "prompt")
ACTIONS = ("reply", "replies", "tool", "status")
FIELDS = {"when", "in", "turn", "arguments", *ACTIONS}
_GROUP = re.compile(r"\{(\w+)\}")


@dataclass
class Rule:
    """What is answered when its conditions hold."""

    when: re.Pattern[str] | None = None
    where: str = "last"
    turn: int | None = None
    replies: list[str] = field(default_factory=list)
    tool: str = ""
    arguments: Any = None
    status: int | None = None
    used: int = 0

    def match(self, request: ChatRequest) -> re.Match[str] | None:
        """Return the match that makes the rule apply, or None."""
        if self.turn is not None and self.turn != 1 + sum(one.get("role") == "assistant" for one in request.messages):
            return None
        return (self.when or _ANYTHING).search(_text(request, self.where))

    def answer(self, match: re.Match[str]) -> Reply:
        """Return the reply. Raises PolicyUnavailable if the rule is an error."""
        if self.status is not None:
            raise PolicyUnavailable(f"the script answers this call with status {self.status}", self.status)
        if self.tool:
            arguments = json.dumps(_filled(self.arguments or {}, match), ensure_ascii=False)
            return Reply(tool_calls=[(self.tool, arguments)], finish_reason="tool_calls")
        text = self.replies[self.used % len(self.replies)]
        self.used += 1
        return Reply(content=_filled(text, match))


_ANYTHING = re.compile("")


class ScriptPolicy(FixedPolicy):
    """Answers by the first rule of a file that applies; learns nothing.

    Raises ValueError that names the file, the rule and what is wrong with it.
    """

    name = "script"

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ValueError(f"the script {path} cannot be read: {error}") from None
        if (
            not isinstance(data, dict)
            or not isinstance(data.get("rules", []), list)
            or set(data) - {"rules", "default"}
        ):
            raise ValueError(f"the script {path} must be a mapping with 'rules' (a list) and 'default' (a text)")
        self.rules = [_rule(one, f"{path}: rule {number}") for number, one in enumerate(data.get("rules") or [], 1)]
        self.default = str(data.get("default", "I do not know."))

    def describe(self) -> str:
        """Say what this policy is."""
        return f"answers by the {len(self.rules)} rules of {self.path.name}; nothing is learned"

    async def reply(self, request: ChatRequest, temperature: float, top_p: float) -> Reply:
        """Return what the first applying rule says."""
        for rule in self.rules:
            match = rule.match(request)
            if match:
                return rule.answer(match)
        return Reply(content=self.default)


def _rule(data: Any, where: str) -> Rule:
    if not isinstance(data, dict):
        raise ValueError(f"{where} is {data!r}; it must be a mapping")
    unknown = set(data) - FIELDS
    if unknown:
        raise ValueError(f"{where} has {', '.join(sorted(map(str, unknown)))}; it may have {', '.join(sorted(FIELDS))}")
    given = [name for name in ACTIONS if name in data]
    if len(given) != 1:
        raise ValueError(f"{where} has {' and '.join(given) or 'no answer'}; it needs one of {', '.join(ACTIONS)}")
    try:
        when = re.compile(str(data["when"]), re.IGNORECASE | re.DOTALL) if "when" in data else None
    except re.error as error:
        raise ValueError(f"{where}: 'when' is no regular expression: {error}") from None
    if data.get("in", "last") not in WHERE:
        raise ValueError(f"{where}: 'in' is {data['in']!r}; it must be one of {', '.join(WHERE)}")
    for name in ("turn", "status"):
        if name in data and (not isinstance(data[name], int) or data[name] < 1):
            raise ValueError(f"{where}: {name!r} is {data[name]!r}; it must be a whole number above 0")
    if "status" in data and not 400 <= data["status"] <= 599:
        raise ValueError(f"{where}: 'status' is {data['status']}; it must be an HTTP error, 400 to 599")
    replies = data.get("replies", [data.get("reply", "")])
    if not isinstance(replies, list) or not replies:
        raise ValueError(f"{where}: 'replies' must be a list that is not empty")
    return Rule(
        when=when,
        where=data.get("in", "last"),
        turn=data.get("turn"),
        replies=[str(one) for one in replies],
        tool=str(data.get("tool", "")),
        arguments=data.get("arguments"),
        status=data.get("status"),
    )


def _text(request: ChatRequest, where: str) -> str:
    if where == "prompt":
        return request.prompt_text()
    messages = [one for one in request.messages if where in ("last", one.get("role"))]
    return message_text(messages[-1]) if messages else ""


def _filled(value: Any, match: re.Match[str]) -> Any:
    """Put the groups of a match where ``{1}`` or ``{name}`` stand; other braces stay."""
    if isinstance(value, dict):
        return {key: _filled(one, match) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, match) for one in value]
    if not isinstance(value, str):
        return value

    def group(place: re.Match[str]) -> str:
        name = place.group(1)
        try:
            return match.group(int(name) if name.isdigit() else name) or ""
        except (IndexError, re.error):
            return place.group(0)

    return _GROUP.sub(group, value)
