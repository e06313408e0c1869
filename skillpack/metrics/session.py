"""An authenticated connection to one SwanLab host, through whichever SDK is installed.

The SDK logs in, keeps the session and sends the headers that servers check; which calls are made,
how often they are retried and what counts as an error is decided here. The SDK's own query methods
turn every failure into an empty list, so its HTTP client is used below them.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from skillpack.metrics.credentials import ApiKey, redact
from skillpack.script import Unavailable

RETRIED = {408, 418, 425, 429, 499, 500, 502, 503, 504}
NOT_REACHED = -1
LONGEST_WAIT = 30.0
KNOWN_SDKS = "swanlab 0.7.20 to 0.10"

Note = Callable[[str], None]


class CallFailed(Exception):
    """A call that SwanLab refused or that never arrived, with the reason in one redacted line."""

    def __init__(self, reason: str, *, status: int = 0, retry_after: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.retry_after = retry_after

    @property
    def passing(self) -> bool:
        """Whether trying again may help."""
        return self.status in RETRIED or self.status == NOT_REACHED


@dataclass(frozen=True)
class Retries:
    """How often a failed call is repeated and the first wait in seconds, which doubles each time."""

    times: int = 4
    first_wait: float = 0.5

    def wait(self, attempt: int, asked: str | None = None) -> float:
        """Return the seconds to wait before attempt ``attempt`` (from 1): as the server asked, else doubled."""
        if asked and asked.strip().isdigit():
            return min(float(asked), LONGEST_WAIT)
        return min(self.first_wait * 2 ** (attempt - 1), LONGEST_WAIT) * random.uniform(0.75, 1.0)


class Session:
    """A logged-in session with the API origin ``api``; safe to share between threads."""

    def __init__(self, api: str, key: ApiKey, retries: Retries | None = None, note: Note | None = None) -> None:
        """Log in. Raises Unavailable: no SDK, an SDK that is not known, a host that is not reached, a refused key."""
        self.api = api
        self.retries = retries or Retries()
        self.note = note or (lambda text: None)
        self.route = ""  # the export route that this host is known to need
        self._key = key
        self._sdk = _import_sdk()
        self.sdk_version = str(self._sdk.__version__)
        self._client: Any = None
        _check_reachable(api)
        self._log_in()

    def get(self, path: str, params: dict[str, Any] | None = None) -> Any:
        """Return the JSON of ``GET {api}/api{path}``. Raises CallFailed."""
        return self._call("GET", path, params)

    def post(self, path: str, body: Any) -> Any:
        """Return the JSON of ``POST {api}/api{path}``. Raises CallFailed."""
        return self._call("POST", path, body)

    def clean(self, text: object) -> str:
        """Return ``text`` with nothing secret in it."""
        return redact(text, self._key.value, *self._client_cookies())

    def _call(self, method: str, path: str, payload: Any) -> Any:
        logged_in_again = False
        attempt = 0
        while True:
            client = self._client
            try:
                return self._send(client, method, path, payload)
            except CallFailed as failure:
                if failure.status == 401 and not logged_in_again:
                    logged_in_again = True  # the SDK does not renew a session that the server ended early
                    self._log_in(replacing=client)
                    continue
                if not failure.passing or attempt >= self.retries.times:
                    raise
                attempt += 1
                wait = self.retries.wait(attempt, failure.retry_after)
                self.note(f"{failure}; again in {wait:.1f} s ({attempt}/{self.retries.times})")
                time.sleep(wait)

    def _send(self, client: Any, method: str, path: str, payload: Any) -> Any:
        with sdk_silenced():
            try:
                answer = client.get(path, params=payload) if method == "GET" else client.post(path, payload)
            except Exception as error:
                raise self._failure(error, f"{method} {path}") from None
        # 0.7 answers (data, response), 0.8 and later an object with data
        data = answer[0] if isinstance(answer, tuple) else answer.data
        if isinstance(data, str):
            raise CallFailed(f"{method} {path}: not JSON but {self.clean(data[:60])!r}")
        return data

    def _failure(self, error: Exception, call: str) -> CallFailed:
        """Translate what requests or the SDK raised; NOT_REACHED is the status where the server did not answer."""
        response = getattr(error, "response", None)
        if response is None:
            response = getattr(error, "resp", None)
        if response is None:
            cause = self.clean(f"{type(error).__name__}: {_innermost(error)}")
            return CallFailed(f"{call}: {self.api} not reached ({cause})", status=NOT_REACHED)
        message = ""
        with contextlib.suppress(Exception):
            message = f" {response.json()['message']}"
        trace = response.headers.get("traceid")
        return CallFailed(
            f"{call}: HTTP {response.status_code}{self.clean(message)[:200]}" + (f" (trace {trace})" if trace else ""),
            status=response.status_code,
            retry_after=response.headers.get("Retry-After"),
        )

    def _log_in(self, replacing: Any = None) -> None:
        with _login_lock:
            if self._client is not replacing:
                return  # another thread has done it
            with sdk_silenced() as said, _environment_kept():
                try:
                    api = self._sdk.Api(api_key=self._key.value, host=self.api)
                except Exception as error:
                    said_last = [line.strip() for line in said.getvalue().splitlines() if line.strip()][-1:]
                    raise self._refused(error, " ".join(said_last)) from None
            client = getattr(getattr(api, "_ctx", None), "client", None) or getattr(api, "_client", None)
            if client is None:
                raise Unavailable(
                    f"swanlab {self.sdk_version} keeps its client where it is not known",
                    expected=KNOWN_SDKS,
                    hint="pip install 'swanlab<0.11'",
                )
            # SDK 0.7 renews a session at the host that the environment names, not at this one: a key would leak.
            # Here a session is renewed when the server says that it has ended.
            client.REFRESH_TIME = float("-inf")
            inner = _inner_session(client)
            if inner is not None:
                inner.auth = no_auth
                inner.max_redirects = 0  # the session cookie knows no host: it would go wherever an answer points
                for adapter in inner.adapters.values():  # repeating is done here, where it is told and can be stopped
                    adapter.max_retries = adapter.max_retries.new(total=0, raise_on_status=False)
            self._client = client

    def _refused(self, error: Exception, said: str) -> Unavailable:
        detail = self.clean(f"{type(error).__name__}: {_innermost(error)}" + (f" ({said})" if said else ""))
        return Unavailable(
            f"cannot log in to {self.api} with the key from {self._key.source}: {detail}",
            expected="a SwanLab API at this address that accepts this key",
            hint=f"swanlab login --host {self.api}, or check the address and the network",
        )

    def _client_cookies(self) -> list[str]:
        cookies = getattr(_inner_session(self._client), "cookies", None) or ()
        return [cookie.value for cookie in cookies if cookie.value]


def no_auth(request: Any) -> Any:
    """Add nothing: with an authentication set, requests does not look into the user's netrc."""
    return request


