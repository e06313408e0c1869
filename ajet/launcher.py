"""``python -m ajet.launcher --conf x.yaml --backbone debug``: a classic run on the reference engine.

The command line, the console lines and the exit codes are those of AgentJet's ``ajet`` command.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import click

from ajet.backbone.policies import ARGUMENTS, POLICIES
from ajet.utils.config_tree import ConfigError

log = logging.getLogger(__name__)

FAILED = 1
"""The exit code of anything that keeps a run from training to its end, as released."""

IGNORED = (
    "with-ray",
    "with-ray-cluster",
    "with-appworld",
    "with-deepfinance",
    "with-webshop",
    "with-bfcl",
    "with-crafters",
    "with-logview",
    "skip-check-avail-gpu",
    "autokill",
)
"""Switches of the released command for services and hardware that the reference has no use for."""


ALONE = [name for name in POLICIES if name not in ARGUMENTS]
"""Policies that need no argument."""


def ignored_switches(command: click.Command) -> click.Command:
    """Let a command accept the switches of ``IGNORED``."""
    for name in IGNORED:
        command.params.append(click.Option([f"--{name}"], is_flag=True, expose_value=False, hidden=True))
    return command


@ignored_switches
@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--conf", type=click.Path(path_type=Path), help="Training configuration (YAML).")
@click.option(
    "--backbone", default="verl", show_default=True, help="The reference trains with debug; verl and trinity need GPUs."
)
@click.option("--exp-dir", default="saved_experiments", show_default=True, help="Folder of the experiment's folder.")
@click.option("--debug", "--db", "debug_tags", help="Tags of the breakpoints (ajet.bp) that stop the run: a|b.")
@click.option("--policy", type=click.Choice(ALONE), default="learn", show_default=True, help="Who answers.")
@click.option("--seed", default=0, show_default=True, help="Seed of the policy's choices and of the task order.")
@click.option("--dummy-data", is_flag=True, help="Dummy tasks in the shape of the configured data.")
@click.option("--swarm-server", is_flag=True, help="Start a swarm server instead of a classic run.")
@click.option("--swarm-overwatch", "overwatch_url", help="Watch the swarm server at this URL.")
def launch(
    conf: Path | None,
    backbone: str,
    exp_dir: str,
    debug_tags: str | None,
    policy: str,
    seed: int,
    dummy_data: bool,
    swarm_server: bool,
    overwatch_url: str | None,
) -> None:
    """Train a classic workflow (ajet.rollout.user_workflow) on the reference engine, without GPUs.

    Example: python -m ajet.launcher --conf ./math.yaml --backbone debug

    Exit codes: 0 trained to the end, 1 failed, 2 bad usage, 130 and 143 stopped by a signal.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)s | %(message)s", stream=sys.stderr)
    for name in ("httpx", "httpx2", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if overwatch_url:
        from ajet.swarm_cli import cli

        cli(["overwatch", "--swarm-url", overwatch_url], prog_name="python -m ajet.swarm_cli")
    if conf is None:
        raise click.UsageError("--conf is missing: name the training configuration (a YAML file)")
    if swarm_server:
        from ajet.swarm_cli import cli

        cli(
            ["start", "--conf", str(conf), "--policy", policy, "--seed", str(seed)],
            prog_name="python -m ajet.swarm_cli",
        )
    if backbone != "debug":
        _fail(
            f"--backbone {backbone} needs GPUs and the real AgentJet; this is the reference of the skill pack\n"
            "expected: --backbone debug\n"
            "try: rehearse here with --backbone debug, then run the same command in AgentJet's own environment"
        )
    if debug_tags:
        os.environ.update(RAY_DEBUG_POST_MORTEM="1", DEBUG_TAGS=debug_tags)
    if dummy_data:
        from ajet.task_reader.router import DUMMY_DATA

        os.environ[DUMMY_DATA] = "1"
    from ajet.tuner_lib.experimental.episode_pool import Refused

    sys.path.insert(0, str(Path.cwd()))  # where workflows named as package.module are found, as released
    try:
        code = asyncio.run(_train(conf, Path(exp_dir), policy, seed))
    except (ConfigError, Refused, ValueError, ImportError, AttributeError, OSError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        code = 130
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a workflow's thread may still sit in a call that nobody can interrupt


async def _train(conf: Path, exp_dir: Path, policy: str, seed: int) -> int:
    """Run the configuration to its end; return the exit code."""
    import uvicorn

    from ajet.backbone.classic import ClassicRun
    from ajet.tuner_lib.experimental.engine import EngineOptions
    from ajet.tuner_lib.experimental.serve import Uvicorn, bind, url_of, web_config
    from ajet.tuner_lib.experimental.swarm_server import SwarmServer

    server = SwarmServer(EngineOptions(policy=policy, seed=seed))
    with bind("127.0.0.1", 0) as listener:
        server.base_url = url_of(listener)
        run = ClassicRun(conf, exp_dir, server, seed=seed)
        print(
            json.dumps({"engine": "reference", "mode": "classic", "url": server.base_url, "pid": os.getpid()}),
            flush=True,
        )
        log.info("experiment %s in %s", run.settings.experiment_name, run.settings.experiment_dir)
        log.info("AgentJet reference engine: %s", server.engine.policy.describe())
        run.launch()
        web: uvicorn.Server = Uvicorn(web_config(server.app))
        serving = asyncio.create_task(web.serve(sockets=[listener]))
        stopped: list[int] = []
        stopping: list[asyncio.Task[None]] = []

        def stop(number: int) -> None:
            stopped.append(number)
            stopping.append(asyncio.create_task(server.engine.stop()))

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        await server.engine.wait()
        failure = server.engine.failure
        if failure is not None:
            traceback.print_exception(failure)
            log.error("the training run failed: %s: %s", type(failure).__name__, failure)
        elif stopped:
            log.warning("stopped by %s", signal.Signals(stopped[0]).name)
        else:
            log.info("training finished after step %d", run.settings.total_steps)
        web.should_exit = web.force_exit = True
        await serving
    if failure is not None:
        return FAILED
    return 128 + stopped[0] if stopped else 0


def _fail(message: str) -> NoReturn:
    click.echo(f"error: {message}", err=True)
    raise SystemExit(FAILED)


def main() -> NoReturn:
    """Run the command line."""
    launch(prog_name="python -m ajet.launcher")
    raise SystemExit(0)


if __name__ == "__main__":
    main()
