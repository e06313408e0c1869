"""Decorators that call a function again when it fails."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

LONGEST_PAUSE = 2**10


class SwarmReceiveAbortException(Exception):
    """The swarm server gave the episode up: a decorated function then returns None."""


class TestSuccessException(Exception):
    """A test run that has seen enough; never retried."""

    __test__ = False


class TestFailException(Exception):
    """A test run that has failed; never retried."""

    __test__ = False


def retry_with_backoff(
    max_retry: int = 3,
    backoff_fn: Callable[[int], float] | None = None,
    max_retry_attr: str | None = None,
) -> Callable[[F], F]:
    """Return a decorator that calls a function up to ``max_retry`` times.

    ``max_retry_attr`` names a positive int attribute of the first argument that overrides
    ``max_retry``. Between attempts it waits ``backoff_fn(attempt)`` seconds, attempts counted from
    0, by default ``2**attempt``. The last error is raised; SwarmReceiveAbortException becomes a
    None at once, because another attempt cannot bring the episode back.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            own = getattr(args[0], max_retry_attr, None) if max_retry_attr and args else None
            attempts = own if isinstance(own, int) and own > 0 else max(1, max_retry)
            return _call(function, args, kwargs, attempts, backoff_fn or (lambda attempt: 2.0**attempt))

        return call  # type: ignore[return-value]

    return decorate


def retry_infinite(backoff_fn: Callable[[int], float] | None = None) -> Callable[[F], F]:
    """Return a decorator that calls a function until it succeeds, pausing at most ``2**10`` seconds by default."""

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return _call(function, args, kwargs, None, backoff_fn or (lambda attempt: 2.0 ** min(attempt, 10)))

        return call  # type: ignore[return-value]

    return decorate


def _call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    attempts: int | None,
    backoff: Callable[[int], float],
) -> Any:
    attempt = 0
    while True:
        try:
            return function(*args, **kwargs)
        except SwarmReceiveAbortException:
            return None
        except (TestSuccessException, TestFailException):
            raise
        except Exception as error:
            if attempts is not None and attempt + 1 >= attempts:
                raise
            seconds = min(backoff(attempt), LONGEST_PAUSE)
            name = getattr(function, "__qualname__", function)
            log.warning("%s failed (%s: %s), again in %.1f s", name, type(error).__name__, error, seconds)
            threading.Event().wait(seconds)
            attempt += 1
