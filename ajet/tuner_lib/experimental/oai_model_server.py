"""``/v1/chat/completions``: the policy behind the face of the OpenAI API."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ajet.backbone.policies.base import ChatRequest, Policy, PolicyUnavailable, Reply, count_tokens, tokenize
from ajet.tuner_lib.experimental.asgi import HttpError, Request, Response, json_response
from ajet.tuner_lib.experimental.episode import EVAL, Call, Episode
from ajet.tuner_lib.experimental.episode_key import base_key
from ajet.tuner_lib.experimental.episode_pool import EpisodePool, Refused

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

EVENT_STREAM = b"text/event-stream; charset=utf-8"
SYSTEM_PROMPT = "You are AgentJet, a helpful assistant."


@dataclass(frozen=True, slots=True)
class Sampling:
    """The lengths (tokens) and sampling defaults that a configuration sets for chat calls."""

    temperature: float = 0.9
    top_p: float = 1.0
    val_temperature: float = 0.0
    val_top_p: float = 1.0
    max_model_len: int = 18000
    max_response_length_in_one_turn: int = 4096


class ChatServer:
    """Answers the chat calls of claimed episodes and records them for training.

    ``policy()`` gives the policy and ``sampling()`` the settings of the run that is on; ``latency()``
    how many seconds a reply shall take. ``latest_call`` is the last completed request and answer;
    ``on_call(episode, chat, answer)`` is told of each completed call.
    """

    def __init__(
        self,
        pool: EpisodePool,
        policy: Callable[[], Policy],
        sampling: Callable[[], Sampling],
        latency: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.pool = pool
        self.policy = policy
        self.sampling = sampling
        self.latency = latency
        self.latest_call: dict[str, Any] | None = None
        self.on_call: Callable[[Episode, ChatRequest, dict[str, Any]], None] = lambda episode, chat, answer: None

    async def complete(self, request: Request) -> Response:
        """Handle a request; errors have both FastAPI's ``detail`` and OpenAI's ``error``."""
        key = bearer(request)
        chat = parse(ChatRequest, request.body)
        running = await self.begin(chat, key)
        if not chat.stream:
            return json_response(await running.whole())
        return Response(
            media_type=EVENT_STREAM,
            chunks=chunks(running.answer, chat, running),
        )

    async def begin(self, chat: ChatRequest, key: str) -> RunningCall:
        """Let the policy answer; the call is recorded when the returned call is finished.

        Raises HttpError with the code and words of a refusal; then nothing reached the policy.
        """
        try:
            return await self._begin(chat, key)
        except Refused as refused:
            raise openai_error(refused.status, refused.detail) from None

    async def _begin(self, chat: ChatRequest, key: str) -> RunningCall:
        episode = self.pool.begin_call(key)
        claim, call = episode.claim, None
        if not chat.messages or chat.messages[0].get("role") != "system":
            chat.messages.insert(0, {"role": "system", "content": SYSTEM_PROMPT})
        sampling = self.sampling()
        evaluating = episode.episode_type == EVAL
        try:
            prompt_tokens = count_tokens(chat.prompt_text(), sampling.max_model_len)
            room = sampling.max_model_len - sampling.max_response_length_in_one_turn
            if prompt_tokens >= room:
                answer = _overflow(chat, prompt_tokens, room)
            else:
                temperature = _first(chat.temperature, sampling.val_temperature if evaluating else sampling.temperature)
                top_p = _first(chat.top_p, sampling.val_top_p if evaluating else sampling.top_p)
                limit = _first(chat.max_completion_tokens, chat.max_tokens, sampling.max_response_length_in_one_turn)
                policy = self.policy()
                replies = [await policy.reply(chat, temperature, top_p) for _ in range(chat.n or 1)]
                pieces = [trim(reply, chat.stop, limit) for reply in replies]
                answer = completion(chat, replies, pieces, prompt_tokens)
                call = Call(
                    prompt_tokens=prompt_tokens,
                    response_tokens=len(pieces[0]),
                    finish_reason=replies[0].finish_reason,
                    logprob=replies[0].logprob,
                    entropy=replies[0].entropy,
                    trace=replies[0].trace,
                )
        except PolicyUnavailable as error:
            self.pool.finish_call(episode, claim, None)
            raise openai_error(error.status, str(error)) from None
        except BaseException:
            self.pool.finish_call(episode, claim, None)
            raise
        trained = key == episode.api_key or base_key(key)[1]
        return RunningCall(self, chat, answer, episode, claim, call if trained else None, self.latency())


@dataclass(slots=True)
class RunningCall:
    """A chat call whose answer is known and on its way to the client; ``latency`` is in seconds.

    Until it is finished the episode counts as busy; what is finished is recorded for training.
    """

    server: ChatServer
    chat: ChatRequest
    answer: dict[str, Any]
    episode: Episode
    claim: int
    call: Call | None
    latency: float = 0.0
    finished: bool = False

    async def whole(self) -> dict[str, Any]:
        """Return the whole answer after the latency. Raises HttpError if the claim is gone meanwhile."""
        try:
            if self.latency:
                await asyncio.sleep(self.latency)
            self.finish()
        except Refused as refused:
            raise openai_error(refused.status, refused.detail) from None
        finally:
            self.give_up()
        return self.answer

    async def paced(self, parts: list[T]) -> AsyncIterator[T]:
        """Yield the parts of a streamed answer spread over the latency."""
        for part in parts:
            if self.latency:
                await asyncio.sleep(self.latency / len(parts))
            yield part

    def finish(self) -> None:
        """Record the call. Raises Refused if the claim that it was made under is gone."""
        if not self.finished:
            self.finished = True
            self.server.pool.finish_call(self.episode, self.claim, self.call)
            self.server.latest_call = {"input": self.chat.model_dump(exclude_unset=True), "output": self.answer}
            self.server.on_call(self.episode, self.chat, self.answer)

    def give_up(self) -> None:
        """Note that the answer was not delivered; without effect behind ``finish``."""
        if not self.finished:
            self.finished = True
            with contextlib.suppress(Refused):
                self.server.pool.finish_call(self.episode, self.claim, None)


def parse(model: type[M], body: bytes) -> M:
    """Return the body as a model; raise the 400 that OpenAI's servers answer to another."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise _invalid_request(error) from None


