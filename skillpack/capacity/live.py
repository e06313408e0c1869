"""What a running server's gauge says: running now, the cap, what binds, idle slots and stale episodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from skillpack.capacity import inputs as keys
from skillpack.capacity.advice import advise
from skillpack.capacity.cap import SHOWN, ceiling_lines, limit_lines, shown_inputs
from skillpack.capacity.inputs import MEASURED, UNKNOWN, Input, Inputs
from skillpack.capacity.limits import (
    DOCUMENTED,
    FORMULA,
    SWARM_ENGINES,
    Limit,
    ceiling_of,
    ceilings,
    documented_cap,
    engines_of,
    limits_of,
)
from skillpack.capacity.observe import RunningEpisode, Snapshot

STALE_SHARE = 0.8
"""An episode is stale when it has been idle for this share of the idle time after which it is recycled."""

SHOWN_AT_MOST = 10
CLAIMING = ("ENGINE.ROLLING",)


def live_report(url: str, now: Snapshot, given: Inputs, engine: str | None = None) -> dict[str, Any]:
    """Return the JSON document of ``capacity.py live``.

    ``given`` (flags, a file) fills in what the server does not tell, and yields where it does.
    """
    inputs = now.inputs().over(given)
    running = len(now.running)
    if inputs[keys.MAX_ENV_WORKER].known == UNKNOWN and now.waiting is not None and now.status in CLAIMING:
        offered = Input(running + now.waiting, "claimed and offered episodes, counted on the server", MEASURED)
        inputs = Inputs({keys.OPEN_SLOTS: offered}).over(inputs)
    engines = engines_of(inputs, engine or kind_of(now))
    limits = limits_of(inputs, engines)
    cap = _cap(inputs)
    ceiling = ceiling_of(limits, engines[-1]).value
    return {
        "question": "live",
        "url": url,
        "engine": now.engine,
        "engine_status": now.status,
        "global_step": now.global_step,
        "running": running,
        "waiting": now.waiting,
        "cap": cap,
        "idle_slots": None if ceiling is None else max(0, ceiling - running),
        "formula": FORMULA[DOCUMENTED],
        "divisible": None if cap is None else inputs.value(keys.MAX_ENV_WORKER) % inputs.value(keys.NUM_REPEAT) == 0,
        "bottleneck": bottleneck_now(now, limits, engines[-1]),
        "stale": [_stale(episode) for episode in stale_episodes(now)[:SHOWN_AT_MOST]],
        "stale_count": len(stale_episodes(now)),
        "clients": clients(now),
        "progress": {
            name: now.pool.get(name)
            for name in ("sample_collection_method", "completed_episodes", "completed_episode_target")
        },
        "inputs": shown_inputs(inputs),
        "ceilings": [asdict(item) for item in ceilings(limits)],
        "limits": [limit.as_json() for limit in limits],
        "advice": _advice(now, given, inputs, limits, engines),
    }


def bottleneck_now(now: Snapshot, limits: list[Limit], engine: str) -> dict[str, str | None]:
    """Return what holds Running Episodes where it is, and the observation that says so.

    An offered episode that nobody claims means that the clients bind; none offered while
    episodes run means that the engine does. Outside ROLLING nothing can be claimed.
    """
    running, ceiling = len(now.running), ceiling_of(limits, engine)
    if now.status not in CLAIMING:
        return {"name": "engine_status", "why": f"the engine is {now.status}: no episode can be claimed now"}
    if ceiling.value is not None and ceiling.binding and running >= ceiling.value:
        return {"name": ceiling.binding[0], "why": f"{running} running, and the engine allows {ceiling.value}"}
    if now.waiting:
        return {"name": keys.CLIENT_POOLS, "why": f"{now.waiting} offered episodes wait for a client to claim them"}
    if now.waiting == 0 and running:
        return {"name": "engine_slots", "why": "every episode that the engine offers is claimed"}
    return {"name": None, "why": "neither offered nor running episodes tell what binds"}


def stale_episodes(now: Snapshot) -> list[RunningEpisode]:
    """Return the episodes that are idle near their patience, the idlest first."""
    stale = [
        episode
        for episode in now.running
        if episode.patience_seconds > 0 and episode.idle_seconds >= STALE_SHARE * episode.patience_seconds
    ]
    return sorted(stale, key=lambda episode: -episode.idle_seconds / episode.patience_seconds)


def clients(now: Snapshot) -> list[dict[str, Any]]:
    """Return every client that holds episodes or is active, with how many episodes it runs."""
    counts = Counter(episode.client_uuid for episode in now.running)
    active = {str(client.get("client_uuid", "")): client for client in now.clients}
    return [
        {
            "client_uuid": uuid,
            "running": counts.get(uuid, 0),
            "active": uuid in active,
            "allowed_sync_weight": active.get(uuid, {}).get("allowed_sync_weight"),
        }
        for uuid in sorted({*counts, *active}, key=lambda uuid: (-counts.get(uuid, 0), uuid))
    ]


def _cap(inputs: Inputs) -> int | None:
    workers, repeat = inputs.value(keys.MAX_ENV_WORKER), inputs.value(keys.NUM_REPEAT)
    return None if workers is None or repeat is None else documented_cap(workers, repeat)


def kind_of(now: Snapshot) -> str | None:
    """Return which kind of engine it is; None if the server does not say, as released ones do not."""
    slots = now.capacity.get("slots")
    return slots if slots in SWARM_ENGINES else None


def _stale(episode: RunningEpisode) -> dict[str, Any]:
    return {**asdict(episode), "recycled_in_seconds": max(0.0, episode.patience_seconds - episode.idle_seconds)}


def _advice(now: Snapshot, given: Inputs, inputs: Inputs, limits: list[Limit], engines: tuple[str, ...]) -> list[str]:
    advice = []
    if now.status == "ENGINE.OFFLINE":
        advice.append("The engine is offline: start it, then ask again.")
    if inputs[keys.MAX_ENV_WORKER].known == UNKNOWN:
        advice.append(
            "This server does not tell max_env_worker (released servers never do, the reference only while it runs):"
            " give --max-env-worker N or --from FILE for the cap."
        )
    advice += _not_restarted(now.inputs(), given)
    if stale_episodes(now):
        advice.append(
            "Stale episodes hold slots until their discard_episode_timeout (idle time) is over:"
            " end or abort them in the client, or give begin_episode a shorter discard_episode_timeout."
        )
    clients_bind = now.status in CLAIMING and bottleneck_now(now, limits, engines[-1])["name"] == keys.CLIENT_POOLS
    if clients_bind:
        advice.append("Raising max_env_worker brings nothing now: raise max_parallel in the clients or add clients.")
    return [*advice, *advise(inputs, limits, engines, slots_bind=not clients_bind)]


def _not_restarted(running: Inputs, given: Inputs) -> list[str]:
    """Return where the server runs with another value than the file or the flags say."""
    return [
        f"{key} is {given.value(key)} ({given[key].source}), but the running engine has {running.value(key)}:"
        " it was started from another configuration; restart it to apply this one."
        for key in SHOWN
        if None not in (given.value(key), running.value(key)) and given.value(key) != running.value(key)
    ]


def live_text(report: dict[str, Any]) -> str:
    """Return a live report as text for people."""
    shown = {name: "unknown" if report[name] is None else report[name] for name in ("cap", "idle_slots", "waiting")}
    step = "" if report["global_step"] is None else f", step {report['global_step']}"
    lines = [
        f"{report['url']}: {report['engine_status']}{step}",
        f"running {report['running']} of cap {shown['cap']};"
        f" idle slots {shown['idle_slots']}; offered and unclaimed {shown['waiting']}",
        f"binds now: {report['bottleneck']['name'] or 'unknown'} ({report['bottleneck']['why']})",
        *ceiling_lines(report),
        *(f"client {item['client_uuid'][:8]}: {item['running']} running" for item in report["clients"][:SHOWN_AT_MOST]),
        *(
            f"stale {item['episode_uuid'][:8]}: idle {item['idle_seconds']:g}s of {item['patience_seconds']:g}s"
            for item in report["stale"]
        ),
        "",
        *limit_lines(report),
        "",
        *(f"- {sentence}" for sentence in report["advice"]),
    ]
    return "\n".join(lines)
