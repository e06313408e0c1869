"""Predicted against measured: the reference engine over a grid of caps, clients, durations, methods and loops.

Each point starts an engine, lets clients work on it for a number of steps, and compares step time,
throughput and bottleneck with ``skillpack.capacity``'s prediction from the same configuration and
distribution. Two costs that no configuration tells depend on how busy the machine is, and are
measured beside: what a slot loses with each episode (HTTP calls, late wake-ups), and what lies
between two steps. No step time and no throughput goes into a prediction.

    python benchmarks/capacity_validation.py --steps 24 --at-once 6 --out docs/capacity_validation.md
"""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import json
import os
import statistics
from dataclasses import asdict, replace
from pathlib import Path

from capacity_run import Measured, Point, run_point

from skillpack.capacity import inputs as keys
from skillpack.capacity import parameters as names
from skillpack.capacity.limits import ceiling_of
from skillpack.capacity.predict import Prediction, predict
from skillpack.capacity.workload import (
    ALL_AGREE,
    ANY_AGREES,
    ENOUGH_EPISODES,
    ENOUGH_NON_DUMMY,
    ENOUGH_TASKS,
)

SHORT = {
    ENOUGH_EPISODES: "episodes",
    ENOUGH_TASKS: "tasks",
    ENOUGH_NON_DUMMY: "non-dummy",
    ANY_AGREES: "any agrees",
    ALL_AGREE: "all agree",
}
TIE = 0.05
"""Phases whose measured shares of a step are nearer than this are both the bottleneck."""


NOT_COVERED = """\
## What this does not show

- Contention for the LLM: the reference engine has no GPU. That part of the model is exact for its assumptions (tests
  compare it with the closed queue's known values), but it has not been compared with a vLLM engine here.
- `task-first` threads where more threads than slots wait: which of them gets a slot depends on the server. The model
  takes it for chance, as with released clients that ask every two seconds; tests compare it with an event loop.
  The clients of this grid claim first and then take their task, except the throttled ones, which cannot.
- Steps of minutes to hours. Durations here are about a second, so the costs between episodes weigh more than they do
  in a real training.
"""


def grid() -> list[Point]:
    """Return the points: a full grid of the main factors, and points for what else the model knows."""
    pools = [(1, 6), (2, 5), (1, 24)]
    points = [
        Point(cap, clients, pool, cv, method)
        for cap, (clients, pool), cv, method in itertools.product(
            (4, 8, 16), pools, (0.3, 0.6, 1.0), (ENOUGH_TASKS, ENOUGH_EPISODES)
        )
    ]
    base = Point(8, 1, 24, 0.6)
    points += [replace(base, cap=cap, cv=cv, loop=names.BATCH) for cap in (4, 8) for cv in (0.0, 1.0)]
    points += [replace(base, cv=cv, method=ENOUGH_NON_DUMMY, dummy=dummy) for cv, dummy in ((0.6, 0.3), (1.0, 0.5))]
    points += [replace(base, clients=2, pool=12, method=method, agree_after=12) for method in (ANY_AGREES, ALL_AGREE)]
    points += [replace(base, update=4.0), replace(base, cap=16, update=4.0, method=ENOUGH_EPISODES)]
    points += [replace(base, vanish=0.1, timeout=2.5, method=ENOUGH_EPISODES, cap=cap) for cap in (4, 8)]
    points += [replace(base, cap=32, batch=4, slots="released", pool=40), replace(base, cap=6, slots="released")]
    points += [replace(base, clients=2, pool=10, throttle=ratio, mean=1.5) for ratio in (1.0, 1.5)]
    return points


def compare(point: Point, measured: Measured, prediction: Prediction) -> dict:
    """Return a row of the table."""
    assert prediction.simulation is not None
    simulation = prediction.simulation
    truth = _true_bottlenecks(point, measured, prediction)
    return {
        "point": point,
        "measured": measured,
        "shares": prediction.shares,
        "predicted_step": simulation.step.mean,
        "measured_step": measured.step,
        "step_error": simulation.step.mean / measured.step - 1,
        "predicted_rate": simulation.episodes_per_hour.mean,
        "measured_rate": measured.episodes_per_hour,
        "rate_error": simulation.episodes_per_hour.mean / measured.episodes_per_hour - 1,
        "bottleneck": prediction.bottleneck,
        "truth": truth,
        "right": prediction.bottleneck in truth,
    }


def _true_bottlenecks(point: Point, measured: Measured, prediction: Prediction) -> list[str]:
    """Return what held the measured steps up: the longest phase, or several within ``TIE``.

    In the full phase it is the engine if the gauge reached its cap, the clients if it stayed at
    the sum of their pools.
    """
    longest = max(measured.shares.values())
    found = []
    for phase, share in measured.shares.items():
        if share < longest - TIE:
            continue
        if phase != "full":
            found.append(phase)
        elif measured.peak >= prediction.workload.slots:
            found += [
                name for name in ceiling_of(prediction.limits, prediction.engine).binding if name != keys.CLIENT_POOLS
            ]
        else:
            found.append(keys.CLIENT_POOLS)
    return found


