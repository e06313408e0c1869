#!/usr/bin/env python3
"""Answer what caps Running Episodes, what to set, what a change would bring, and what a server is bound by."""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True
import _pack

_pack.enter(__file__)

from pathlib import Path

import click

from skillpack.capacity.parameters import CHOICES, DURATIONS, PARAMETERS, SHARES, flag
from skillpack.script import NO, UNAVAILABLE, Command, Group, emit, json_option, run

CONFIGURATION = [
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
        "--engine", type=click.Choice(["documented", "released", "classic"]), help="Report this kind of engine only."
    ),
]

LARGEST_GPU_GIB = 1024


def check_gibibytes(_context, _parameter, value):
    """Refuse mebibytes, which nvidia-smi prints."""
    if value is not None and value > LARGEST_GPU_GIB:
        raise click.BadParameter(
            f"{value:g} GiB is no GPU's; if it is MiB, as nvidia-smi prints, give {value / 1024:.2f}"
        )
    return value


HARDWARE = [
    click.option("--model", help="A config.json, a folder with one, or a known name (default: ajet.model.path)."),
    click.option(
        "--gpu-memory-gib",
        type=click.FloatRange(1),
        callback=check_gibibytes,
        help="Memory of one GPU in GiB (nvidia-smi prints MiB: divide by 1024).",
    ),
    click.option(
        "--available-kv-gib",
        type=click.FloatRange(0, min_open=True),
        help="Available KV cache memory, as the engine's log tells it.",
    ),
]

WORKLOAD = [
    *(
        click.option(
            flag(name),
            type=click.IntRange(int(parameter.least))
            if parameter.kind is int
            else click.FloatRange(parameter.least, 1 if name in SHARES else None),
            help=parameter.help,
        )
        for name, parameter in PARAMETERS.items()
    ),
    click.option(flag(DURATIONS), type=click.Path(dir_okay=False), help="Observed seconds, one a line."),
    *(click.option(flag(name), type=click.Choice(choices), help=text) for name, (choices, text) in CHOICES.items()),
]

SIMULATION = [
    click.option("--steps", type=click.IntRange(2, 10_000), default=400, show_default=True, help="Steps to simulate."),
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the simulation."),
]


def check_name(_context, _parameter, path):
    """Refuse the name of a picture that cannot be drawn, before anything is asked or computed."""
    if path is not None:
        from skillpack.metrics.plot import check_picture

        check_picture(path)
    return path


png_option = click.option(
    "--png",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=check_name,
    help="Also draw a picture: FILE.png, .svg or .pdf.",
)

ALSO = (*PARAMETERS, *CHOICES, DURATIONS, "clients", "client_pool")


def options(*lists):
    """Add lists of options and arguments to a command, in order."""

    def add(function):
        for option in reversed([option for group in lists for option in group]):
            function = option(function)
        return function

    return add


def read_inputs(file, from_file, settings, model=None, gpu_memory_gib=None, available_kv_gib=None, **flags):
    """Return the inputs of the flags over those of the file, with the KV cache where it can be told."""
    from skillpack.capacity.inputs import from_command_line

    if file and from_file and file != from_file:
        raise click.UsageError("give FILE or --from FILE, not both")
    inputs = from_command_line(file or from_file, settings, **flags)
    if gpu_memory_gib is None and available_kv_gib is None:
        return inputs
    from skillpack.capacity.fit import with_kv_cache

    return with_kv_cache(inputs, model, gpu_memory_gib, available_kv_gib)


@click.group(cls=Group, epilog="capacity.py cap --max-env-worker 130 --num-repeat 8 --json")
def capacity():
    """Answer what caps Running Episodes, what to set, what a change would bring, and what a server is bound by.

    FILE is a YAML configuration or a client script with an AgentJetJob call; a script is read, not run.
    """


@capacity.command(cls=Command, example="capacity.py cap job.yaml --batch-size 16 --json")
@options(CONFIGURATION, HARDWARE)
@click.option("--this-machine", is_flag=True, help="Count what this machine's open files and ports allow, too.")
@json_option
def cap(as_json, engine, this_machine, **given):
    """Tell the cap on Running Episodes, every limit, and which one binds."""
    from skillpack.capacity.cap import cap_report, cap_text

    inputs = read_inputs(**given)
    if this_machine:
        from skillpack.capacity.machine import machine_limits

        inputs = inputs.over(machine_limits())
    report = cap_report(inputs, engine)
    emit(report, as_json=as_json, text=lambda: cap_text(report))


