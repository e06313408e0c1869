"""What a policy is asked, what it answers, and what it is told afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ajet.tuner_lib.experimental.episode import CompletedEpisode

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w{1,4}|[^\w\s]")


def count_tokens(text: str, most: int | None = None) -> int:
    """Return how many tokens ``tokenize`` makes of a text; counting stops at ``most``."""
    return sum(1 for _ in islice(_TOKEN.finditer(text), most))


def tokenize(text: str) -> list[str]:
    """Split text into pieces with the white space before them: about four letters, or one ideograph, each.

    A stand-in for a model's tokenizer: counts are of the right order, not equal to any model's.
    """
    pieces, end = [], 0
    for match in _TOKEN.finditer(text):
        pieces.append(text[end : match.end()])
        end = match.end()
    if pieces and end < len(text):
        pieces[-1] += text[end:]
    return pieces or ([text] if text else [])


class ChatRequest(BaseModel):
    """The fields of an OpenAI chat completion request that the engine honours; others are kept."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    messages: list[dict[str, Any]]
    model: str = ""
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    stop: str | list[str] | None = None
    n: int | None = Field(default=None, ge=1, le=128)
    seed: int | None = None
    response_format: dict[str, Any] | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=20)

    @field_validator("tools")
    @classmethod
    def _check_tools(cls, tools: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        for tool in tools or []:
            function = tool.get("function", tool)
            parameters = (function.get("parameters") or {}) if isinstance(function, dict) else None
            if not isinstance(parameters, dict) or not _are_properties(parameters.get("properties") or {}):
                raise ValueError('a tool is {"type": "function", "function": {"name": …, "parameters": JSON Schema}}')
            required = parameters.get("required") or []
            if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
                raise ValueError("required: the list of the names of parameters")
        return tools

    @field_validator("tool_choice")
    @classmethod
    def _check_tool_choice(cls, choice: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
        if isinstance(choice, dict) and not isinstance(choice.get("function", {}), dict):
            raise ValueError('a named tool is {"type": "function", "function": {"name": …}}')
        return choice

    def prompt_text(self) -> str:
        """Return all messages as text, one role and content per line."""
        return "\n".join(f"{message.get('role', '')}: {message_text(message)}" for message in self.messages)


def _are_properties(properties: Any) -> bool:
    """Tell whether these are the properties of a JSON Schema, as far as the policies read it."""
    if not isinstance(properties, dict) or not all(isinstance(one, dict) for one in properties.values()):
        return False
    choices = [one["enum"] for one in properties.values() if "enum" in one]
    return all(isinstance(values, list) and values for values in choices)


def message_text(message: dict[str, Any]) -> str:
    """Return the text of a message; parts that are not text (images, audio) are named in brackets."""
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(
            str(part.get("text", "")) if part.get("type", "text") == "text" else f"[{part.get('type')}]"
            for part in content
            if isinstance(part, dict)
        )
    return "" if content is None else str(content)


@dataclass(slots=True)
class Reply:
    """One choice: text or tool calls (name and JSON arguments), and what learning needs to know of it."""

    content: str = ""
    tool_calls: list[tuple[str, str]] = field(default_factory=list)
    finish_reason: str = "stop"
    logprob: float = 0.0
    entropy: float = 0.0
    trace: dict[str, Any] = field(default_factory=dict)
    stop_word: str | None = None


class PolicyUnavailable(Exception):
    """The policy cannot answer this call; ``status`` is the HTTP code that the client shall get."""

    def __init__(self, message: str, status: int = 503) -> None:
        super().__init__(message)
        self.status = status


class Policy(Protocol):
    """What answers the chat calls of an engine."""

    name: str
    learns: bool

    def describe(self) -> str:
        """Say in a sentence what this policy is, for ``/health`` and the banner."""

    async def reply(self, request: ChatRequest, temperature: float, top_p: float) -> Reply:
        """Answer a request. Temperature 0 means the likeliest reply."""

    def update(self, episodes: Iterable[CompletedEpisode], kl_coef: float) -> dict[str, float]:
        """Learn from a batch; return the ``actor/*`` metrics of the update."""

    def state(self) -> dict[str, Any]:
        """Return everything learned, as plain JSON data."""

    def load(self, state: dict[str, Any]) -> None:
        """Take over what ``state`` returned. Raises ValueError if it is another policy's."""

    async def close(self) -> None:
        """Let go of connections at the end of a run; the policy may be asked again."""
