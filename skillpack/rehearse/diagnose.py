"""From what happened in a rehearsal to what is wrong with the client, by name."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from skillpack.rehearse.observe import Watcher
from skillpack.rehearse.session import Outcome

ERROR, WARNING = "error", "warning"

RAISING_SHARE = 0.05
"""Share of episodes that fail from which failing is no accident any more."""

CONSEQUENCES = ("SwarmServerError", "NotFoundError", "SwarmServerOfflineError")
"""Exceptions that say that an episode was lost, not why."""


@dataclass(frozen=True)
class Problem:
    """Something found: its name, whether it keeps the client from training, and what shows it."""

    name: str
    severity: str
    evidence: str
    where: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the problem with its title and what to do."""
        text = texts()[self.name]
        shown = {"name": self.name, "severity": self.severity, "title": text["title"], "evidence": self.evidence}
        return {**shown, "where": self.where or None, "fix": text["fix"]}


@functools.cache
def texts() -> dict[str, dict[str, str]]:
    """Return title and fix of each problem, in the order of their gravity."""
    return yaml.safe_load(Path(__file__).with_name("problems.yaml").read_text(encoding="utf-8"))


def diagnose(outcome: Outcome) -> list[Problem]:
    """Return the problems of a rehearsal, root causes first."""
    found = [problem for watcher in outcome.watchers for problem in _engine_problems(outcome, watcher)]
    found += _client_problems(outcome, found)
    updates = min(watcher.updates for watcher in outcome.watchers)
    if not updates and not any(one.severity == ERROR for one in found):
        found.append(_no_update(outcome))
    order = list(texts())
    unique = {one.name: one for one in reversed(found)}
    return sorted(unique.values(), key=lambda one: (one.severity != ERROR, order.index(one.name)))


def would_train(outcome: Outcome, problems: list[Problem]) -> bool:
    """Tell whether every engine made a weight update and nothing found keeps it from going on."""
    return min(one.updates for one in outcome.watchers) > 0 and not any(one.severity == ERROR for one in problems)


def groups_of(watcher: Watcher) -> list[list[float]]:
    """Return the rewards of all groups, of finished and of open steps."""
    return [rewards for step in watcher.groups.values() for rewards in step.values()]


def never_ended(watcher: Watcher) -> int:
    """Return how many claims nobody ended or gave back, those that are still open included."""
    counts = watcher.counts
    done = sum(counts[name] for name in ("ended", "ended_eval", "aborted", "dropped", "cut_off", "undelivered"))
    return max(0, counts["claimed"] - done)


def _engine_problems(outcome: Outcome, watcher: Watcher) -> Iterator[Problem]:
    counts, settings = watcher.counts, watcher.server.engine.settings
    refused = [text for (path, _), lines in watcher.refusals.items() if path == "/sync_train_config" for text in lines]
    if refused:
        yield Problem("config_rejected", ERROR, refused[0])
        return
    if settings is None:
        if not _talks_elsewhere(outcome):
            yield Problem("engine_not_started", ERROR, f"{watcher.url} never got a start_engine request")
        return
    if not counts["claimed"]:
        yield Problem("no_episode_claimed", ERROR, f"{settings.cap} episodes stood ready and none was claimed")
        return
    lost = list(_timeouts(watcher))
    yield from lost
    if not any(one.severity == ERROR for one in lost):
        yield from _open_episodes(outcome, watcher)
    if counts["dropped"] and counts["dropped"] >= RAISING_SHARE * (counts["ended"] + counts["dropped"]):
        severity = WARNING if watcher.updates else ERROR
        yield Problem("no_chat_call", severity, f"{counts['dropped']} episodes ended without a chat call")
    yield from _groups(outcome, watcher)