@capacity.command(
    cls=Command,
    example="capacity.py plan --target 256 --num-repeat 8\n"
    "capacity.py plan job.yaml --goal step-time=10min --episode-seconds 90 --episode-p95 300",
    exit_codes={NO: "no change reaches the goal"},
)
@options(CONFIGURATION, HARDWARE, WORKLOAD, SIMULATION)
@click.option("--target", type=click.IntRange(1), help="Episodes that shall run at once.")
@click.option("--goal", help="step-time=10min, utilisation=90% or episodes-per-hour=5000.")
@json_option
@png_option
@click.pass_context
def plan(context, as_json, engine, target, goal, steps, seed, png, **given):
    """Tell the smallest change for --target episodes at once, or for a --goal, and what must restart."""
    if (target is None) == (goal is None):
        raise click.UsageError("give either --target N or --goal NAME=VALUE")
    if target is not None:
        from skillpack.capacity.plan import plan_report, plan_text

        report = plan_report(read_inputs(**given), target, engine)
        emit(report, as_json=as_json, text=lambda: plan_text(report))
        return
    from skillpack.capacity.goals import goal_report, goal_text, parse_goal

    wanted = parse_goal(goal)
    report = goal_report(read_inputs(**given), wanted, engine, steps, seed)
    draw_steps(report, png)
    emit(report, as_json=as_json, text=lambda: goal_text(report))
    context.exit(0 if report["reached"] else NO)


@capacity.command(
    "what-if",
    cls=Command,
    example="capacity.py what-if job.yaml --episode-seconds 90 --episode-p95 300"
    " --set ajet.rollout.max_env_worker=512 --set client_pool=128",
)
@options(CONFIGURATION, HARDWARE, WORKLOAD, SIMULATION)
@json_option
@png_option
def what_if(as_json, engine, settings, steps, seed, png, **given):
    """Predict a step before and after the changes of --set: time, throughput, waste and bottleneck.

    Beside ajet keys, --set takes the names of workload flags (client_pool, clients, update_seconds, ...).
    """
    from skillpack.capacity.inputs import parse_settings
    from skillpack.capacity.what_if import what_if_report, what_if_text

    changes = parse_settings(settings, ALSO)
    if not changes:
        raise click.UsageError("give at least one --set KEY=VALUE to change")
    report = what_if_report(read_inputs(settings=(), **given), changes, engine, steps, seed)
    draw_steps(report, png)
    emit(report, as_json=as_json, text=lambda: what_if_text(report))


@capacity.command(
    cls=Command,
    example="capacity.py live --url http://127.0.0.1:10086 --for 5m --json",
    exit_codes={UNAVAILABLE: "the server does not answer, or is not a swarm server"},
)
@options(CONFIGURATION)
@click.option("--url", required=True, envvar="AJET_SWARM_URL", help="The swarm server (or AJET_SWARM_URL).")
@click.option("--for", "how_long", help="Watch for so long (30s, 5m) and fit what is seen.")
@json_option
@png_option
def live(as_json, engine, url, how_long, png, **given):
    """Ask a running server what runs, the cap, what binds, idle slots and stale episodes."""
    from skillpack.capacity.live import live_report, live_text
    from skillpack.capacity.observe import Server

    inputs = read_inputs(**given)
    if how_long is None:
        if png is not None:
            raise click.UsageError("--png needs --for: a single look has nothing to draw")
        with Server(url) as server:
            report = live_report(server.url, server.snapshot(), inputs, engine)
        emit(report, as_json=as_json, text=lambda: live_text(report))
        return
    from skillpack.capacity.goals import parse_seconds
    from skillpack.capacity.live_watch import save_picture, watched_report, watched_text
    from skillpack.capacity.watch import watch

    seconds = parse_seconds(how_long)
    with Server(url) as server:
        seen = watch(server.snapshot, seconds)
    report = watched_report(server.url, seen, inputs, engine)
    report["png"] = None if png is None else str(save_picture(seen, report, png))
    emit(report, as_json=as_json, text=lambda: watched_text(report))


