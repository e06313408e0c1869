"""Validate skills: read each, ask the models of the clients, run the checks, leave out what is ignored."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from skillpack.validate.checks import CHECKS
from skillpack.validate.checks.skill import Skill
from skillpack.validate.clients import CLIENTS, read_all
from skillpack.validate.clients.reading import Reading
from skillpack.validate.discover import SkillFolder
from skillpack.validate.outcome import Outcome
from skillpack.validate.problems import Problem, SkillReport, left_out, problem
from skillpack.validate.rules import rule
from skillpack.validate.source import read_skill

MANY = 1500
"""Files, SKILL.md included, from which on starting processes pays."""

BATCH, MAX_WORKERS = 300, 8
"""Files that a process is given at a time, and processes."""
MAX_ALIKE = 100
"""Problems of one skill under one rule that are told one by one."""


def check_skills(folders: Iterable[SkillFolder], clients: Sequence[str] = tuple(CLIENTS)) -> Outcome:
    """Return the reports on skills that belong together, without their scripts run."""
    return Outcome(_reports(folders, clients))


def _reports(folders: Iterable[SkillFolder], clients: Sequence[str]) -> Iterator[SkillReport]:
    """Yield the report on each folder, in order; from ``MANY`` files on, several processes share the work."""
    waiting = iter(folders)
    first = _take(waiting, MANY)
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if workers < 2 or sum(len(folder.files) for folder in first) < MANY:
        for folder in chain(first, waiting):
            yield check_skill(folder, clients)
        return
    from concurrent.futures import Future, ProcessPoolExecutor

    rest = chain(first, waiting)
    batches = iter(lambda: _take(rest, BATCH), [])
    with ProcessPoolExecutor(min(workers, MAX_WORKERS)) as pool:
        running: deque[Future[list[SkillReport]]] = deque()
        for batch in batches:
            running.append(pool.submit(_check_batch, batch, clients))
            if len(running) > 2 * MAX_WORKERS:
                yield from running.popleft().result()
        while running:
            yield from running.popleft().result()


def _take(folders: Iterator[SkillFolder], files: int) -> list[SkillFolder]:
    """Return the next folders that have so many files together, or all that are left."""
    taken: list[SkillFolder] = []
    for folder in folders:
        taken.append(folder)
        files -= len(folder.files)
        if files <= 0:
            break
    return taken


def _check_batch(folders: list[SkillFolder], clients: Sequence[str]) -> list[SkillReport]:
    return [check_skill(folder, clients) for folder in folders]


def check_skill(folder: SkillFolder, clients: Sequence[str] = tuple(CLIENTS)) -> SkillReport:
    """Return the report on one skill, without what needs the other skills or its scripts run."""
    skill = Skill(read_skill(folder))
    readings = read_all(skill.source, clients)
    problems = list(client_problems(readings, folder.file_name))
    if not skill.source.unreadable:
        for check in CHECKS:
            problems += (found for found in check(skill) if not found.clients or set(found.clients) & set(clients))
    report = SkillReport(skill.name, folder.path, skill.description, skill.line("name"), skill.line("description"))
    report.clients = readings
    report.has_scripts = any(file.startswith("scripts/") for file in folder.files)
    report.ignored = skill.ignored(folder.file_name) or frozenset()
    report.problems, report.suppressed = _sift(problems, skill)
    return report


def client_problems(readings: dict[str, Reading], file: str) -> Iterator[Problem]:
    """Yield one problem for each rule and line that clients give as a reason."""
    found: dict[tuple[str, int], dict[str, list[str]]] = {}
    grave: set[tuple[str, int]] = set()
    for client, reading in readings.items():
        for reason in reading.reasons:
            key = (reason.rule, reason.line)
            found.setdefault(key, {}).setdefault(reason.text, []).append(client)
            if reason.rejects or reason.lost:
                grave.add(key)
    for (name, line), texts in found.items():
        severity = rule(name).severity
        if severity == "error" and (name, line) not in grave:
            severity = "warn"
        detail = "; ".join(f"{', '.join(clients)}: {text}" for text, clients in texts.items())
        involved = tuple(dict.fromkeys(client for clients in texts.values() for client in clients))
        yield problem(name, detail, line=line, file=file, severity=severity, clients=involved)


def _sift(problems: Iterable[Problem], skill: Skill) -> tuple[list[Problem], int]:
    """Return the problems that their files do not ask to be left out, gravest first, and how many were."""
    kept, suppressed = [], 0
    for found in dict.fromkeys(problems):
        marks = skill.ignored(found.file)
        if marks and left_out(found.rule, marks):
            suppressed += 1
        else:
            kept.append(found)
    return sorted(_few_alike(kept), key=Problem.order), suppressed


def _few_alike(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Yield problems; of those under one rule ``MAX_ALIKE``, the last of them with the number that is left out."""
    alike = Counter(found.rule for found in problems)
    told: Counter[str] = Counter()
    for found in problems:
        told[found.rule] += 1
        more = alike[found.rule] - MAX_ALIKE
        if told[found.rule] < MAX_ALIKE or (told[found.rule] == MAX_ALIKE and not more):
            yield found
        elif told[found.rule] == MAX_ALIKE:
            yield replace(found, message=f"{found.message} (and {more} more under this rule)")
