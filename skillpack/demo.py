"""``skills demo``: the whole path on one laptop, from validating the pack to a report with a curve."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from skillpack.engine import start_engine, stop_engine
from skillpack.files import write_atomically
from skillpack.interrupts import INTERRUPTS, held_back
from skillpack.pack import python_module, skills_dir
from skillpack.rendering import render
from skillpack.script import (
    BAD_INPUT,
    NO,
    UNAVAILABLE,
    YES,
    Command,
    Unavailable,
    emit,
    json_option,
)

REWARD = "critic/rewards/mean"
CURVES = [REWARD, "actor/entropy", "critic/success_rate"]
SPAN = 5
"""Steps at either end whose mean rewards are compared."""

LEARNED_BY = 0.3
"""By how much the last steps must beat the first: every one of ten seeds gains more than 0.4."""

TIME_LIMIT = 120.0


@click.command(
    "demo",
    cls=Command,
    example="skills demo --out demo_result",
    exit_codes={
        YES: "the mean reward rose",
        NO: "it did not, or the pack is not valid",
        BAD_INPUT: "bad usage",
        UNAVAILABLE: "the engine or a client did not run",
    },
)
@click.option(
    "--out",
    default="demo_result",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for report.md, metrics.csv, the curve and the run.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the engine's policy.")
@json_option
def demo_command(out: Path, seed: int, as_json: bool) -> None:
    """Validate the pack, train the demo task with two swarm clients on the reference engine, and report.

    Takes less than a minute, needs no GPU and no network, and stops everything that it started.
    """
    from skillpack import demo_client

    out = out.resolve()
    for number in INTERRUPTS:
        signal.signal(number, signal.default_int_handler)  # what Ctrl-C cleans up, they clean up
    began = time.monotonic()
    validation = _validate()
    capacity, metrics = _train(out, seed)
    rewards = [line["metrics"][REWARD] for line in metrics]
    first, last = fmean(rewards[:SPAN]), fmean(rewards[-SPAN:])
    result: dict[str, Any] = {
        "ok": validation["ok"] and last > first + LEARNED_BY,
        "engine": "reference",
        "steps": len(rewards),
        "seconds": round(time.monotonic() - began, 1),
        "mean_reward": {"first_steps": round(first, 4), "last_steps": round(last, 4), "span": SPAN},
        "validation": validation,
        "capacity": capacity,
        "files": _write_results(out, metrics),
    }
    report = render("demo_report.md.jinja", result=result, metrics=metrics, job=demo_client, reward=REWARD)
    write_atomically(out / "report.md", report)
    result["files"] = {"report": str(out / "report.md"), **result["files"]}
    text = (
        f"mean reward of the first {SPAN} steps {first:.3f}, of the last {SPAN} {last:.3f}, "
        f"in {result['seconds']:.0f} s\n" + "\n".join(result["files"].values())
    )
    emit(result, as_json=as_json, text=text)
    raise SystemExit(YES if result["ok"] else NO)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _validate() -> dict[str, Any]:
    """Check the pack's own skills: files and rules; their scripts are run by `skills validate`."""
    _say("validating the pack")
    command = python_module("skillpack", "validate", str(skills_dir()), "--no-run", "--json")
    answer = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    try:
        document = json.loads(answer.stdout)
    except ValueError:
        raise Unavailable(f"skills validate did not answer: {answer.stderr.strip()[-500:]}") from None
    skills = document.get("skills", [])
    return {"ok": document["ok"], "skills": len(skills), "problems": sum(len(one["problems"]) for one in skills)}


