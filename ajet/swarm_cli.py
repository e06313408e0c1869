"""``python -m ajet.swarm_cli``: start a reference swarm server, and watch any swarm server."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from ajet.backbone.policies import POLICIES, make_policy
from ajet.task_rollout.native_parallel_worker import SLOTS

DEFAULT_PORT = 10086


class Unreachable(click.ClickException):
    """Something needed is missing or unreachable."""

    exit_code = 3


def read_latency(context: click.Context, parameter: click.Parameter, text: str) -> tuple[float, float]:
    """Read ``0.5`` or ``0.2-3`` as the least and the most seconds of a reply."""
    ends = text.split("-", 1)
    try:
        seconds = float(ends[0]), float(ends[-1])
    except ValueError:
        seconds = (-1.0, -1.0)
    if not 0 <= seconds[0] <= seconds[1] < float("inf"):
        raise click.BadParameter(
            f"{text!r} is no time; expected seconds such as 0.5, or a range such as 0.2-3", context, parameter
        )
    return seconds


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
    "--resume",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Go on with the run of this experiment folder, at once: it keeps its step and its completed episodes.",
)
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    default="learn",
    show_default=True,
    help="Who answers chat calls: learn, echo, script FILE (replies from a YAML file), proxy URL (another server).",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the policy's choices and of the chaos.")
@click.option(
    "--slots", type=click.Choice(SLOTS), default="documented", show_default=True, help="How worker slots are counted."
)
@click.option(
    "--latency", default="0", show_default=True, callback=read_latency, help="Seconds per chat reply: 0.5, or 0.2-3."
)
@click.option(
    "--fail-rate", default=0.0, type=click.FloatRange(0, 1), help="Share of POST requests that are answered 500."
)
@click.option("--chaos", is_flag=True, help="Lose requests and answers, answer late, sync early, restart now and then.")
@click.argument("policy_argument", metavar="[FILE|URL]", required=False)
def start(
    swarm_port: int,
    host: str,
    conf: Path | None,
    start_now: bool,
    resume: Path | None,
    policy: str,
    seed: int,
    slots: str,
    latency: tuple[float, float],
    fail_rate: float,
    chaos: bool,
    policy_argument: str | None,
) -> None:
    """Start a server; the first line on stdout is JSON with its url and pid.

    Example: python -m ajet.swarm_cli start --swarm-port 0 --conf job.yaml --start
    """
    from ajet.tuner_lib.experimental.chaos import ChaosOptions
    from ajet.tuner_lib.experimental.engine import EngineOptions
    from ajet.tuner_lib.experimental.episode_pool import Refused
    from ajet.tuner_lib.experimental.serve import bind, serve, url_of

    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)s | %(message)s", stream=sys.stderr)
    if start_now and conf is None:
        raise click.UsageError("--start needs --conf: a server has no configuration of its own")
    if resume is not None and (conf or start_now):
        raise click.UsageError("--resume takes the configuration from its folder; leave --conf and --start out")
    options = EngineOptions(
        policy=f"{policy} {policy_argument}" if policy_argument else policy,
        seed=seed,
        slots=slots,
        chaos=ChaosOptions(latency=latency, fail_rate=fail_rate, chaos=chaos),
    )
    try:
        make_policy(options.policy)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    config_text = _resumed(resume) if resume else _read(conf) if conf else None
    start_now = start_now or resume is not None
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

    try:
        serve(listener, options, config_text=config_text, start_now=start_now, on_ready=announce)
    except Refused as refused:
        raise click.UsageError(refused.detail) from None
    except OSError as error:
        raise Unreachable(
            f"the experiment's folder cannot be used: {error}\n"
            "expected: a folder that this user may write, with room for the run\n"
            "try: another experiment_dir, or another working directory"
        ) from None
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


def _resumed(folder: Path) -> str:
    """Return the configuration of an experiment folder, pinned to that folder."""
    import yaml

    try:
        config = yaml.safe_load(_read(folder / "yaml_backup.yaml"))
        config["ajet"].update(experiment_name=folder.resolve().name, experiment_dir=str(folder.resolve()))
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise click.UsageError(f"{folder} holds no configuration that can be resumed: {error}") from None
    return yaml.safe_dump(config, sort_keys=False, allow_unicode=True)


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
