#!/usr/bin/env python3
"""Answer what caps Running Episodes, what to set, and what a running server is bound by."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True
import _pack

_pack.enter(__file__)

import click

from skillpack.script import UNAVAILABLE, Command, Group, emit, json_option, run


def configuration(function):
    """Add the options that say which configuration is asked about."""
    for option in reversed(
        [
            click.argument("file", required=False, type=click.Path(dir_okay=False)),
            click.option("--from", "from_file", type=click.Path(dir_okay=False), help="The same as FILE."),
            click.option("--max-env-worker", type=click.IntRange(1), help="ajet.rollout.max_env_worker"),
            click.option("--num-repeat", type=click.IntRange(1), help="ajet.rollout.num_repeat"),
            click.option("--batch-size", type=click.IntRange(1), help="ajet.data.train_batch_size"),
            click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any other ajet key."),
            click.option("--clients", type=click.IntRange(1), help="Number of swarm clients."),
            click.option("--client-pool", type=click.IntRange(1), help="Episodes that one client runs at once."),
            click.option("--environment", type=click.IntRange(1), help="Episodes that the environment service serves."),
            click.option(
                "--engine",
                type=click.Choice(["documented", "released", "classic"]),
                help="Report this kind of engine only.",
            ),
        ]
    ):
        function = option(function)
    return function


def read_inputs(file, from_file, settings, clients, client_pool, environment, **flags):
    """Return the inputs of the flags over those of the file."""
    from skillpack.capacity.inputs import from_command_line

    if file and from_file and file != from_file:
        raise click.UsageError("give FILE or --from FILE, not both")
    return from_command_line(
        file or from_file, settings, clients=clients, client_pool=client_pool, environment=environment, **flags
    )


@click.group(cls=Group, epilog="capacity.py cap --max-env-worker 130 --num-repeat 8 --json")
def capacity():
    """Answer what caps Running Episodes, what to set, and what a running server is bound by.

    FILE is a YAML configuration or a client script with an AgentJetJob call; a script is read, not run.
    """


@capacity.command(cls=Command, example="capacity.py cap job.yaml --batch-size 16 --json")
@configuration
@json_option
def cap(as_json, engine, **given):
    """Tell the cap on Running Episodes, every limit, and which one binds."""
    from skillpack.capacity.cap import cap_report, cap_text

    report = cap_report(read_inputs(**given), engine)
    emit(report, as_json=as_json, text=lambda: cap_text(report))


@capacity.command(cls=Command, example="capacity.py plan --target 256 --num-repeat 8 --json")
@configuration
@click.option("--target", type=click.IntRange(1), required=True, help="Episodes that shall run at once.")
@json_option
def plan(as_json, engine, target, **given):
    """Tell what to set so that --target episodes can run at once, and what must restart."""
    from skillpack.capacity.plan import plan_report, plan_text

    report = plan_report(read_inputs(**given), target, engine)
    emit(report, as_json=as_json, text=lambda: plan_text(report))


@capacity.command(
    cls=Command,
    example="capacity.py live --url http://127.0.0.1:10086 --json",
    exit_codes={UNAVAILABLE: "the server does not answer, or is not a swarm server"},
)
@configuration
@click.option("--url", required=True, envvar="AJET_SWARM_URL", help="The swarm server (or AJET_SWARM_URL).")
@json_option
def live(as_json, engine, url, **given):
    """Ask a running server what runs, the cap, what binds, idle slots and stale episodes."""
    from skillpack.capacity.live import live_report, live_text
    from skillpack.capacity.observe import Server

    inputs = read_inputs(**given)
    with Server(url) as server:
        report = live_report(server.url, server.snapshot(), inputs, engine)
    emit(report, as_json=as_json, text=lambda: live_text(report))


if __name__ == "__main__":
    run(capacity)