def chat_request(**fields: Any) -> ChatRequest:
    """Return the chat request that a request of another API amounts to; raise the 400 as ``parse`` does."""
    try:
        return ChatRequest(**fields)
    except ValidationError as error:
        raise _invalid_request(error) from None


def _invalid_request(error: ValidationError) -> HttpError:
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"])) or "body"
    return openai_error(400, f"Invalid request: {where}: {first['msg']}")


def bearer(request: Request) -> str:
    """Return the key of an Authorization header. Raises the 401 that OpenAI SDKs understand."""
    scheme, _, key = request.header(b"authorization").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise openai_error(401, "Unauthorized: send 'Authorization: Bearer <api key>' with the key of begin_episode.")
    return key.strip()


def openai_error(status: int, message: str) -> HttpError:
    """Return an error that says the same to FastAPI-minded and to OpenAI-minded clients."""
    kind = {401: "authentication_error", 404: "not_found_error"}.get(status, "invalid_request_error")
    return HttpError(status, message, {"detail": message, "error": {"message": message, "type": kind, "code": status}})


def trim(reply: Reply, stop: str | list[str] | None, max_tokens: int) -> list[str]:
    """Cut a reply's text at the first stop string and at ``max_tokens``; return it as tokens.

    Changes ``content`` and ``finish_reason`` of the reply. A tool call is never cut: half of one
    is of no use.
    """
    for word in [stop] if isinstance(stop, str) else stop or []:
        if word and word in reply.content:
            reply.content = reply.content[: reply.content.index(word)]
            reply.stop_word = word
    pieces = tokenize(reply.content)
    if len(pieces) > max_tokens and not reply.tool_calls:
        pieces = pieces[:max_tokens]
        reply.content = "".join(pieces)
        reply.finish_reason = "length"
    return pieces + [piece for _, arguments in reply.tool_calls for piece in tokenize(arguments)]