class _Router:
    """Stands in for ``sys.stdout``: what a silenced thread writes is kept, all else is the stream's own affair."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        said = getattr(_silenced, "said", None)
        written: int = (self.stream if said is None else said).write(text)
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def isatty(self) -> bool:
        return False  # else rich draws spinners from a thread of its own


_silenced = threading.local()
_router_lock = threading.Lock()
_router_users = 0


@contextlib.contextmanager
def sdk_silenced() -> Iterator[io.StringIO]:
    """Keep what this thread prints away from stdout; yield the buffer that collects it.

    The SDK logs through a rich console that writes to whatever ``sys.stdout`` is at that moment,
    which would end up among our data.
    """
    global _router_users
    with _router_lock:
        if _router_users == 0:
            sys.stdout = _Router(sys.stdout)
        _router_users += 1
    outer = getattr(_silenced, "said", None)
    _silenced.said = said = io.StringIO()
    try:
        yield said
    finally:
        _silenced.said = outer
        with _router_lock:
            _router_users -= 1
            if _router_users == 0 and isinstance(sys.stdout, _Router):
                sys.stdout = sys.stdout.stream


@contextlib.contextmanager
def _environment_kept() -> Iterator[None]:
    """Undo what SDK 0.7 writes into the environment, already on import, and keep requests from the user's netrc.

    A netrc entry for the host would replace the key in the login call by basic authentication.
    """
    names = ("SWANLAB_API_HOST", "SWANLAB_WEB_HOST", "NETRC")
    before = {name: os.environ.get(name) for name in names}
    os.environ["NETRC"] = os.devnull
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


_login_lock = threading.Lock()


def _import_sdk() -> Any:
    with sdk_silenced(), _environment_kept():
        try:
            import swanlab
        except ImportError as error:
            raise Unavailable(
                f"the SwanLab SDK is not installed ({error})",
                expected=KNOWN_SDKS,
                hint="pip install 'agentjet-skills[swanlab]'",
            ) from None
        except Exception as error:  # a broken ./.env or swanlab.yaml already breaks its import
            raise Unavailable(
                f"the SwanLab SDK cannot be imported: {type(error).__name__}: {error}",
                hint="look at ./.env, ./swanlab.yaml and the SWANLAB_* variables, or start from another folder",
            ) from None
    if not hasattr(swanlab, "Api"):
        raise Unavailable(
            f"swanlab {getattr(swanlab, '__version__', '?')} has no Api",
            expected=KNOWN_SDKS,
            hint="pip install -U 'swanlab<0.11'",
        )
    return swanlab


def _check_reachable(api: str) -> None:
    """Raise Unavailable at once if nothing listens there: the SDK would try for 15 s and not say why."""
    if urllib.request.getproxies():
        return
    parts = urlsplit(api)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=10).close()
    except OSError as error:
        raise Unavailable(
            f"{api} is not reached: {error.strerror or error}",
            expected="a SwanLab server at this address",
            hint="check the address, the network and HTTPS_PROXY",
        ) from None


def _inner_session(client: Any) -> Any:
    """Return the requests session inside the SDK's client (0.8 and later, then 0.7)."""
    return getattr(client, "_session", None) or getattr(client, "_Client__session", None)


def _innermost(error: BaseException) -> BaseException:
    """Return the cause at the bottom: requests wraps urllib3, which wraps the socket's own words."""
    inner: BaseException = error
    while (following := getattr(inner, "reason", None) or inner.__cause__ or inner.__context__) and isinstance(
        following, BaseException
    ):
        inner = following
    return inner
