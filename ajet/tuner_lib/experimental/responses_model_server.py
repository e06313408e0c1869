"""``/v1/responses``: the policy behind the face of OpenAI's Responses API.

Requests become chat requests and answers become responses. Protocol:
https://platform.openai.com/docs/api-reference/responses.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ajet.backbone.policies.base import ChatRequest, tokenize
from ajet.tuner_lib.experimental.asgi import Request, Response, json_response
from ajet.tuner_lib.experimental.episode_pool import Refused
from ajet.tuner_lib.experimental.oai_model_server import (
    EVENT_STREAM,
    ChatServer,
    RunningCall,
    bearer,
    chat_request,
    openai_error,
    parse,
    sse,
)

KEPT_CONVERSATIONS = 1000
"""How many answers ``previous_response_id`` can refer to; the oldest are forgotten first."""


class ResponsesRequest(BaseModel):
    """The fields of a Responses request that the engine honours; others are kept and ignored."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    input: str | list[dict[str, Any]]
    model: str = ""
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    text: dict[str, Any] | None = None
    stream: bool = False


class ResponsesServer:
    """Serves Responses requests through a chat server; keeps the conversations that may be continued."""

    def __init__(self, chat: ChatServer) -> None:
        self.chat = chat
        self._conversations: OrderedDict[tuple[str, str], list[dict[str, Any]]] = OrderedDict()

    async def create(self, request: Request) -> Response:
        """Answer a Responses request of a claimed episode."""
        key = bearer(request)
        body = parse(ResponsesRequest, request.body)
        chat = to_chat(body, self._history(body.previous_response_id, key))
        asked = list(chat.messages)
        running = await self.chat.begin(chat, key)
        response = to_response(running.answer, body)
        self._keep(response["id"], key, [*asked, running.answer["choices"][0]["message"]])
        if body.stream:
            return Response(media_type=EVENT_STREAM, chunks=_events(running, response))
        await running.whole()
        return json_response(response)

    def _history(self, previous: str | None, key: str) -> list[dict[str, Any]]:
        if previous is None:
            return []
        try:
            return self._conversations[previous, key]
        except KeyError:
            raise openai_error(404, f"Previous response {previous!r} was not made in this episode.") from None

    def _keep(self, response_id: str, key: str, messages: list[dict[str, Any]]) -> None:
        # instructions are not carried over, as OpenAI's are not
        self._conversations[response_id, key] = [one for one in messages if one.get("role") != "system"]
        while len(self._conversations) > KEPT_CONVERSATIONS:
            self._conversations.popitem(last=False)


def to_chat(body: ResponsesRequest, history: list[dict[str, Any]]) -> ChatRequest:
    """Return the same request, behind ``history``, in the form of the Chat Completions API. Raises HttpError."""
    messages = [{"role": "system", "content": body.instructions}] if body.instructions else []
    messages += history
    if isinstance(body.input, str):
        messages.append({"role": "user", "content": body.input})
    else:
        messages.extend(_chat_message(item) for item in body.input if item.get("type") != "reasoning")
    tools = [
        {"type": "function", "function": {key: tool.get(key) for key in ("name", "description", "parameters")}}
        for tool in body.tools or []
        if tool.get("type") == "function"
    ]
    choice = body.tool_choice
    if isinstance(choice, dict):
        choice = {"type": "function", "function": {"name": choice.get("name", "")}}
    return chat_request(
        messages=messages,
        model=body.model,
        tools=tools or None,
        tool_choice=choice,
        max_tokens=body.max_output_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        response_format=(body.text or {}).get("format"),
        stream=body.stream,
    )


def _chat_message(item: dict[str, Any]) -> dict[str, Any]:
    kind = item.get("type", "message")
    if kind == "function_call":
        function = {"name": item.get("name", ""), "arguments": item.get("arguments", "")}
        calls = [{"id": item.get("call_id", ""), "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item.get("call_id", ""), "content": item.get("output")}
    if kind != "message":
        raise openai_error(400, f"Invalid request: input: items of type {kind!r} are not taken")
    content = item.get("content")
    if isinstance(content, list):
        if not all(isinstance(part, dict) for part in content):
            raise openai_error(400, "Invalid request: input: a part of content is an object with a type")
        content = [{**part, "type": "text" if "text" in part else part.get("type")} for part in content]
    role = "system" if item.get("role") == "developer" else item.get("role", "user")
    return {"role": role, "content": content}


def to_response(answer: dict[str, Any], body: ResponsesRequest) -> dict[str, Any]:
    """Return a ChatCompletion as a Response."""
    choice = answer["choices"][0]
    usage = answer.get("usage") or {}
    cut = choice["finish_reason"] == "length"
    status = "incomplete" if cut else "completed"
    output: list[dict[str, Any]] = []
    if choice["message"].get("content"):
        text = {"type": "output_text", "text": choice["message"]["content"], "annotations": [], "logprobs": []}
        message = {"type": "message", "id": f"msg_{uuid.uuid4().hex}", "role": "assistant", "status": status}
        output.append({**message, "content": [text]})
    output.extend(
        {
            "type": "function_call",
            "id": f"fc_{uuid.uuid4().hex}",
            "call_id": call["id"],
            "name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
            "status": "completed",
        }
        for call in choice["message"].get("tool_calls") or []
    )
    return {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "metadata": {},
        "model": answer["model"],
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": body.previous_response_id,
        "temperature": body.temperature,
        "text": body.text or {"format": {"type": "text"}},
        "tool_choice": body.tool_choice or "auto",
        "tools": body.tools or [],
        "top_p": body.top_p,
        "truncation": "disabled",
        "usage": {
            "input_tokens": usage.get("prompt_tokens", 0),
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage.get("completion_tokens", 0),
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.get("total_tokens", 0),
        },
    }


async def _events(running: RunningCall, response: dict[str, Any]) -> AsyncGenerator[bytes, None]:
    """Yield a response as the events of a Responses stream, a token at a time."""
    number = -1

    def event(kind: str, **data: Any) -> bytes:
        nonlocal number
        number += 1
        return sse({"type": kind, "sequence_number": number, **data}, kind)

    begun = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    try:
        yield event("response.created", response=begun)
        yield event("response.in_progress", response=begun)
        for index, item in enumerate(response["output"]):
            where = {"output_index": index, "item_id": item["id"]}
            if item["type"] == "function_call":
                yield event(
                    "response.output_item.added",
                    output_index=index,
                    item={**item, "arguments": "", "status": "in_progress"},
                )
                async for piece in running.paced(tokenize(item["arguments"])):
                    yield event("response.function_call_arguments.delta", delta=piece, **where)
                yield event(
                    "response.function_call_arguments.done", arguments=item["arguments"], name=item["name"], **where
                )
            else:
                part = item["content"][0]
                where["content_index"] = 0
                yield event(
                    "response.output_item.added",
                    output_index=index,
                    item={**item, "content": [], "status": "in_progress"},
                )
                yield event("response.content_part.added", part={**part, "text": ""}, **where)
                async for piece in running.paced(tokenize(part["text"])):
                    yield event("response.output_text.delta", delta=piece, logprobs=[], **where)
                yield event("response.output_text.done", text=part["text"], logprobs=[], **where)
                yield event("response.content_part.done", part=part, **where)
            yield event("response.output_item.done", output_index=index, item=item)
        running.finish()
        yield event(f"response.{response['status']}", response=response)
    except Refused as refused:
        yield event("error", code=str(refused.status), message=refused.detail, param=None)
    finally:
        running.give_up()