def _train(out: Path, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train the demo task; return the capacity report of the running server, and the metric lines."""
    from skillpack.demo_client import STEPS, THREADS

    run = out / "saved_experiments" / "demo"
    if run.exists():
        _set_aside(run)
    out.mkdir(parents=True, exist_ok=True)
    capacity: dict[str, Any] = {}
    with ExitStack() as stack:
        engine = start_engine(["--swarm-port", "0", "--seed", str(seed)], cwd=out, log=out / "engine.log")
        stack.callback(stop_engine, engine)
        _say(f"reference engine at {engine.url}, two clients with {THREADS} threads each")
        clients = [stack.enter_context(_client(engine.url, number, out)) for number in range(2)]
        for step, line in _follow(run / "metrics.jsonl", engine.url, clients, STEPS):
            reward = line["metrics"][REWARD]
            _say(f"step {step:2d}/{STEPS}  mean reward {reward:.3f}  " + "█" * round(30 * reward))
            if step == 2:
                capacity = _capacity(engine.url)
    return capacity, _read_lines(run / "metrics.jsonl")


def _set_aside(run: Path) -> None:
    """Keep the run of an earlier demo beside the new one, which must begin at step 1."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(run.stat().st_mtime))
    target = run.with_name(f"demo-{stamp}")
    number = 1
    while target.exists():
        number += 1
        target = run.with_name(f"demo-{stamp}-{number}")
    run.rename(target)
    checkpoints = run.parents[1] / "saved_checkpoints" / "agentjet_skills" / "demo"
    if checkpoints.exists():
        checkpoints.rename(checkpoints.with_name(target.name))


@contextmanager
def _client(url: str, number: int, out: Path) -> Iterator[subprocess.Popen[bytes]]:
    client: subprocess.Popen[bytes] | None = None
    try:
        with (out / f"client-{number}.log").open("w") as log, held_back():
            client = subprocess.Popen(
                python_module("skillpack.demo_client", url, str(number)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        yield client
    finally:
        if client:
            client.terminate()
            client.wait()


def _follow(
    path: Path, url: str, clients: list[subprocess.Popen[bytes]], steps: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each of so many steps as it is written; between them wait on the engine's status."""
    import httpx

    seen, revision, deadline = 0, 0, time.monotonic() + TIME_LIMIT
    with httpx.Client(base_url=url, trust_env=False) as http:
        while seen < steps:
            lines = _read_lines(path)
            for line in lines[seen:]:
                yield line["step"], line
            seen = max(seen, len(lines))
            failed = [client for client in clients if client.poll()]
            if failed or time.monotonic() > deadline:
                what = "a demo client failed" if failed else f"the demo took more than {TIME_LIMIT:.0f} s"
                raise Unavailable(what, hint=f"read client-*.log and engine.log in {path.parents[2]}")
            params = {"revision": revision, "wait_seconds": 1.0}
            revision = http.get("/get_engine_status", params=params).json()["revision"]


def _read_lines(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _capacity(url: str) -> dict[str, Any]:
    """Ask the skill's own script about the running server; show its text, return its JSON."""
    script = skills_dir() / "swarm-configuration" / "scripts" / "capacity.py"
    command = [sys.executable, str(script), "live", "--url", url]
    text, document = (
        subprocess.run([*command, *more], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        for more in ([], ["--json"])
    )
    try:
        found = dict(json.loads(document.stdout))
    except ValueError:
        raise Unavailable(f"capacity.py live did not answer: {document.stderr.strip()[-500:]}") from None
    _say(f"$ capacity.py live --url {url}\n" + text.stdout.rstrip())
    return found


def _write_results(out: Path, metrics: list[dict[str, Any]]) -> dict[str, str]:
    import pandas

    from skillpack.metrics.plot import draw

    keys = list(dict.fromkeys(key for line in metrics for key in line["metrics"]))
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["step", *keys])
    writer.writerows([line["step"], *(line["metrics"].get(key, "") for key in keys)] for line in metrics)
    path = write_atomically(out / "metrics.csv", table.getvalue())
    steps = [line["step"] for line in metrics]
    frame = pandas.DataFrame({key: [line["metrics"][key] for line in metrics] for key in CURVES}, index=steps)
    curve = draw(frame, out / "curves.png", keys=CURVES, title="AgentJet demo on the reference engine", smooth=0.6)
    return {"metrics": str(path), "curves": str(curve)}