@capacity.command(
    cls=Command,
    example="capacity.py fit job.yaml --model Qwen/Qwen2.5-7B-Instruct --gpu-memory-gib 79.6",
    exit_codes={NO: "it will not fit", UNAVAILABLE: "something that it depends on is not given"},
)
@options(CONFIGURATION, HARDWARE)
@click.option("--kv-dtype", default="auto", show_default=True, help="kv_cache_dtype of the engine.")
@click.option(
    "--weight-bytes", type=click.FloatRange(0, min_open=True), default=2.0, show_default=True, help="Bytes per weight."
)
@click.option("--block-size", type=click.IntRange(1), default=16, show_default=True, help="Tokens of a KV block.")
@json_option
@png_option
@click.pass_context
def fit(
    context, as_json, engine, png, model, gpu_memory_gib, available_kv_gib, kv_dtype, weight_bytes, block_size, **given
):
    """Tell whether a model fits: the engine's KV cache by vLLM's rules, and the memory of a training step."""
    from skillpack.capacity.fit import fit_report, fit_text
    from skillpack.capacity.kv_cache import DTYPE_BYTES

    if kv_dtype not in DTYPE_BYTES:
        raise click.BadParameter(f"{kv_dtype} is not one of {', '.join(DTYPE_BYTES)}", param_hint="--kv-dtype")
    report = fit_report(
        read_inputs(**given),
        model=model,
        gpu_memory_gib=gpu_memory_gib,
        available_kv_gib=available_kv_gib,
        kv_dtype=kv_dtype,
        weight_bytes=weight_bytes,
        block_size=block_size,
    )
    report["png"] = None
    if png is not None and report["training_step"] is not None:
        from skillpack.capacity.plots import plot_memory

        report["png"] = str(plot_memory(report["training_step"]["parts_gib"], gpu_memory_gib, png))
    emit(report, as_json=as_json, text=lambda: fit_text(report))
    context.exit({"will not fit": NO, "unknown": UNAVAILABLE}.get(report["fits"], 0))


@capacity.command(
    cls=Command, example="capacity.py fleet --server a=job.yaml --cores 16 --episode-cores 0.5 --throttle-ratio 1.5"
)
@options(CONFIGURATION)
@click.option("--server", "servers", multiple=True, metavar="NAME=FILE", help="One of several servers.")
@click.option("--cores", type=click.FloatRange(0, min_open=True), help="Cores of one client machine.")
@click.option("--memory-gib", type=click.FloatRange(0, min_open=True), help="Memory of one client machine.")
@click.option("--open-files", type=click.IntRange(65), help="ulimit -n of the client.")
@click.option("--episode-cores", type=click.FloatRange(0, min_open=True), help="Cores that one episode keeps busy.")
@click.option("--episode-memory-mib", type=click.FloatRange(0, min_open=True), help="Memory of one episode.")
@click.option("--throttle-ratio", type=click.FloatRange(0, min_open=True), help="SwarmThrottlePolicy.ratio.")
@json_option
@png_option
def fleet(as_json, engine, png, servers, throttle_ratio, file, from_file, settings, **given):
    """Tell how many client machines of a size one server, or several, can use, and each client's share."""
    from skillpack.capacity.fleet import Machine, fleet_report, fleet_text

    sizes = ("cores", "memory_gib", "open_files", "episode_cores", "episode_memory_mib")
    machine = Machine(**{name: given.pop(name) for name in sizes})
    named = [server.partition("=") for server in servers]
    if any(not path for _, _, path in named):
        raise click.BadParameter("give NAME=FILE", param_hint="--server")
    sources = [(name, path) for name, _, path in named] or [("server", file or from_file)]
    inputs = [(name, read_inputs(path, None, settings, **given)) for name, path in sources]
    report = fleet_report(inputs, machine, engine, throttle_ratio)
    report["png"] = None
    if png is not None:
        from skillpack.capacity.plots import plot_fleet

        report["png"] = str(plot_fleet(report["servers"], report["machines"], png))
    emit(report, as_json=as_json, text=lambda: fleet_text(report))


@capacity.command(
    cls=Command,
    example="capacity.py sweep job.yaml --episode-seconds 90 --vary ajet.rollout.max_env_worker=32:512:32 --out sweep",
    exit_codes={UNAVAILABLE: "matplotlib is missing"},
)
@options(CONFIGURATION, HARDWARE, WORKLOAD, SIMULATION)
@click.option("--vary", multiple=True, required=True, metavar="KEY=VALUES", help="first:last:step, or a,b,c.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for the files.")
@click.option("--plot/--no-plot", default=True, help="Draw sweep.png.")
@json_option
def sweep(as_json, engine, vary, out, plot, steps, seed, **given):
    """Predict a grid of configurations; write sweep.csv and sweep.png with the knee marked."""
    from skillpack.capacity.sweep import parse_grid, sweep_report, sweep_text

    grid = parse_grid(vary, ALSO)
    report = sweep_report(read_inputs(**given), grid, out, engine=engine, steps=steps, seed=seed, plot=plot)
    emit(report, as_json=as_json, text=lambda: sweep_text(report))


def draw_steps(report, png):
    """Draw where the time of a step goes before and after, if a picture is wanted."""
    report["png"] = None
    if png is not None:
        from skillpack.capacity.plots import plot_steps

        report["png"] = str(plot_steps({name: report[name] for name in ("before", "after")}, png))


if __name__ == "__main__":
    run(capacity)
