"""``/v1/messages``: the policy behind the face of the Anthropic API.

Requests become chat requests and answers become messages; nothing else differs from
``/v1/chat/completions``. Protocol: https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncGenerator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ajet.backbone.policies.base import ChatRequest, count_tokens, tokenize
from ajet.tuner_lib.experimental.asgi import HttpError, Request, Response, json_response
from ajet.tuner_lib.experimental.episode_pool import Refused
from ajet.tuner_lib.experimental.oai_model_server import (
    EVENT_STREAM,
    ChatServer,
    RunningCall,
    bearer,
    chat_request,
    parse,
    sse,
)

STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
ERROR_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}


class MessagesRequest(BaseModel):
    """The fields of a Messages request that the engine honours; others are kept and ignored."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    messages: list[dict[str, Any]]
    max_tokens: int = Field(default=4096, ge=1)
    model: str = ""
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: dict[str, Any] | None = None
    stop_sequences: list[str] | None = None
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    stream: bool = False


class MessagesServer:
    """Serves Messages requests through a chat server."""

    def __init__(self, chat: ChatServer) -> None:
        self.chat = chat

    async def create(self, request: Request) -> Response:
        """Answer a Messages request of a claimed episode."""
        try:
            body = parse(MessagesRequest, request.body)
            running = await self.chat.begin(to_chat(body), _key(request))
            try:
                message = to_message(running.answer)
            except HttpError:
                running.give_up()
                raise
            if body.stream:
                return Response(media_type=EVENT_STREAM, chunks=_events(running, message))
            await running.whole()
            return json_response(message)
        except HttpError as error:
            raise _error(error.status, str(error)) from None

    async def count_tokens(self, request: Request) -> Response:
        """Count the tokens of a Messages request."""
        try:
            chat = to_chat(parse(MessagesRequest, request.body))
        except HttpError as error:
            raise _error(error.status, str(error)) from None
        return json_response({"input_tokens": count_tokens(chat.prompt_text())})


def to_chat(body: MessagesRequest) -> ChatRequest:
    """Return the same request in the form of the OpenAI API. Raises HttpError (400) for bad blocks and bad tools."""
    messages: list[dict[str, Any]] = []
    if body.system:
        messages.append({"role": "system", "content": _blocks_text(body.system)})
    for message in body.messages:
        messages.extend(_chat_messages(message))
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool.get("name", ""),
                "description": tool.get("description", ""),
                "parameters": tool.get("input_schema") or {},
            },
        }
        for tool in body.tools or []
    ]
    return chat_request(
        messages=messages,
        model=body.model,
        tools=tools or None,
        tool_choice=_tool_choice(body.tool_choice),
        max_tokens=body.max_tokens,
        stop=body.stop_sequences,
        temperature=body.temperature,
        top_p=body.top_p,
        stream=body.stream,
    )


def to_message(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a ChatCompletion as a Message. Raises HttpError (502) for tool arguments that are no JSON object."""
    choice = answer["choices"][0]
    usage = answer.get("usage") or {}
    content: list[dict[str, Any]] = []
    if choice["message"].get("content"):
        content.append({"type": "text", "text": choice["message"]["content"]})
    for call in choice["message"].get("tool_calls") or []:
        function = call["function"]
        block = {"type": "tool_use", "id": call["id"].replace("call_", "toolu_"), "name": function["name"]}
        content.append({**block, "input": _arguments(function)})
    stop = choice.get("stop_reason")
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": answer["model"],
        "content": content,
        "stop_reason": "stop_sequence" if stop else STOP_REASONS.get(choice["finish_reason"], "end_turn"),
        "stop_sequence": stop,
        "usage": {
            "input_tokens": usage.get("prompt_tokens", 0),
            "output_tokens": usage.get("completion_tokens", 0),
        },
    }


def _arguments(function: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a tool call; a real model behind the proxy policy may write what is no JSON."""
    try:
        arguments = json.loads(function["arguments"] or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise HttpError(502, f"The model calls {function['name']} with no JSON object: {function['arguments'][:200]}")
    return arguments


def _key(request: Request) -> str:
    return request.header(b"x-api-key") or bearer(request)


def _error(status: int, message: str) -> HttpError:
    kind = ERROR_TYPES.get(status, "api_error")
    return HttpError(status, message, {"type": "error", "error": {"type": kind, "message": message}, "detail": message})


def _chat_messages(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a message as chat messages: the results of tools are messages of their own there."""
    role, content = message.get("role", "user"), message.get("content")
    if not isinstance(content, list):
        return [{"role": role, "content": content}]
    _check_blocks(content)
    results = [
        {"role": "tool", "tool_call_id": block.get("tool_use_id", ""), "content": _blocks_text(block.get("content"))}
        for block in content
        if block.get("type") == "tool_result"
    ]
    calls = [
        {
            "id": block.get("id", ""),
            "type": "function",
            "function": {"name": block.get("name", ""), "arguments": json.dumps(block.get("input") or {})},
        }
        for block in content
        if block.get("type") == "tool_use"
    ]
    rest = [block for block in content if block.get("type") not in ("tool_result", "tool_use", "thinking")]
    if not rest and not calls:
        return results
    own: dict[str, Any] = {"role": role, "content": rest}
    if calls:
        own["tool_calls"] = calls
    return [*results, own]


def _check_blocks(blocks: list[Any]) -> None:
    if not all(isinstance(block, dict) for block in blocks):
        raise HttpError(400, "Invalid request: messages: a block of content is an object with a type")


def _blocks_text(content: Any) -> str:
    if isinstance(content, list):
        _check_blocks(content)
        return "\n".join(str(block.get("text", f"[{block.get('type')}]")) for block in content)
    return "" if content is None else str(content)


def _tool_choice(choice: dict[str, Any] | None) -> str | dict[str, Any] | None:
    kind = (choice or {}).get("type")
    if kind == "tool":
        assert choice is not None
        return {"type": "function", "function": {"name": choice.get("name", "")}}
    return {"any": "required", "none": "none", "auto": "auto"}.get(str(kind))


async def _events(running: RunningCall, message: dict[str, Any]) -> AsyncGenerator[bytes, None]:
    """Yield a message as the events of a Messages stream, a token at a time."""

    def event(kind: str, **data: Any) -> bytes:
        return sse({"type": kind, **data}, kind)

    try:
        started = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
        yield event("message_start", message={**started, "usage": {**message["usage"], "output_tokens": 0}})
        for index, block in enumerate(message["content"]):
            if block["type"] == "text":
                empty, field, text = {**block, "text": ""}, "text", block["text"]
            else:
                empty, field, text = {**block, "input": {}}, "partial_json", json.dumps(block["input"])
            kind = "text_delta" if field == "text" else "input_json_delta"
            yield event("content_block_start", index=index, content_block=empty)
            async for piece in running.paced(tokenize(text)):
                yield event("content_block_delta", index=index, delta={"type": kind, field: piece})
            yield event("content_block_stop", index=index)
        running.finish()
        delta = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
        yield event("message_delta", delta=delta, usage={"output_tokens": message["usage"]["output_tokens"]})
        yield event("message_stop")
    except Refused as refused:
        yield sse(_error(refused.status, refused.detail).body, "error")
    finally:
        running.give_up()
