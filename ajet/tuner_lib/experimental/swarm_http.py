"""HTTP between a swarm client and its server."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx

from ajet.utils.loopback import is_loopback

GENERAL_TIMEOUT = 30.0
"""Seconds for a request that changes something."""

STATUS_TIMEOUT = 10.0
"""Seconds for a request that only asks."""


class SwarmServerError(RuntimeError):
    """The server refused a request; ``status_code`` and ``detail`` are its answer."""

    def __init__(self, status_code: int, detail: str) -> None:
        super().__init__(f"SwarmClient error {status_code}: {detail}")
        self.status_code = status_code
        self.detail = detail


def raise_for_status_with_detail(response: httpx.Response) -> None:
    """Raise SwarmServerError with the server's own words unless the answer is 2xx."""
    if response.is_success:
        return
    try:
        body = response.json()
        detail = body.get("detail", body) if isinstance(body, dict) else body
    except ValueError:
        detail = response.text[:500]
    raise SwarmServerError(response.status_code, str(detail))


class SwarmHttp:
    """Requests to one server, safe to use from many threads; ``requests`` counts them."""

    def __init__(self, server_url: str) -> None:
        parts = urlsplit(server_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"server_url is {server_url!r}; expected a base URL such as http://127.0.0.1:10086")
        self.server_url = server_url.rstrip("/")
        self.requests = 0
        self._local = threading.local()
        self._clients: weakref.WeakSet[httpx.Client] = weakref.WeakSet()  # a thread's own ends with it
        self._busy: set[httpx.Client] = set()
        self._closed = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def _client(self) -> Iterator[httpx.Client]:
        """The client of this thread: one that all share would search and lock all their connections per request.

        Raises RuntimeError behind ``close``.
        """
        client = self._own()
        with self._lock:
            if self._closed:
                raise RuntimeError("this SwarmClient is closed")
            self.requests += 1
            self._busy.add(client)
        try:
            yield client
        finally:
            with self._lock:
                self._busy.discard(client)
                left_to_us = client not in self._clients
            if left_to_us:
                client.close()

    def _own(self) -> httpx.Client:
        client: httpx.Client | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = httpx.Client(
                base_url=self.server_url,
                timeout=GENERAL_TIMEOUT,
                verify=self.server_url.startswith("https:"),
                trust_env=not is_loopback(self.server_url),  # a proxy cannot reach this machine's loopback
            )
            with self._lock:
                self._clients.add(client)
        return client

    def get(self, path: str, *, timeout: float = STATUS_TIMEOUT, **params: Any) -> dict[str, Any]:
        """GET a JSON object. Raises SwarmServerError, httpx.HTTPError, or ValueError if it is none."""
        with self._client() as client:
            response = client.get(path, params=params, timeout=timeout)
        raise_for_status_with_detail(response)
        return _object(response)

    def post(
        self, path: str, json: dict[str, Any] | None = None, *, timeout: float = GENERAL_TIMEOUT
    ) -> dict[str, Any]:
        """POST a JSON object and return the answer's. Raises as ``get`` does."""
        with self._client() as client:
            response = client.post(path, json=json if json is not None else {}, timeout=timeout)
        raise_for_status_with_detail(response)
        return _object(response)

    def post_bytes(self, path: str, content: bytes, *, timeout: float) -> dict[str, Any]:
        """POST raw bytes and return the answer's JSON object. Raises as ``get`` does."""
        with self._client() as client:
            response = client.post(path, content=content, timeout=timeout)
        raise_for_status_with_detail(response)
        return _object(response)

    def close(self) -> None:
        """Close all connections: those that a thread waits on when it has its answer.

        A socket that is closed under a thread frees its number, and that thread would then read
        from whichever connection gets it next.
        """
        with self._lock:
            self._closed = True
            idle = [client for client in self._clients if client not in self._busy]
            self._clients.clear()
        for client in idle:
            client.close()


def _object(response: httpx.Response) -> dict[str, Any]:
    body = response.json()
    if not isinstance(body, dict):
        raise ValueError(f"{response.url} answered {type(body).__name__} where a JSON object was expected")
    return body
