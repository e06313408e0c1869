"""``python -m ajet.swarm_cli``: start a reference swarm server, and watch any swarm server."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from ajet.backbone.policies import POLICIES
from ajet.task_rollout.native_parallel_worker import SLOTS

DEFAULT_PORT = 10086


class Unreachable(click.ClickException):
    """Something needed is missing or unreachable."""

    exit_code = 3


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Reference AgentJet swarm server: the released protocol, no GPUs, a small CPU policy.

    Exit codes: 0 done, 1 the answer is no, 2 bad usage or configuration, 3 port taken or server unreachable.
    """


@cli.command()
@click.option(
    "--swarm-port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0: a free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option("--conf", "--config", "conf", type=click.Path(path_type=Path), help="Training configuration (YAML).")
@click.option("--start", "start_now", is_flag=True, help="Start training with --conf at once, without a client.")
@click.option(
    "--policy", type=click.Choice(POLICIES), default="learn", show_default=True, help="Who answers chat calls."
)
@click.option("--seed", default=0, show_default=True, help="Seed of the policy's choices.")
@click.option(
    "--slots", type=click.Choice(SLOTS), default="documented", show_default=True, help="How worker slots are counted."
)
def start(swarm_port: int, host: str, conf: Path | None, start_now: bool, policy: str, seed: int, slots: str) -> None:
    """Start a server; the first line on stdout is JSON with its url and pid.

    Example: python -m ajet.swarm_cli start --swarm-port 0 --conf job.yaml --start
    """
    from ajet.tuner_lib.experimental.engine import EngineOptions
    from ajet.tuner_lib.experimental.episode_pool import Refused
    from ajet.tuner_lib.experimental.serve import bind, serve, url_of

    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)s | %(message)s", stream=sys.stderr)
    if start_now and conf is None:
        raise click.UsageError("--start needs --conf: a server has no configuration of its own")
    config_text = _read(conf) if conf else None
    try:
        listener = bind(host, swarm_port)
    except OSError as error:
        raise Unreachable(
            f"cannot listen on {host} port {swarm_port}: {error.strerror or error}\n"
            "expected: a free port on an address of this machine\n"
            "try: --swarm-port 0 for a free port, or stop what listens there"
        ) from None

    def announce(server: Any) -> None:
        url = url_of(listener)
        click.echo(json.dumps({"engine": "reference", "url": url, "pid": os.getpid()}))
        click.echo(
            f"AgentJet reference engine: {server.engine.policy.describe()}\n"
            "Interchange server is running in blocking mode on:\n"
            f"------\nURL 1: {url}\n------\nPress Ctrl+C to stop.",
            err=True,
        )
        if conf and not start_now:
            server.engine.sync_config(config_text)

    try:
        serve(
            listener,
            EngineOptions(policy=policy, seed=seed, slots=slots),
            config_text=config_text if start_now else None,
            on_ready=announce,
        )
    except Refused as refused:
        raise click.UsageError(refused.detail) from None
    finally:
        listener.close()


@cli.command()
@click.option("--swarm-url", default=f"http://localhost:{DEFAULT_PORT}", show_default=True, help="Server to watch.")
@click.option("--refresh-interval", default=2.0, show_default=True, type=click.FloatRange(0.1), help="Seconds.")
@click.option("--once", is_flag=True, help="Print one frame and exit.")
@click.option("--json", "as_json", is_flag=True, help="With --once: one JSON document.")
def overwatch(swarm_url: str, refresh_interval: float, once: bool, as_json: bool) -> None:
    """Show status, step, progress, and the running episodes against the cap.

    Example: python -m ajet.swarm_cli overwatch --once --json
    """
    from ajet.utils.swarm_overwatch import ServerUnreachable, print_frame, read_frame, watch

    if as_json and not once:
        raise click.UsageError("--json goes with --once")
    try:
        if not once:
            watch(swarm_url, refresh_interval)
        elif as_json:
            click.echo(json.dumps(read_frame(swarm_url), ensure_ascii=False, indent=2))
        else:
            print_frame(read_frame(swarm_url))
    except ServerUnreachable as error:
        raise Unreachable(str(error)) from None


cli.add_command(overwatch, "top")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from None


def main() -> NoReturn:
    """Run the command line."""
    cli(prog_name="python -m ajet.swarm_cli")
    raise SystemExit(0)


if __name__ == "__main__":
    main()