def _timeouts(watcher: Watcher) -> Iterator[Problem]:
    """An episode that was taken back although its client still worked on it."""
    counts = watcher.counts
    if not watcher.recycled or not watcher.late:
        return
    shortest = min(one["timeout"] for one in watcher.recycled)
    share = counts["recycled"] / counts["claimed"]
    evidence = (
        f"{counts['recycled']} of {counts['claimed']} episodes were taken back after {shortest:g} s without a chat "
        f"call, and their clients came back for them {watcher.late} times"
    )
    yield Problem("timeout_too_short", ERROR if share >= RAISING_SHARE else WARNING, evidence)


def _open_episodes(outcome: Outcome, watcher: Watcher) -> Iterator[Problem]:
    counts, open_now, settings = watcher.counts, watcher.open_at_stop, watcher.server.engine.settings
    assert settings is not None
    if outcome.stopped_because not in ("stuck", "timeout", "exit"):
        lost = counts["recycled"] - watcher.late
        if lost > RAISING_SHARE * counts["claimed"]:
            yield Problem("episodes_never_ended", ERROR, f"{lost} episodes stood idle until they were taken back")
        return
    if open_now and 2 * len(_own_exceptions(outcome)) >= open_now:
        return  # the exceptions are why the episodes are open
    needed = settings.train_batch_size * settings.num_repeat
    blocked = _blocked(outcome)
    if open_now >= settings.cap and watcher.waiting_at_stop and outcome.stopped_because == "stuck":
        ended = counts["ended"] + counts["aborted"]
        if settings.cap < needed and not ended:
            evidence = f"the cap is {settings.cap}, a batch {needed} episodes; {open_now} are open, none has ended"
            yield Problem("cap_below_batch", ERROR, f"{evidence}, and the client asks for more")
        else:
            evidence = f"{open_now} of {settings.cap} places are taken by episodes that nobody works on"
            yield Problem("episodes_never_ended", ERROR, f"{evidence}; {ended} of {counts['claimed']} were ended")
    elif blocked and outcome.stopped_because == "stuck":
        yield Problem("client_blocks", ERROR, f"no sign of life for {outcome.plan.patience:g} s", where=blocked)
    elif never_ended(watcher) > RAISING_SHARE * counts["claimed"] and not watcher.late and not outcome.exceptions:
        evidence = f"{never_ended(watcher)} of {counts['claimed']} episodes were neither ended nor aborted"
        yield Problem("episodes_never_ended", ERROR if not watcher.updates else WARNING, evidence)


def _groups(outcome: Outcome, watcher: Watcher) -> Iterator[Problem]:
    settings, groups = watcher.server.engine.settings, groups_of(watcher)
    assert settings is not None
    repeat, ended = settings.num_repeat, sum(map(len, groups))
    if not groups:
        return
    asked = watcher.prompts
    distinct = len({prompt for prompts in asked.values() for prompt in prompts})
    short = [group for group in groups if len(group) < repeat]
    full = [group for group in groups if len(group) >= repeat]
    mixed = [task for task, prompts in asked.items() if len(prompts) > 1]
    if repeat > 1 and not full and len(asked) > distinct and len(asked) >= 2 * distinct and ended >= repeat:
        evidence = f"{ended} episodes carry {len(asked)} task ids, but they ask only {distinct} different questions"
        yield Problem("wrong_task_id", ERROR, evidence)
    elif len(asked) < settings.train_batch_size and not watcher.updates and ended > 2 * repeat and mixed:
        most = max(mixed, key=lambda task: len(asked[task]))
        evidence = f"episodes of task id {most!r} ask {len(asked[most])} different questions"
        yield Problem("wrong_task_id", ERROR, evidence)
    elif repeat > 1 and len(short) >= max(2, len(groups) / 2) and not full and not watcher.updates:
        evidence = f"num_repeat is {repeat}, but {len(groups)} tasks got {max(map(len, groups))} episodes at most"
        yield Problem("fewer_repeats_than_num_repeat", ERROR, evidence)
    judged = [group for group in groups if len(group) >= max(2, min(repeat, 2))]
    if judged and all(len(set(group)) == 1 for group in judged) and sum(map(len, judged)) >= min(8, 2 * repeat):
        rewards = {group[0] for group in judged}
        evidence = f"in each of {len(judged)} groups all rewards are equal"
        if len(rewards) == 1:
            evidence = f"all {sum(map(len, judged))} rewards are {rewards.pop():g}"
        yield Problem("constant_reward", ERROR, evidence)


