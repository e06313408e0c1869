"""A reference engine whose update takes as long as told, for capacity_validation.py."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ajet.backbone.policies.echo import EchoPolicy
from ajet.tuner_lib.experimental import engine as engine_module
from ajet.tuner_lib.experimental.engine import EngineOptions
from ajet.tuner_lib.experimental.episode import CompletedEpisode
from ajet.tuner_lib.experimental.serve import bind, serve, url_of


class SlowPolicy(EchoPolicy):
    """Echoes, and takes ``seconds`` for an update."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def update(self, episodes: Iterable[CompletedEpisode], kl_coef: float) -> dict[str, float]:
        """Take the time that a real update would."""
        time.sleep(self.seconds)
        return super().update(episodes, kl_coef)


def main() -> None:
    """Serve until terminated; the first line on stdout is JSON with the url."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conf", type=Path, required=True)
    parser.add_argument("--slots", default="documented")
    parser.add_argument("--update-seconds", type=float, default=0.0)
    options = parser.parse_args()
    engine_module.make_policy = lambda name, *, seed=0: SlowPolicy(options.update_seconds)
    listener = bind("127.0.0.1", 0)

    def announce(server: Any) -> None:
        print(json.dumps({"url": url_of(listener)}), flush=True)

    serve(
        listener,
        EngineOptions(policy="echo", seed=0, slots=options.slots),
        config_text=options.conf.read_text(),
        start_now=True,
        on_ready=announce,
    )


if __name__ == "__main__":
    main()
