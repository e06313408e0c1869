"""How many client machines a server (or several) needs, and what share each client can take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skillpack.capacity import inputs as keys
from skillpack.capacity.cap import cap_report
from skillpack.capacity.inputs import Inputs
from skillpack.capacity.limits import CLASSIC, RUNNING_EPISODES, engines_of
from skillpack.capacity.parameters import assumption
from skillpack.script import BadInput

DESCRIPTORS_PER_EPISODE = 3
"""Sockets and pipes of one running episode in a client: swarm server, LLM, environment."""

DESCRIPTORS_OF_A_PROCESS = 64

CONNECTIONS_PER_CLIENT = 100
"""Connections of one released SwarmClient object (httpx's default); more threads wait for one."""


@dataclass(frozen=True)
class Machine:
    """A client machine, and what one running episode takes of it. None: unknown, so it is not a limit."""

    cores: float | None = None
    memory_gib: float | None = None
    open_files: int | None = None
    episode_cores: float | None = None
    episode_memory_mib: float | None = None

    def episodes(self) -> dict[str, int]:
        """Return how many episodes each known resource allows."""
        allowed = {}
        if self.cores is not None and self.episode_cores:
            allowed["cores"] = int(self.cores / self.episode_cores)
        if self.memory_gib is not None and self.episode_memory_mib:
            allowed["memory"] = int(self.memory_gib * 1024 / self.episode_memory_mib)
        if self.open_files is not None:
            allowed["open_files"] = (self.open_files - DESCRIPTORS_OF_A_PROCESS) // DESCRIPTORS_PER_EPISODE
        return {name: max(0, count) for name, count in allowed.items()}


def fleet_report(
    servers: Sequence[tuple[str, Inputs]],
    machine: Machine,
    engine: str | None = None,
    throttle_ratio: float | None = None,
) -> dict[str, Any]:
    """Return the JSON document of ``capacity.py fleet`` for servers (name, configuration).

    Every client machine is taken to serve all servers. Raises BadInput if nothing bounds what a
    machine can run, or a machine cannot run one episode.
    """
    allowed = machine.episodes()
    if not allowed:
        raise BadInput(
            "how many episodes one machine can run is unknown",
            expected="--cores N --episode-cores X, --memory-gib N --episode-memory-mib X, or --open-files N",
            hint="measure one episode of your client with top, and ulimit -n",
        )
    binding = min(allowed, key=lambda name: allowed[name])
    per_machine = allowed[binding]
    if per_machine < 1:
        raise BadInput(f"a machine cannot run one episode: {binding}", expected="a larger machine")
    rows = [_server(name, inputs, engine) for name, inputs in servers]
    total = sum(row["episodes"] for row in rows)
    machines = -(-total // per_machine)
    for row in rows:
        row["pool_per_machine"] = -(-row["episodes"] // machines)
        row["swarm_clients_per_machine"] = -(-row["pool_per_machine"] // CONNECTIONS_PER_CLIENT)
        row["share"] = _share(row, machines, throttle_ratio)
    return {
        "question": "fleet",
        "machines": machines,
        "episodes": total,
        "per_machine": per_machine,
        "binds": binding,
        "allowed": allowed,
        "servers": rows,
        "assumptions": _assumptions(allowed),
        "advice": _advice(rows, machine, machines, throttle_ratio),
    }


def _server(name: str, inputs: Inputs, engine: str | None) -> dict[str, Any]:
    kind = engine or engines_of(inputs)[-1]
    # what the clients shall fill is what the engine allows, whatever their pools are now
    report = cap_report(Inputs({key: item for key, item in inputs.items() if key.startswith("ajet.")}), kind)
    ceiling = next(item for item in report["ceilings"] if item["caps"] == RUNNING_EPISODES)
    batch = inputs.value(keys.TRAIN_BATCH_SIZE)
    return {
        "server": name,
        "engine": kind,
        "cap": report["cap"],
        "episodes": ceiling["value"],
        "exact": ceiling["exact"],
        "bound_by": list(ceiling["binding"]),
        "train_batch_size": batch,
    }


def _share(row: dict[str, Any], clients: int, ratio: float | None) -> dict[str, Any]:
    """Return a client's fair share of a batch, and the most that a throttle policy lets it take."""
    batch = row["train_batch_size"]
    expected = None if batch is None else -(-batch // clients)
    most = None
    if ratio is not None and expected is not None:
        most = min(1.0, math.ceil(ratio * expected) / batch)
    return {
        "fair": round(1 / clients, 4),
        "expected_batch_size": expected,
        "most": None if most is None else round(most, 4),
    }


def _assumptions(allowed: dict[str, int]) -> list[dict[str, Any]]:
    found = [assumption("machines", "each serves every server", "one call of fleet for each group of machines")]
    if "open_files" in allowed:
        found.append(
            assumption("descriptors_per_episode", DESCRIPTORS_PER_EPISODE, "ls /proc/PID/fd | wc -l of a busy client")
        )
    return found


def _advice(rows: list[dict[str, Any]], machine: Machine, machines: int, ratio: float | None) -> list[str]:
    advice = []
    for row in rows:
        if row["swarm_clients_per_machine"] > 1:
            advice.append(
                f"{row['server']}: a released SwarmClient holds {CONNECTIONS_PER_CLIENT} connections;"
                f" use {row['swarm_clients_per_machine']} SwarmClient objects (processes) on a machine."
            )
        if row["engine"] != CLASSIC and not row["exact"]:
            advice.append(f"{row['server']}: not every limit of the engine is known; the count is the most it can be.")
    if machines > 1 and ratio is None:
        advice.append(
            "Fast clients take the larger part of a batch: a SwarmThrottlePolicy with expected_batch_size"
            " as given under share bounds each client's part (--throttle-ratio shows it)."
        )
    unknown = [name for name in ("cores", "memory", "open_files") if name not in machine.episodes()]
    if unknown:
        advice.append(f"Not known, so not counted: {', '.join(unknown)}.")
    return advice


def fleet_text(report: dict[str, Any]) -> str:
    """Return a fleet report as text for people."""
    lines = [
        f"{report['machines']} machines of {report['per_machine']} episodes each"
        f" ({report['binds']} binds) for {report['episodes']} running episodes"
    ]
    for row in report["servers"]:
        share = row["share"]
        most = "unlimited" if share["most"] is None else f"{share['most']:.0%} at most"
        lines.append(
            f"{row['server']}: {row['episodes']} episodes ({row['engine']} engine, {', '.join(row['bound_by'])}),"
            f" max_parallel {row['pool_per_machine']} a machine, fair share {share['fair']:.0%}, {most}"
        )
    lines += [f"assumed {item['name']} = {item['value']}: {item['replace_by']}" for item in report["assumptions"]]
    return "\n".join([*lines, *(f"- {text}" for text in report["advice"])])