def completion(chat: ChatRequest, replies: list[Reply], pieces: list[list[str]], prompt_tokens: int) -> dict[str, Any]:
    """Return the ChatCompletion object of the OpenAI API for these replies."""
    choices = []
    for index, (reply, tokens) in enumerate(zip(replies, pieces, strict=True)):
        message: dict[str, Any] = {"role": "assistant", "content": reply.content}
        if reply.tool_calls:
            message["content"] = reply.content or None
            message["tool_calls"] = [
                {
                    "id": f"call_{uuid.uuid4().hex[:24]}",
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
                for name, arguments in reply.tool_calls
            ]
        choice: dict[str, Any] = {"index": index, "message": message, "finish_reason": reply.finish_reason}
        choice["logprobs"] = _logprobs(reply, tokens, chat.top_logprobs or 0) if chat.logprobs else None
        choice["stop_reason"] = reply.stop_word  # as vLLM names the stop string
        choices.append(choice)
    generated = sum(map(len, pieces))
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": chat.model or "unknown_model",
        "choices": choices,
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": generated,
            "total_tokens": prompt_tokens + generated,
        },
    }


def _logprobs(reply: Reply, tokens: list[str], top: int) -> dict[str, Any]:
    """Spread the reply's log-probability evenly: the policy chooses whole replies, not tokens.

    For the same reason the only alternative that ``top_logprobs`` can name is the token itself.
    """
    each = reply.logprob / len(tokens) if tokens else 0.0
    own = [{"token": token, "logprob": each, "bytes": list(token.encode())} for token in tokens]
    return {"content": [{**one, "top_logprobs": [one] if top else []} for one in own], "refusal": None}


def _overflow(chat: ChatRequest, prompt_tokens: int, room: int) -> dict[str, Any]:
    text = f"AgentJet: Exceeded max model context length. token_overflow({prompt_tokens} >= {room})"
    answer = completion(chat, [Reply(text, finish_reason="length")], [[]], prompt_tokens)
    del answer["usage"]
    return answer


async def chunks(answer: dict[str, Any], chat: ChatRequest, running: RunningCall) -> AsyncGenerator[bytes, None]:
    """Yield the answer as server-sent events, a token at a time, and record the call before the last.

    If the claim is lost meanwhile, the stream ends in an ``error`` event.
    """
    frame = {
        "id": answer["id"],
        "object": "chat.completion.chunk",
        "created": answer["created"],
        "model": answer["model"],
    }
    asked = bool((chat.stream_options or {}).get("include_usage"))

    def event(choices: list[dict[str, Any]], **more: Any) -> bytes:
        return sse({**frame, "choices": choices, **more})

    try:
        for choice in answer["choices"]:
            index, message = choice["index"], choice["message"]
            yield event([{"index": index, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
            logprobs = iter((choice["logprobs"] or {}).get("content") or [])
            async for piece in running.paced(tokenize(message["content"] or "")):
                delta: dict[str, Any] = {"index": index, "delta": {"content": piece}, "finish_reason": None}
                if choice["logprobs"]:
                    delta["logprobs"] = {"content": [next(logprobs)], "refusal": None}
                yield event([delta])
            for number, call in enumerate(message.get("tool_calls") or []):
                head = {"index": number, **call, "function": {"name": call["function"]["name"], "arguments": ""}}
                yield event([{"index": index, "delta": {"tool_calls": [head]}, "finish_reason": None}])
                for piece in tokenize(call["function"]["arguments"]):
                    part = {"index": number, "function": {"arguments": piece}}
                    yield event([{"index": index, "delta": {"tool_calls": [part]}, "finish_reason": None}])
            if choice is answer["choices"][-1]:
                running.finish()
            # released servers put the usage beside the finish reason; who asks for it gets OpenAI's own chunk
            usage = {"usage": answer["usage"]} if "usage" in answer and not asked else {}
            yield event([{"index": index, "delta": {}, "finish_reason": choice["finish_reason"]}], **usage)
        if "usage" in answer and asked:
            yield event([], usage=answer["usage"])
        yield b"data: [DONE]\n\n"
    except Refused as refused:
        yield sse(openai_error(refused.status, refused.detail).body)
    finally:
        running.give_up()


def sse(data: dict[str, Any], event: str = "") -> bytes:
    """Return one server-sent event with JSON data."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)
