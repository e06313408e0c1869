"""A class decorator for one instance per process (the module's name is AgentJet's)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def singleton(cls: type[T]) -> Callable[..., T]:
    """Return a function that makes the instance on its first call; the arguments of later calls are ignored."""
    instances: list[T] = []
    lock = threading.Lock()

    @wraps(cls, updated=())
    def instance(*args: Any, **kwargs: Any) -> T:
        with lock:
            if not instances:
                instances.append(cls(*args, **kwargs))
        return instances[0]

    return instance
