"""A small ASGI application for fixed paths and JSON bodies.

A claim and an end of an episode each cost a client one request, and a step has thousands of them,
so nothing is between the server and the handlers but a dictionary of routes. Errors look as
FastAPI's do: ``{"detail": …}``, 422 with a list for a body that does not fit its model.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from ajet.utils.loopback import is_loopback_host

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY = 32 * 1024 * 1024
"""Bytes; a chat history with pictures fits, a runaway client does not."""

JSON = b"application/json"


class HttpError(Exception):
    """An answer that is an error; ``body`` replaces ``{"detail": detail}`` where given."""

    def __init__(self, status: int, detail: Any, body: dict[str, Any] | None = None) -> None:
        super().__init__(str(detail))
        self.status = status
        self.body = body or {"detail": detail}


@dataclass(slots=True)
class Request:
    """A request whose body has been read."""

    scope: MutableMapping[str, Any]
    body: bytes
    receive: Receive

    def header(self, name: bytes) -> str:
        """Return a header's value by its lower-case name, or the empty string."""
        return next((value.decode("latin-1") for key, value in self.scope["headers"] if key == name), "")

    @property
    def query(self) -> dict[str, str]:
        """The query's fields; of a repeated one the last."""
        return dict(parse_qsl(self.scope["query_string"].decode("latin-1")))

    async def disconnected(self) -> None:
        """Return when the client has gone."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


@dataclass(slots=True)
class Response:
    """An answer: whole, or in ``chunks`` as they come."""

    body: bytes = b""
    status: int = 200
    media_type: bytes = JSON
    chunks: AsyncGenerator[bytes, None] | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()


Handler = Callable[..., Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """A handler, called with the request, or with the body as ``model`` and then the request."""

    handler: Handler
    model: type[BaseModel] | None = None
    max_body: int = MAX_BODY


def json_response(content: BaseModel | dict[str, Any], status: int = 200) -> Response:
    """Return a model or plain data as JSON."""
    if isinstance(content, BaseModel):
        return Response(content.__pydantic_serializer__.to_json(content), status)
    return Response(json.dumps(content, ensure_ascii=False).encode(), status)


class App:
    """Routes by (method, path). A handler's answer is sent whole; its failure becomes a 500 with the reason.

    ``on_error(path, status, body)`` is told of each answer that is an error. Requests of web pages
    from elsewhere are refused: a browser on this machine must not carry them in. While
    ``loopback_only``, a Host that is not loopback is refused too (DNS rebinding).
    """

    def __init__(self, routes: dict[tuple[str, str], Route]) -> None:
        self.routes = routes
        self.on_error: Callable[[str, int, bytes], None] = lambda path, status, body: None
        self.loopback_only = False

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one HTTP request (the ASGI interface)."""
        if scope["type"] != "http":
            return
        try:
            response = await self._answer(scope, receive)
        except HttpError as error:
            response = json_response(error.body, error.status)
        except ValidationError as error:
            response = json_response({"detail": _validation_detail(error)}, 422)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("%s %s failed", scope["method"], scope["path"])
            response = json_response({"detail": f"Internal error: {type(error).__name__}: {error}"}, 500)
        if response.status >= 400:
            self.on_error(scope["path"], response.status, response.body)
        await send_response(response, send)

    def _refuse_foreign_pages(self, scope: MutableMapping[str, Any]) -> None:
        host = origin = ""
        for key, value in scope["headers"]:
            if key == b"host":
                host = value.decode("latin-1")
            elif key == b"origin":
                origin = value.decode("latin-1")
        if origin and origin.partition("://")[2] != host:
            raise HttpError(403, f"Forbidden: a page of {origin} may not call this server.")
        if self.loopback_only and not is_loopback_host(host):
            raise HttpError(
                403, f"Forbidden: this server listens on loopback; call it as 127.0.0.1 or localhost, not {host}."
            )

    async def _answer(self, scope: MutableMapping[str, Any], receive: Receive) -> Response:
        self._refuse_foreign_pages(scope)
        route = self.routes.get((scope["method"], scope["path"]))
        if route is None:
            allowed = sorted(method for method, path in self.routes if path == scope["path"])
            if allowed:
                raise HttpError(405, f"Method Not Allowed: {scope['path']} takes {' or '.join(allowed)}.")
            raise HttpError(404, f"Not Found: {scope['path']}. GET /openapi.json lists the endpoints.")
        request = Request(scope, await _read_body(scope, receive, route.max_body), receive)
        if route.model is None:
            return await route.handler(request)
        return await route.handler(route.model.model_validate_json(request.body), request)


async def _read_body(scope: MutableMapping[str, Any], receive: Receive, limit: int) -> bytes:
    announced = next((int(value) for key, value in scope["headers"] if key == b"content-length" and value.isdigit()), 0)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpError(400, "The client went away before the body was complete.")
        size += len(message.get("body", b""))
        if max(size, announced) > limit:
            # read on without keeping, so that the client gets the answer instead of a broken pipe
            while message.get("more_body"):
                message = await receive()
            raise HttpError(413, f"The body has {max(size, announced):,} bytes; at most {limit:,} are taken.")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def send_response(response: Response, send: Send) -> None:
    """Send an answer, whole or in chunks."""
    headers = [(b"content-type", response.media_type), *response.headers]
    if response.chunks is None:
        headers.append((b"content-length", str(len(response.body)).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})
        return
    headers.append((b"cache-control", b"no-cache"))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    async with contextlib.aclosing(response.chunks) as chunks:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _validation_detail(error: ValidationError) -> list[dict[str, Any]]:
    return [
        {"loc": ["body", *one["loc"]], "msg": one["msg"], "type": one["type"]}
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    ]
