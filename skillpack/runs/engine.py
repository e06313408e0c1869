"""Ask a swarm server how it is, with nothing but the standard library: the supervisor asks for days."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from typing import Any

from ajet.utils.loopback import is_loopback


@dataclass(frozen=True)
class EngineStatus:
    """What a swarm server says about itself; ``global_step`` is None before training."""

    status: str
    global_step: int | None

    def as_json(self) -> dict[str, Any]:
        """Return the status as JSON data."""
        return {"status": self.status, "global_step": self.global_step}


def ask_engine(url: str, seconds: float = 5.0) -> EngineStatus | None:
    """Return the status of the swarm server at ``url``, or None if no such server answers.

    Loopback addresses are asked directly, whatever proxy is set. Source of the route:
    ``GET /get_engine_status`` of AgentJet's swarm server.
    """
    handlers = [urllib.request.ProxyHandler({})] if is_loopback(url) else []
    opener = urllib.request.build_opener(*handlers)
    try:
        with opener.open(f"{url.rstrip('/')}/get_engine_status", timeout=seconds) as response:
            data = json.loads(response.read(1_000_000))
        step = data.get("global_step")
        return EngineStatus(str(data["engine_status"]), step if isinstance(step, int) else None)
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
