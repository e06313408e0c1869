"""Engines and clients for the tests of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from ajet.tuner_lib.as_oai_baseurl_apikey import OpenaiBaseUrlAndApiKey
from ajet.tuner_lib.experimental.swarm_client import SwarmClient
from tests.engine.conftest import RunningEngine, job, start_engine

__all__ = ["job", "start_engine"]


@dataclass
class Episodes:
    """A client of an engine, and its engine."""

    engine: RunningEngine
    client: SwarmClient

    def begin(self, **options: object) -> tuple[str, OpenaiBaseUrlAndApiKey]:
        return self.client.begin_episode(**options)  # type: ignore[arg-type]


@pytest.fixture
def episodes(start_engine: Callable[..., RunningEngine]) -> Iterator[Callable[..., Episodes]]:
    """Start an engine that is ROLLING, and return it with a client of it."""
    clients: list[SwarmClient] = []

    def start(config: str | None = None, *options: str) -> Episodes:
        engine = start_engine(config or job(batch=8, repeat=2, workers=16), *options)
        client = SwarmClient(engine.url, verbose=False)
        clients.append(client)
        return Episodes(engine, client)

    yield start
    for client in clients:
        client.close()
