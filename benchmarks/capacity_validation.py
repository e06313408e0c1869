"""Predicted against measured: the reference engine over a grid of caps, clients, durations, methods and loops.

Each point starts an engine, lets clients work on it for a number of steps, and compares step time,
throughput and bottleneck with ``skillpack.capacity``'s prediction from the same configuration and
distribution. Two costs that no configuration tells depend on how busy the machine is, and are
measured beside: what an episode takes beyond its own length (HTTP calls, late wake-ups), and what
lies between two steps. No step time and no throughput goes into a prediction.

    python benchmarks/capacity_validation.py --steps 30 --at-once 12 --out docs/capacity_validation.md
"""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import httpx
import numpy as np
import yaml

from ajet.schema.task import Task, WorkflowOutput
from ajet.tuner_lib.as_oai_baseurl_apikey import OpenaiBaseUrlAndApiKey
from ajet.tuner_lib.experimental.swarm_client import SwarmClient, SwarmServerOfflineError, SwarmThrottlePolicy
from skillpack.capacity import inputs as keys
from skillpack.capacity import parameters as names
from skillpack.capacity.inputs import Input, Inputs
from skillpack.capacity.limits import ceiling_of
from skillpack.capacity.predict import Prediction, predict
from skillpack.capacity.workload import (
    ALL_AGREE,
    ANY_AGREES,
    ENOUGH_EPISODES,
    ENOUGH_NON_DUMMY,
    ENOUGH_TASKS,
    Durations,
)

ENGINE = Path(__file__).with_name("capacity_engine.py")
SHORT = {
    ENOUGH_EPISODES: "episodes",
    ENOUGH_TASKS: "tasks",
    ENOUGH_NON_DUMMY: "non-dummy",
    ANY_AGREES: "any agrees",
    ALL_AGREE: "all agree",
}
TIE = 0.05
"""Phases whose measured shares of a step are nearer than this are both the bottleneck."""

WARM_UP = 2


@dataclass(frozen=True)
class Point:
    """One point of the grid. Times in seconds."""

    cap: int
    clients: int
    pool: int
    cv: float
    method: str = ENOUGH_TASKS
    mean: float = 1.0
    batch: int = 6
    repeat: int = 4
    loop: str = names.STREAM
    slots: str = "documented"
    update: float = 0.0
    vanish: float = 0.0
    timeout: float = 60.0
    dummy: float = 0.0
    throttle: float | None = None
    agree_after: int | None = None

    def durations(self) -> Durations:
        """Return the distribution of an episode's length; cv 1 means exponential."""
        return Durations.of(self.mean, cv=None if self.cv == 1 else self.cv)

    def config(self) -> dict:
        """Return the engine's configuration."""
        return {
            "ajet": {
                "data": {"train_batch_size": self.batch},
                "rollout": {"max_env_worker": self.cap, "num_repeat": self.repeat},
                "swarm_mode_sample_collection_method": self.method,
                "experiment_name": "validation",
            }
        }

    def inputs(self, overhead: float, between: float) -> Inputs:
        """Return what a prediction of this point knows."""
        given = {
            keys.MAX_ENV_WORKER: self.cap,
            keys.NUM_REPEAT: self.repeat,
            keys.TRAIN_BATCH_SIZE: self.batch,
            keys.METHOD: self.method,
            keys.CLIENTS: self.clients,
            keys.CLIENT_POOL: self.pool,
            names.UPDATE: self.update + between,
            names.OVERHEAD: overhead,
            names.DUMMY_SHARE: self.dummy,
            names.VANISH: self.vanish,
            names.TIMEOUT: self.timeout,
            names.CLIENT_LOOP: self.loop,
            names.TASK_ORDER: names.CLAIM_FIRST if self.throttle is None else names.TASK_FIRST,
        }
        if self.cv == 1:
            given[names.EPISODE_SECONDS] = self.mean
        else:
            sample = self.durations().sample(np.random.default_rng(1), (20_000,))
            given[names.DURATIONS] = sample.tolist()
        optional = {names.THROTTLE_RATIO: self.throttle, names.AGREE_AFTER: self.agree_after}
        given.update({name: value for name, value in optional.items() if value is not None})
        return Inputs({name: Input(value, "grid") for name, value in given.items()})


