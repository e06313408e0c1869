#!/usr/bin/env python3
"""Explain, compare, lint and dump the configuration of a YAML file or of a client script's AgentJetJob call."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True
import _pack

_pack.enter(__file__)

import click

from skillpack.script import NO, Command, Group, emit, json_option, run

job_option = click.option("--job", metavar="N|NAME", help="Which AgentJetJob call of a script, if it has several.")


@click.group(cls=Group, epilog="config.py explain max_env_worker train.py")
def config():
    """Explain, compare, lint and dump configurations.

    A SOURCE is a YAML file (- is standard input), a client script with an AgentJetJob call (read, not run; FILE.py#N
    or FILE.py#NAME picks one of several), default:swarm or default:classic.
    """


@config.command(cls=Command, example="config.py explain ajet.rollout.num_repeat job.yaml --json")
@click.argument("key")
@click.argument("source", default="default:swarm")
@job_option
@json_option
def explain(key, source, job, as_json):
    """Say what KEY is in SOURCE, who set it, what it does, and how to set it.

    KEY is a dotted key (`ajet.` may be left out), the last part of one, a kwarg of AgentJetJob, or a verl key.
    """
    from skillpack.config import report, texts
    from skillpack.config.keys import find_key
    from skillpack.config.sources import read_source

    configuration = read_source(source, job)
    document = report.explain(configuration, find_key(key, configuration.config), key)
    emit(document, as_json=as_json, text=lambda: texts.explain(document))


@config.command(
    cls=Command,
    example="config.py diff default:swarm train.py#1",
    exit_codes={0: "both configure the same", NO: "they differ"},
)
@click.argument("first")
@click.argument("second")
@json_option
@click.pass_context
def diff(context, first, second, as_json):
    """List the keys whose effective values differ between two SOURCEs, each with who set them."""
    from skillpack.config import report, texts
    from skillpack.config.sources import read_source

    document = report.diff(read_source(first), read_source(second))
    emit(document, as_json=as_json, text=lambda: texts.diff(document))
    context.exit(0 if document["same"] else NO)


@config.command(
    cls=Command,
    example="config.py lint train.py --json",
    exit_codes={0: "nothing wrong, or warnings only", NO: "an error was found (with --strict: or a warning)"},
)
@click.argument("source")
@job_option
@click.option("--strict", is_flag=True, help="Let warnings fail too.")
@json_option
@click.pass_context
def lint(context, source, job, strict, as_json):
    """Find what is wrong with SOURCE: names, types, values, rules across keys, configuration in two places.

    All AgentJetJob calls of a script are checked unless --job chooses one.
    """
    from skillpack.config import report, texts
    from skillpack.config.lint import lint as findings
    from skillpack.config.sources import read_sources

    document = report.lint([(one, findings(one)) for one in read_sources(source, job)], strict=strict)
    emit(document, as_json=as_json, text=lambda: texts.lint(document))
    context.exit(0 if document["ok"] else NO)


@config.command(
    cls=Command,
    example="config.py dump train.py --out job.yaml",
    exit_codes={NO: "dumped, but something in the script is unknown and left out"},
)
@click.argument("source")
@job_option
@click.option("--out", type=click.Path(dir_okay=False), help="Write to this file instead of stdout.")
@json_option
@click.pass_context
def dump(context, source, job, out, as_json):
    """Write the whole effective configuration of SOURCE as the YAML that an engine reads."""
    from skillpack.config import report, texts
    from skillpack.config.sources import read_source

    document = report.dump(read_source(source, job))
    for item in document["unknown"]:
        click.echo(texts.unknown(document["source"], item), err=True)
    if out:
        from skillpack.files import write_atomically

        document["written_to"] = str(write_atomically(out, document.pop("yaml")))
        emit(document, as_json=as_json, text=lambda: f"written to {out}")
    else:
        emit(document, as_json=as_json, text=lambda: document["yaml"].rstrip())
    context.exit(NO if document["unknown"] else 0)


if __name__ == "__main__":
    run(config)
