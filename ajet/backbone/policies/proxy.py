"""A policy that asks another OpenAI-compatible server: a real model behind the rehearsal."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx

from ajet.backbone.policies.base import ChatRequest, PolicyUnavailable, Reply
from ajet.backbone.policies.fixed import FixedPolicy
from ajet.utils.loopback import is_loopback

KEY_VARIABLES = ("AJET_PROXY_API_KEY", "OPENAI_API_KEY")
MODEL_VARIABLE = "AJET_PROXY_MODEL"
TIMEOUT = 300.0
"""Seconds for one reply."""

OWN_FIELDS = {"n", "stream", "stream_options", "temperature", "top_p", "model"}
"""Fields of a request that are not passed on as they are."""


class ProxyPolicy(FixedPolicy):
    """Passes chat calls on to ``url`` (with or without ``/v1``); learns nothing.

    The key is in AJET_PROXY_API_KEY or OPENAI_API_KEY; the model in AJET_PROXY_MODEL, else it is the
    first that the server lists. Raises ValueError for something that is no HTTP URL.
    """

    name = "proxy"

    def __init__(self, url: str) -> None:
        parts = httpx.URL(url)
        if parts.scheme not in ("http", "https") or not parts.host:
            raise ValueError(f"proxy URL is {url!r}; expected the base URL of an OpenAI-compatible server")
        self.url = url.rstrip("/")
        self.base_url = self.url if self.url.endswith("/v1") else f"{self.url}/v1"
        self._model = os.environ.get(MODEL_VARIABLE, "")
        self._client: httpx.AsyncClient | None = None

    def describe(self) -> str:
        """Say what this policy is."""
        return f"passes chat calls on to {self.url}; nothing is learned"

    async def reply(self, request: ChatRequest, temperature: float, top_p: float) -> Reply:
        """Return the other server's answer. Raises PolicyUnavailable if it has none."""
        body = request.model_dump(exclude_unset=True, exclude=OWN_FIELDS)
        body.update(model=await self._model_name(), temperature=temperature, top_p=top_p)
        answer = await self._ask("POST", "/chat/completions", body)
        try:
            choice = answer["choices"][0]
            message = choice["message"]
            functions = [call["function"] for call in message.get("tool_calls") or []]
            calls = [(str(function["name"]), _text(function["arguments"])) for function in functions]
            logprobs = (choice.get("logprobs") or {}).get("content") or []
            return Reply(
                content=message.get("content") or "",
                tool_calls=calls,
                finish_reason=choice.get("finish_reason") or "stop",
                logprob=float(sum(one["logprob"] for one in logprobs)),
            )
        except (AttributeError, KeyError, IndexError, TypeError) as error:
            raise PolicyUnavailable(f"{self.url} answered no chat completion ({error!r})", 502) from None

    async def close(self) -> None:
        """Close the connections to the other server; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _model_name(self) -> str:
        if not self._model:
            listed = await self._ask("GET", "/models")
            try:
                self._model = str(listed["data"][0]["id"])
            except (KeyError, IndexError, TypeError):
                raise PolicyUnavailable(f"{self.url} lists no model; set {MODEL_VARIABLE}", 502) from None
        return self._model

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        if self._client is None:
            key = next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), "")
            self._client = httpx.AsyncClient(
                headers={"authorization": f"Bearer {key}"} if key else {},
                timeout=TIMEOUT,
                trust_env=not is_loopback(self.url),
            )
        try:
            response = await self._client.request(method, self.base_url + path, json=body)
        except httpx.HTTPError as error:
            raise PolicyUnavailable(f"{self.url} does not answer: {error or type(error).__name__}", 502) from None
        if not response.is_success:
            # the same code, so that the client's own handling of 429 and 503 is rehearsed too
            raise PolicyUnavailable(
                f"{self.url} answered {response.status_code}: {response.text[:300]}", response.status_code
            )
        try:
            return response.json()
        except ValueError:
            raise PolicyUnavailable(f"{self.url} answered no JSON to {path}", 502) from None


def _text(arguments: Any) -> str:
    """Return the arguments of a tool call as JSON text; some servers send the object itself."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