def grid() -> list[Point]:
    """Return the points: a full grid of the main factors, and points for what else the model knows."""
    pools = [(1, 6), (2, 5), (1, 24)]
    points = [
        Point(cap, clients, pool, cv, method)
        for cap, (clients, pool), cv, method in itertools.product(
            (4, 8, 16), pools, (0.0, 0.6, 1.0), (ENOUGH_TASKS, ENOUGH_EPISODES)
        )
    ]
    base = Point(8, 1, 24, 0.6)
    points += [replace(base, cap=cap, cv=cv, loop=names.BATCH) for cap in (4, 8) for cv in (0.0, 1.0)]
    points += [replace(base, cv=cv, method=ENOUGH_NON_DUMMY, dummy=dummy) for cv, dummy in ((0.6, 0.3), (1.0, 0.5))]
    points += [replace(base, clients=2, pool=12, method=method, agree_after=12) for method in (ANY_AGREES, ALL_AGREE)]
    points += [replace(base, update=6.0), replace(base, cap=16, update=7.0, method=ENOUGH_EPISODES)]
    points += [replace(base, vanish=0.1, timeout=4.0, method=ENOUGH_EPISODES, cap=cap) for cap in (4, 8)]
    points += [replace(base, cap=32, batch=4, slots="released", pool=40), replace(base, cap=6, slots="released")]
    points += [replace(base, clients=2, pool=10, throttle=ratio, mean=2.0) for ratio in (1.0, 1.5)]
    return points


