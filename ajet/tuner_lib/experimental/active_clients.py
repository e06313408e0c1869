"""The swarm clients of the current step, and which of them agreed to sync weights."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ajet.tuner_lib.experimental.swarm_overwatch_utils import ActiveSwarmClient

IDLE_SECONDS = 600.0
"""A client that shows no sign of life for so long leaves the list (value of released servers)."""


class ActiveClients:
    """Clients enter with a rewarded end, are refreshed by any other sign of life, and leave when idle.

    ``on_change()`` is called when a client enters, agrees or leaves. A client that only aborts
    does not enter: it could block ``rollout_until_all_clients_agree_sync_weight`` for ten minutes.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None, idle_seconds: float = IDLE_SECONDS) -> None:
        self.on_change = on_change
        self.idle_seconds = idle_seconds
        self._clients: dict[str, ActiveSwarmClient] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(list(self._clients.values()))

    def __contains__(self, client_uuid: str) -> bool:
        return client_uuid in self._clients

    def enter(self, client_uuid: str) -> None:
        """Add the client, or refresh it."""
        if client_uuid in self._clients:
            self.refresh(client_uuid)
            return
        self._clients[client_uuid] = ActiveSwarmClient(client_uuid=client_uuid, last_activity_at=time.time())
        if self._timer is None:
            self._arm(self.idle_seconds)
        self.on_change()

    def refresh(self, client_uuid: str) -> None:
        """Note a sign of life of a client that is in the list."""
        client = self._clients.get(client_uuid)
        if client:
            client.last_activity_at = time.time()

    def agree(self, client_uuid: str) -> bool:
        """Note the client's agreement; return False if it is not in the list."""
        client = self._clients.get(client_uuid)
        if client is None:
            return False
        client.allowed_sync_weight = True
        self.on_change()
        return True

    def clear(self) -> None:
        """Forget all clients: agreement is given for one step."""
        self._clients.clear()
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _arm(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._drop_idle)

    def _drop_idle(self) -> None:
        self._timer = None
        oldest = time.time() - self.idle_seconds
        idle = [uuid for uuid, client in self._clients.items() if client.last_activity_at <= oldest]
        for uuid in idle:
            del self._clients[uuid]
        if self._clients:
            self._arm(min(client.last_activity_at for client in self._clients.values()) - oldest)
        if idle:
            self.on_change()