def _client_problems(outcome: Outcome, found: list[Problem]) -> Iterator[Problem]:
    root = any(one.severity == ERROR for one in found)
    claimed = sum(one.counts["claimed"] for one in outcome.watchers)
    own = _own_exceptions(outcome)
    fatal = [one for one in outcome.exceptions if one["how"] == "ended the script"]
    if outcome.stopped_because == "exit" and outcome.exit_code not in (0, None):
        elsewhere = _talks_elsewhere(outcome)
        if elsewhere:
            yield Problem("unreachable_server", ERROR, elsewhere)
            return
        last = fatal[-1] if fatal else None
        evidence = f"exit code {outcome.exit_code}" + (f": {last['type']}: {last['message']}" if last else "")
        updates = min(one.updates for one in outcome.watchers)
        if not (root and last and last["type"] in CONSEQUENCES):
            severity = WARNING if updates >= outcome.plan.steps else ERROR
            yield Problem("client_failed", severity, evidence, where=_place(last) if last else "")
    raised = [one for one in own if one["how"] != "ended the script"]
    if raised:
        common = statistics.mode((one["type"], one["file"], one["line"]) for one in raised)
        example = next(one for one in raised if (one["type"], one["file"], one["line"]) == common)
        share = len(raised) / max(1, claimed)
        evidence = (
            f"{len(raised)} exceptions in {claimed} episodes, most often {example['type']}: {example['message'][:200]}"
        )
        severity = ERROR if share >= RAISING_SHARE and not root else WARNING
        yield Problem("client_raises", severity, evidence, where=_place(example))


def _no_update(outcome: Outcome) -> Problem:
    """Name why there was no weight update, where nothing else explains it."""
    watcher = min(outcome.watchers, key=lambda one: one.updates)
    settings = watcher.server.engine.settings
    ended = watcher.counts["ended"]
    needed = settings.train_batch_size * settings.num_repeat if settings else 0
    if settings and "agree" in settings.sample_collection_method and ended:
        return Problem(
            "not_agreed", ERROR, f"{ended} episodes are complete; method {settings.sample_collection_method}"
        )
    if outcome.stopped_because == "exit":
        return Problem("stopped_early", ERROR, f"the client ended after {ended} of {needed} episodes")
    if outcome.stopped_because == "timeout":
        evidence = f"{ended} of {needed} episodes were complete after {outcome.seconds:.0f} s"
        return Problem("not_enough_time", ERROR, evidence)
    return Problem("agent_waits", ERROR, f"{ended} of {needed} episodes were complete", where=_blocked(outcome))


def _own_exceptions(outcome: Outcome) -> list[dict[str, Any]]:
    return [one for one in outcome.exceptions if one["type"] not in CONSEQUENCES]


def _talks_elsewhere(outcome: Outcome) -> str:
    for one in outcome.exceptions:
        if "no swarm server answers at" in one["message"] or "does not answer" in one["message"]:
            return str(one["message"])
    return ""


def _blocked(outcome: Outcome) -> str:
    """Return the client's line that a thread hangs in; empty if its threads only wait for episodes."""
    for frames in outcome.stacks:
        if any("/ajet/" in frame["file"] and frame["function"] == "begin_episode" for frame in frames):
            continue
        inner = next(index for index, frame in enumerate(frames) if frame["own"])
        if any("thread_executors.py" in frame["file"] for frame in frames[:inner]):
            continue  # waits for its workers
        waits = any(frame["function"] in ("result", "shutdown", "as_completed", "join") for frame in frames[:inner])
        if waits and len(outcome.stacks) > 1:
            continue
        return _place(frames[inner])
    return ""


def _place(frame: dict[str, Any]) -> str:
    path = Path(frame["file"])
    with_cwd = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{with_cwd}:{frame['line']} in {frame['function']}"