@dataclass
class Record:
    """What the clients saw of every episode that they ended: (claimed, ended, client), and its excess seconds."""

    episodes: list[tuple[float, float, int]] = field(default_factory=list)
    excess: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Worker:
    """One swarm client with a pool of threads that never waits longer than its loop makes it."""

    def __init__(self, point: Point, url: str, number: int, record: Record) -> None:
        self.point, self.number, self.record = point, number, record
        self.client = SwarmClient(url, verbose=False)
        self.chat = httpx.Client(limits=httpx.Limits(max_connections=None), trust_env=False, timeout=30)
        self.random = random.Random(f"{point} {number}")
        self.turn = threading.Condition()
        self.given = self.done = 0
        self.ended_in: dict[int | None, int] = {}
        self.threads = [threading.Thread(target=self._run, daemon=True) for _ in range(point.pool)]
        self.durations = iter(())

    def _run(self) -> None:
        try:
            while True:
                self._episode()
        except (SwarmServerOfflineError, RuntimeError, httpx.HTTPError):
            return  # the engine has finished its steps

    def _next(self) -> int:
        """Return the number of the next episode; a batch loop waits until its last batch is done."""
        point = self.point
        mine = -(-point.batch // point.clients) * point.repeat
        with self.turn:
            while point.loop == names.BATCH and self.given - self.given % mine > self.done and self.given % mine == 0:
                self.turn.wait()
            self.given += 1
            return self.given - 1

    def _duration(self) -> float:
        with self.turn:
            found = next(self.durations, None)
            if found is None:
                generator = np.random.default_rng(self.random.randrange(1 << 30))
                self.durations = iter(self.point.durations().sample(generator, (4096,)).tolist())
                found = next(self.durations)
            return found

    def _episode(self) -> None:
        point = self.point
        if point.throttle is None and point.loop == names.STREAM:
            claim = self._claim(None)
            number = self._next()
        else:
            number = self._next()
            claim = self._claim(self._task(number))
        uuid, model, claimed = claim
        self.chat.post(
            f"{model.base_url}/chat/completions",
            headers={"Authorization": f"Bearer {model.api_key}"},
            json={"model": "m", "messages": [{"role": "user", "content": "x"}]},
        )
        duration = self._duration()
        time.sleep(duration)
        task = self._task(number)
        dummy = random.Random(task).random() < point.dummy
        reward = 0.0 if dummy else float(number % point.repeat % 2)
        self.client.end_episode(Task(task_id=task), uuid, WorkflowOutput(reward=reward))
        with self.record.lock:
            ended = time.monotonic()
            self.record.episodes.append((claimed, ended, self.number))
            self.record.excess.append(ended - claimed - duration)
        with self.turn:
            self.done += 1
            self.turn.notify_all()
        if point.agree_after is not None:
            self._agree_if_due()

    def _task(self, number: int) -> str:
        return f"client{self.number}-task{number // self.point.repeat}"

    def _claim(self, task: str | None) -> tuple[str, OpenaiBaseUrlAndApiKey, float]:
        """Claim an episode and return it with the time; a vanishing client lets go of some, and tries again."""
        point = self.point
        policy = None
        if point.throttle is not None and task is not None:
            policy = SwarmThrottlePolicy(
                ratio=point.throttle,
                expected_batch_size=point.batch,
                expected_num_repeat=point.repeat,
                current_task_id=task,
            )
        while True:
            uuid, model = self.client.begin_episode(point.timeout, throttle_policy=policy)
            claimed = time.monotonic()
            if self.random.random() >= point.vanish:
                return uuid, model, claimed

    def _agree_if_due(self) -> None:
        """Agree once in a step, when this client has ended as many episodes in it as it wants."""
        step = self.client.get_global_step()
        with self.turn:
            self.ended_in[step] = self.ended_in.get(step, 0) + 1
            due = self.ended_in[step] == self.point.agree_after
        if due:
            self.client._http.post("/agree_sync_weight", {"client_uuid": self.client.client_uuid})


@dataclass(frozen=True)
class Measured:
    """What a run showed, warm-up steps left out. Seconds, shares of a step by phase."""

    step: float
    episodes_per_hour: float
    shares: dict[str, float]
    peak: int
    excess: float
    gap: float
    between: float


def run_point(point: Point, steps: int) -> Measured:
    """Run an engine and its clients until ``steps`` steps are done; return what was measured."""
    with tempfile.TemporaryDirectory(prefix="capacity-validation-") as folder:
        config = point.config()
        config["ajet"]["trainer_common"] = {"total_training_steps": steps + WARM_UP, "save_freq": -1}
        (Path(folder) / "job.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        command = [sys.executable, str(ENGINE), "--conf", "job.yaml", "--slots", point.slots]
        engine = subprocess.Popen(
            [*command, "--update-seconds", str(point.update)],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert engine.stdout is not None
        try:
            url = json.loads(engine.stdout.readline())["url"]
            threading.Thread(target=engine.stdout.read, daemon=True).start()  # its console lines, or it would block
            record = Record()
            workers = [Worker(point, url, number, record) for number in range(point.clients)]
            threads = [thread for worker in workers for thread in worker.threads]
            for thread in threads:
                thread.start()
            watch = workers[0].client._watch
            watch.wait_until(lambda status, _: status == "ENGINE.OFFLINE", 1200.0)
            metrics = next(Path(folder).rglob("metrics.jsonl"))
            rows = [json.loads(line)["metrics"] for line in metrics.read_text().splitlines()]
        finally:
            engine.terminate()
            engine.wait(timeout=30)
    for worker in workers:
        worker.client.close()
    return measure(point, rows, record)


def measure(point: Point, rows: list[dict], record: Record) -> Measured:
    """Return the figures of a run from the engine's metrics and the clients' record."""
    episodes = record.episodes
    starts = sorted(claimed for claimed, _, _ in episodes)
    begin = starts[0]
    shares = {"full": 0.0, "stragglers": 0.0, "timeouts": 0.0, "update": 0.0, "resume": 0.0}
    total = collected = 0.0
    between = []
    for index, row in enumerate(rows):
        whole, gen = row["timing_s/step"], row["timing_s/gen"]
        following = [at for at in starts if at >= begin + gen - 0.005]
        nearest = following[0] if following else begin + whole
        mine = [item for item in episodes if begin - 0.05 <= item[0] < begin + gen]
        if index >= WARM_UP and mine and following:
            step = nearest - begin
            last = max(claimed for claimed, _, _ in mine)
            end = max(ended for _, ended, _ in mine)
            tail = max(begin + gen, end) - last
            shares["full"] += last - begin
            shares["stragglers"] += tail
            shares["update"] += step - (last - begin) - tail
            total += step
            collected += len(mine)
            between.append(step - gen)
        begin = nearest
    edges = sorted([(claimed, 1) for claimed, _, _ in episodes] + [(ended, -1) for _, ended, _ in episodes])
    running = peak = 0
    for _, change in edges:
        running += change
        peak = max(peak, running)
    counted = len(between)
    return Measured(
        step=total / counted,
        episodes_per_hour=collected / total * 3600,
        shares={name: share / total for name, share in shares.items()},
        peak=peak,
        excess=statistics.mean(record.excess),
        gap=statistics.median(_gaps(episodes)) if point.cap == 1 else 0.0,
        between=statistics.mean(between),
    )


def _gaps(episodes: list[tuple[float, float, int]]) -> list[float]:
    """Return the seconds from the end of each episode of a single slot to the claim of the next."""
    ordered = sorted(episodes)
    return [after[0] - before[1] for before, after in itertools.pairwise(ordered)]


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
    calibration = run_point(Point(1, 1, 1, 0.0, ENOUGH_EPISODES, mean=0.1, batch=4, repeat=1), 12)
    points = grid()[options.first :][: options.points]
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        futures = {
            pool.submit(run_in_process, point, options.steps): point for point in points if str(point) not in kept
        }
        for future in concurrent.futures.as_completed(futures):
            kept[str(futures[future])] = asdict(future.result())
            print(f"measured {len(kept)} of {len(points)}", flush=True)
            if options.keep:
                options.keep.write_text(json.dumps(kept))
    rows = []
    for point in points:
        measured = Measured(**kept[str(point)])
        costs = measured.excess + calibration.gap, measured.between - point.update
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
    excess = [row["measured"].excess * 1000 for row in rows]
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
            " the clients and the distribution of durations. Two costs that depend on how busy the machine is are"
            " measured beside: what an episode takes beyond its own length"
            f" ({min(excess):.0f} to {max(excess):.0f} ms here) and what lies between two steps"
            f" ({min(between):.0f} to {max(between):.0f} ms).",
            "",
            f"Median error {statistics.median(errors):.1%}, worst {max(errors):.1%};"
            f" bottleneck named right on {right} of {len(rows)}"
            f" (phases within {TIE:.0%} of a step are a tie; cv 1 is exponential, cv 0 constant).",
            "",
            head,
            *(line(row) for row in rows),
            "",
        ]
    )


if __name__ == "__main__":
    main()
