"""The report of a rehearsal: as data, as text, as a page."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from skillpack.rehearse.diagnose import WARNING, Problem, diagnose, groups_of, never_ended, would_train
from skillpack.rehearse.observe import Watcher
from skillpack.rehearse.session import Outcome

REPLY_SECONDS = (1.0, 5.0, 20.0)
"""Seconds of a real model's reply that a step's length is projected for."""

SHOWN_KEYS = (
    "ajet.project_name",
    "ajet.experiment_name",
    "ajet.model.path",
    "ajet.trainer_common.algorithm.adv_estimator",
    "ajet.data.train_batch_size",
    "ajet.rollout.num_repeat",
    "ajet.rollout.max_env_worker",
    "ajet.swarm_mode_sample_collection_method",
    "ajet.rollout.max_model_len",
    "ajet.rollout.max_response_length_in_one_turn",
    "ajet.trainer_common.logger",
    "ajet.trainer_common.total_training_steps",
)


def report_of(outcome: Outcome) -> dict[str, Any]:
    """Return the report as plain data (``rehearse.schema.json``)."""
    engines = [_engine(outcome, watcher) for watcher in outcome.watchers]
    refused = [one["message"] for engine in engines for one in engine["lint"] if one["severity"] == "error"]
    problems = diagnose(outcome)
    if refused:
        problems.append(Problem("config_lint", WARNING, "; ".join(dict.fromkeys(refused))))
    plan, ok = outcome.plan, would_train(outcome, problems)
    mend = ", once its configuration is mended" if refused else ""
    return {
        "ok": ok,
        "verdict": f"would train{mend}" if ok else "would not train",
        "client": {
            "script": plan.target,
            "arguments": list(plan.arguments),
            "exit_code": outcome.exit_code,
            "seconds": round(outcome.seconds, 3),
            "stopped_because": outcome.stopped_because,
            "unanswered_urls": outcome.unanswered,
        },
        "policy": outcome.watchers[0].server.engine.policy.describe(),
        "steps_wanted": plan.steps,
        "problems": [problem.to_dict() for problem in problems],
        "engines": engines,
        "exceptions": _exceptions(outcome),
    }


def _engine(outcome: Outcome, watcher: Watcher) -> dict[str, Any]:
    counts, settings = watcher.counts, watcher.server.engine.settings
    groups = groups_of(watcher)
    repeat = settings.num_repeat if settings else 1
    trainer = watcher.server.engine.trainer
    history = trainer.history if trainer else []
    names = ("claimed", "ended", "ended_eval", "aborted", "recycled", "dropped", "cut_off", "undelivered")
    return {
        "url": watcher.url,
        "config": _config(watcher.server.engine.config_text),
        "lint": _lint(watcher.server.engine.config_text),
        "steps": watcher.updates,
        "clients": len(watcher.clients),
        "episodes": {
            **{name: counts[name] for name in names},
            "open_at_the_end": watcher.open_at_stop,
            "never_ended": never_ended(watcher) - watcher.open_at_stop,
        },
        "groups": {
            "tasks": len(groups),
            "full": sum(len(group) >= repeat for group in groups),
            "short": sum(len(group) < repeat for group in groups),
            "equal_rewards": sum(len(group) > 1 and len(set(group)) == 1 for group in groups),
            "expected_repeats": repeat,
        },
        "running": _running(outcome, watcher),
        "calls_per_episode": _spread(watcher.calls),
        "episode_seconds": _spread(watcher.episode_seconds),
        "phases": {status: round(seconds, 3) for status, seconds in watcher.phases.items() if seconds >= 0.0005},
        "recycled": [{"timeout": one["timeout"], "calls": one["calls"]} for one in watcher.recycled[:20]],
        "refusals": [
            {"path": path, "status": status, "count": count, "example": watcher.refusals[path, status][0]}
            for (path, status), count in watcher.refusal_counts.most_common(20)
        ],
        "curves": {
            name: [round(step[name], 6) if name in step else None for step in history]
            for name in ("critic/rewards/mean", "critic/success_rate", "actor/entropy", "timing_s/step")
            if any(name in step for step in history)
        },
        "projection": _projection(watcher),
        "chaos": dict(watcher.server.chaos.counts),
    }


def _config(text: str | None) -> dict[str, Any]:
    from ajet.backbone.settings import read_config

    if text is None:
        return {}
    config = read_config(text)
    return {key: config.get(key) for key in SHOWN_KEYS}


def _lint(text: str | None) -> list[dict[str, Any]]:
    """Return what the lint rules find in the configuration that arrived."""
    from skillpack.config.lint import lint
    from skillpack.config.sources import read_source

    if text is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arrived.yaml"
        path.write_text(text, encoding="utf-8")
        return [
            {"rule": one.rule, "severity": one.severity, "key": one.key, "message": one.message}
            for one in lint(read_source(path))
        ]


def _running(outcome: Outcome, watcher: Watcher) -> dict[str, Any]:
    settings = watcher.server.engine.settings
    cap = settings.cap if settings else None
    rolling = watcher.phases.get("ENGINE.ROLLING", 0.0) + watcher.phases.get("ENGINE.ROLLING_POST", 0.0)
    bound = None
    if cap is not None and watcher.peak:
        if watcher.peak >= cap:
            bound = "cap: ceil(max_env_worker / num_repeat) * num_repeat"
        else:
            bound = f"client: it never had more than {watcher.peak} episodes open at once"
    return {
        "peak": watcher.peak,
        "mean": round(watcher.running_seconds / rolling, 2) if rolling else 0.0,
        "cap": cap,
        "released_cap": _released_cap(watcher),
        "bound_by": bound,
    }


def _released_cap(watcher: Watcher) -> int | None:
    from ajet.task_rollout.native_parallel_worker import count_slots

    settings = watcher.server.engine.settings
    if settings is None:
        return None
    return count_slots(settings.max_env_worker, settings.num_repeat, _real_batch(watcher), "released")


def _real_batch(watcher: Watcher) -> int:
    from ajet.backbone.settings import read_settings

    assert watcher.server.engine.config_text is not None
    return read_settings(watcher.server.engine.config_text).train_batch_size


def _projection(watcher: Watcher) -> dict[str, Any] | None:
    """Return how long a real step would take: its episodes in waves of what ran at once, with a real model's replies.

    ``episodes × (own seconds + calls × reply seconds) / parallel``; the update itself is not in it.
    """
    settings = watcher.server.engine.settings
    rolling = watcher.phases.get("ENGINE.ROLLING", 0.0)
    if settings is None or not watcher.episode_seconds or not rolling:
        return None
    episodes = _real_batch(watcher) * settings.num_repeat
    own = statistics.fmean(watcher.episode_seconds)
    calls = statistics.fmean(watcher.calls)
    parallel = max(1, min(watcher.peak, settings.cap, _released_cap(watcher) or settings.cap, episodes))
    return {
        "episodes_per_step": episodes,
        "parallel": parallel,
        "own_seconds_per_episode": round(own, 4),
        "calls_per_episode": round(calls, 2),
        "formula": "episodes_per_step * (own_seconds_per_episode + calls_per_episode * reply_seconds) / parallel",
        "step_seconds_by_reply_seconds": {
            f"{reply:g}": round(episodes * (own + calls * reply) / parallel, 1) for reply in REPLY_SECONDS
        },
    }


def _exceptions(outcome: Outcome) -> list[dict[str, Any]]:
    counted: dict[tuple[str, str, int], dict[str, Any]] = {}
    for one in outcome.exceptions:
        entry = counted.setdefault(
            (one["type"], one["file"], one["line"]),
            {key: one[key] for key in ("type", "message", "file", "line", "function", "code", "how")} | {"count": 0},
        )
        entry["count"] += 1
    return sorted(counted.values(), key=lambda one: -one["count"])[:20]


def _spread(values: list[int] | list[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {"mean": round(statistics.fmean(values), 4), "min": min(values), "max": max(values)}


def text_of(report: dict[str, Any]) -> str:
    """Return the report for people, some two dozen lines."""
    client = report["client"]
    why = {
        "steps": "the steps were made",
        "exit": f"the client ended (exit code {client['exit_code']})",
        "timeout": "the time limit came",
        "stuck": "the client showed no sign of life any more",
        "surplus": "the step got far more episodes than it needs and did not end",
    }
    lines = [
        f"{client['script']}: {report['verdict']}",
        f"stopped after {client['seconds']:.1f} s: {why[client['stopped_because']]}",
    ]
    for problem in report["problems"]:
        lines.append(f"{problem['severity']}: {problem['name']}: {problem['title']}")
        lines.append(f"  {problem['evidence']}")
        if problem["where"]:
            lines.append(f"  at {problem['where']}")
        lines.append(f"  fix: {problem['fix']}")
    for engine in report["engines"]:
        lines += _engine_lines(engine, report["steps_wanted"])
    for one in report["exceptions"][:5]:
        lines.append(f"exception {one['count']}x {one['type']} at {one['file']}:{one['line']}: {one['message'][:120]}")
    lines.append(f"answered by: {report['policy']}")
    return "\n".join(lines)


def _engine_lines(engine: dict[str, Any], wanted: int) -> list[str]:
    episodes, groups, running = engine["episodes"], engine["groups"], engine["running"]
    shown = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in episodes.items() if count)
    lines = [
        f"engine {engine['url']}: {engine['steps']} of {wanted} weight updates, {engine['clients']} clients",
        f"  episodes: {shown or 'none'}",
        f"  groups: {groups['tasks']} tasks, {groups['full']} full ({groups['expected_repeats']} repeats), "
        f"{groups['short']} short, {groups['equal_rewards']} with equal rewards",
        f"  running: peak {running['peak']} of cap {running['cap']}, mean {running['mean']}; "
        f"bound by {running['bound_by'] or 'nothing seen'}",
    ]
    if engine["calls_per_episode"]:
        calls, seconds = engine["calls_per_episode"], engine["episode_seconds"]
        lines.append(
            f"  per episode: {calls['mean']:.1f} chat calls ({calls['min']} to {calls['max']}), {seconds['mean']:.2f} s"
        )
    phases = ", ".join(f"{name.removeprefix('ENGINE.')} {value:.1f} s" for name, value in engine["phases"].items())
    lines.append(f"  time: {phases}")
    rewards = engine["curves"].get("critic/rewards/mean")
    if rewards:
        lines.append("  mean reward by step: " + " ".join("-" if one is None else f"{one:.3f}" for one in rewards))
    if engine["projection"]:
        projected = engine["projection"]
        ways = ", ".join(
            f"{seconds:.0f} s at {reply} s per reply"
            for reply, seconds in projected["step_seconds_by_reply_seconds"].items()
        )
        lines.append(f"  a real step of {projected['episodes_per_step']} episodes: {ways} (update not included)")
    lines += [f"  config {one['severity']}: {one['message']}" for one in engine["lint"] if one["severity"] != "error"][
        :5
    ]
    lines += [
        f"  refused {one['count']}x {one['path']} {one['status']}: {one['example'][:100]}"
        for one in engine["refusals"][:4]
    ]
    return lines