def main() -> None:
    """Run the grid and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--first", type=int, default=0, help="begin with this point of the grid")
    parser.add_argument("--points", type=int, default=1000, help="no more than so many")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", type=Path, help="keep what was measured in this file, and use what is in it")
    options = parser.parse_args()
    kept = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    kept = {name: measured for name, measured in kept.items() if not measured["errors"]}  # faults: measure again
    points = grid()[options.first :][: options.points]
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        futures = {
            pool.submit(run_in_process, point, options.steps): point for point in points if str(point) not in kept
        }
        for future in concurrent.futures.as_completed(futures):
            kept[str(futures[future])] = asdict(future.result())
            print(f"measured {len(kept)} of {len(points)} {future.result().errors or ''}", flush=True)
            if options.keep:
                options.keep.write_text(json.dumps(kept))
    rows = []
    for point in points:
        measured = Measured(**kept[str(point)])
        costs = max(0.0, measured.excess + measured.gap), max(0.0, measured.between - point.update)
        rows.append(compare(point, measured, predict(point.inputs(*costs), point.slots, steps=2000)))
        print(line(rows[-1]), flush=True)
        if not rows[-1]["right"]:
            print(f"    predicted {rows[-1]['shares']}, measured {measured.shares}", flush=True)
    report = table(rows, options.steps, options.at_once)
    print(report)
    if options.out:
        options.out.write_text(report, encoding="utf-8")


def run_in_process(point: Point, steps: int) -> Measured:
    """Run a point in a process of its own, so that the clients of different points do not share a lock."""
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        return pool.submit(run_point, point, steps).result()


def line(row: dict) -> str:
    """Return a row of the table as Markdown."""
    point = row["point"]
    extra = [
        f"update {point.update:g} s" if point.update else "",
        f"loop {point.loop}" if point.loop != "stream" else "",
    ]
    extra += [f"vanish {point.vanish:.0%}" if point.vanish else "", f"dummy {point.dummy:.0%}" if point.dummy else ""]
    extra += [
        f"throttle {point.throttle:g}" if point.throttle else "",
        point.slots if point.slots == "released" else "",
    ]
    notes = ", ".join(text for text in extra if text)
    return (
        f"| {point.cap} | {point.clients} x {point.pool} | {point.mean:g} / {point.cv:g} | {SHORT[point.method]} |"
        f" {notes} | {row['predicted_step']:.3f} | {row['measured_step']:.3f} | {row['step_error']:+.1%} |"
        f" {row['predicted_rate']:.0f} | {row['measured_rate']:.0f} | {row['rate_error']:+.1%} |"
        f" {row['bottleneck']} | {' or '.join(row['truth'])} |"
    )


def table(rows: list[dict], steps: int, at_once: int) -> str:
    """Return the document with the table and its summary."""
    errors = [abs(row[name]) for row in rows for name in ("step_error", "rate_error")]
    right = sum(row["right"] for row in rows)
    excess = [(row["measured"].excess + row["measured"].gap) * 1000 for row in rows]
    between = [(row["measured"].between - row["point"].update) * 1000 for row in rows]
    head = (
        "| cap | clients | mean s / cv | method | also | step s, predicted | measured | error |"
        " episodes/h, predicted | measured | error | bottleneck, predicted | measured |\n"
        "|---:|---|---|---|---|---:|---:|---:|---:|---:|---:|---|---|"
    )
    return "\n".join(
        [
            "# Predicted against measured",
            "",
            f"`benchmarks/capacity_validation.py`: {len(rows)} points on the reference engine, {steps} steps each,"
            f" {at_once} points at once on a machine with {os.cpu_count()} cores. A prediction knows the configuration,"
            " the clients and the distribution of durations (drawn in shuffled strata, so that few steps have its mean"
            " and tail). Two costs that depend on how busy the machine is are"
            " measured beside: what a slot loses with each episode"
            f" ({min(excess):.0f} to {max(excess):.0f} ms here) and what lies between two steps"
            f" ({min(between):.0f} to {max(between):.0f} ms)."
            " A point in which a client met a fault, such as a lost connection, is measured again.",
            "",
            f"Median error {statistics.median(errors):.1%}, worst {max(errors):.1%};"
            f" bottleneck named right on {right} of {len(rows)}"
            f" (phases within {TIE:.0%} of a step are a tie; cv 1 is exponential, cv 0 constant).",
            "",
            head,
            *(line(row) for row in rows),
            "",
            NOT_COVERED,
        ]
    )


if __name__ == "__main__":
    main()
