"""One point of the validation grid: an engine, the clients that work on it, and what was measured."""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist

import httpx
import numpy as np
import yaml

from ajet.schema.task import Task, WorkflowOutput
from ajet.task_rollout.native_parallel_worker import count_slots
from ajet.tuner_lib.as_oai_baseurl_apikey import OpenaiBaseUrlAndApiKey
from ajet.tuner_lib.experimental.status_watch import CANNOT_CONNECT
from ajet.tuner_lib.experimental.swarm_client import SwarmClient, SwarmServerOfflineError, SwarmThrottlePolicy
from skillpack.capacity import inputs as keys
from skillpack.capacity import parameters as names
from skillpack.capacity.inputs import Input, Inputs
from skillpack.capacity.workload import CONSTANT, ENOUGH_TASKS, EXPONENTIAL, Durations

ENGINE = Path(__file__).with_name("capacity_engine.py")
WARM_UP = 2
STRATA = 96


@dataclass(frozen=True)
class Point:
    """One point of the grid. Times in seconds."""

    cap: int
    clients: int
    pool: int
    cv: float
    method: str = ENOUGH_TASKS
    mean: float = 0.5
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


@dataclass
class Record:
    """What the clients saw of every episode that they ended: (claimed, ended, client), and its excess seconds.

    Times are those of the wall clock, which the engine's metrics have too.
    """

    episodes: list[tuple[float, float, int]] = field(default_factory=list)
    excess: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def strata(durations: Durations, chance: random.Random) -> list[float]:
    """Draw one duration from each of ``STRATA`` equally likely ranges, in random order.

    So a few steps have the distribution's mean and tail, and fewer of them are needed.
    """
    shares = [(index + chance.random()) / STRATA for index in range(STRATA)]
    chance.shuffle(shares)
    if durations.kind == EXPONENTIAL:
        return [-durations.mean * math.log1p(-share) for share in shares]
    if durations.kind == CONSTANT:
        return [durations.mean] * STRATA
    sigma = math.sqrt(math.log1p(durations.cv**2))
    normal = NormalDist(math.log(durations.mean) - sigma**2 / 2, sigma)
    return [math.exp(normal.inv_cdf(share)) for share in shares]


class Worker:
    """One swarm client with a pool of threads that never waits longer than its loop makes it."""

    def __init__(self, point: Point, url: str, number: int, record: Record) -> None:
        self.point, self.number, self.record = point, number, record
        self.client = SwarmClient(url, verbose=False)
        limits = httpx.Limits(max_connections=None, keepalive_expiry=None)
        self.chat = httpx.Client(limits=limits, trust_env=False, timeout=30)
        self.random = random.Random(f"{point} {number}")
        self.turn = threading.Condition()
        self.given = self.done = 0
        self.ended_in: dict[int | None, int] = {}
        self.threads = [threading.Thread(target=self._run, daemon=True) for _ in range(point.pool)]
        self.durations: list[float] = []

    def _run(self) -> None:
        while True:
            try:
                self._episode()
            except (SwarmServerOfflineError, RuntimeError, httpx.HTTPError) as error:
                if self.client._watch.current[0] in ("ENGINE.OFFLINE", CANNOT_CONNECT):
                    return  # the engine has finished its steps
                self.record.errors.append(f"{type(error).__name__}: {error}")

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
            if not self.durations:
                self.durations = strata(self.point.durations(), self.random)
            return self.durations.pop()

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
            ended = time.time()
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
            claimed = time.time()
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
    """What a run showed, warm-up steps left out. Seconds, shares of a step by phase, faults of clients."""

    step: float
    episodes_per_hour: float
    shares: dict[str, float]
    peak: int
    excess: float
    gap: float
    between: float
    errors: tuple[str, ...]


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
            rows = [json.loads(line) for line in metrics.read_text().splitlines()]
        finally:
            engine.terminate()
            engine.wait(timeout=30)
    for worker in workers:
        worker.client.close()
    return measure(point, rows, record)


def measure(point: Point, rows: list[dict], record: Record) -> Measured:
    """Return the figures of a run: a step lies between two lines of the engine's metrics."""
    episodes = record.episodes
    shares = {"full": 0.0, "stragglers": 0.0, "timeouts": 0.0, "update": 0.0, "resume": 0.0}
    total = collected = 0.0
    between: list[float] = []
    gaps: list[float] = []
    for before, row in itertools.islice(itertools.pairwise(rows), WARM_UP - 1, None):
        begin, step, rollout = before["time"], row["time"] - before["time"], row["metrics"]["timing_s/gen"]
        mine = [item for item in episodes if begin < item[0] <= row["time"]]
        claims = [claimed for claimed, _, _ in mine]
        gaps += _gaps(point, claims, [ended for _, ended, _ in mine])
        full = max(claims) - begin
        shares["full"] += full
        shares["stragglers"] += rollout - full
        shares["update"] += step - rollout
        total += step
        collected += len(claims)
        between.append(step - rollout)
    edges = sorted([(claimed, 1) for claimed, _, _ in episodes] + [(ended, -1) for _, ended, _ in episodes])
    running = peak = 0
    for _, change in edges:
        running += change
        peak = max(peak, running)
    return Measured(
        step=total / len(between),
        episodes_per_hour=collected / total * 3600,
        shares={name: share / total for name, share in shares.items()},
        peak=peak,
        excess=statistics.mean(record.excess),
        gap=statistics.mean(gaps) if gaps and not point.vanish else 0.0,
        between=statistics.mean(between),
        errors=tuple(record.errors[:5]),
    )


def _gaps(point: Point, claims: list[float], ends: list[float]) -> list[float]:
    """Return, for each start of a step but the first ones, how long after an end it came."""
    slots = count_slots(point.cap, point.repeat, point.batch, point.slots)
    at_once = min(slots, point.clients * point.pool)
    return [claim - end for claim, end in zip(sorted(claims)[at_once:], sorted(ends), strict=False)]
