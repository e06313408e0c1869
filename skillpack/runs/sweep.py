"""Many runs over a queue of slots. What is known about each lies in its own directory, so a sweep has no state."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from skillpack.blueprint.model import Blueprint, read_blueprint
from skillpack.runs.gpus import leased, read_gpus
from skillpack.runs.preconditions import Refused
from skillpack.runs.rundir import RunDir, locked
from skillpack.runs.start import Options, restart_run, start_run
from skillpack.runs.status import Status, observe
from skillpack.script import BadInput, ScriptError

LOOK_EVERY = 0.5
AGAIN = ("failed", "lost")
"""States after which a run is tried again; one that was stopped or ran out of time is not."""


@dataclass
class Entry:
    """One blueprint of a sweep: its run's status, None before it was started, and what kept it from starting."""

    blueprint: Blueprint
    run: RunDir
    status: Status | None = None
    trouble: str = ""
    waits: bool = False
    """Whether the trouble may end with another run of the sweep (two servers of one port, say)."""

    @property
    def state(self) -> str:
        """The run's state, ``waiting`` before its start, ``refused`` if it cannot be started."""
        return "refused" if self.trouble else self.status.state if self.status else "waiting"

    def wants(self, retries: int) -> bool:
        """Tell whether the run shall be started, for the first time or again."""
        if self.trouble or self.run.finish_flag.exists():
            return False
        return self.status is None or (self.status.state in AGAIN and self.status.record["attempt"] <= retries)


@dataclass(frozen=True)
class Slots:
    """Where runs go: the GPUs of each slot (None: no GPUs of its own)."""

    gpus: tuple[str | None, ...]

    @classmethod
    def read(cls, slots: str | None, jobs: int | None) -> Slots:
        """Return the slots of ``0,1;2,3``, or so many without GPUs. Raises BadInput for no GPU, or one in two slots."""
        if slots is None:
            return cls((None,) * (jobs or 1))
        named = [read_gpus(slot) for slot in slots.split(";")]
        every = [gpu for slot in named for gpu in slot.split(",")]
        if "" in named or len(set(every)) != len(every):
            raise BadInput(f"--slots {slots}: a slot is empty, or a GPU is in two", expected='such as "0,1;2,3"')
        return cls(tuple(named))

    def free(self, entries: Sequence[Entry]) -> list[str | None]:
        """Return the slots that no living run of the sweep, and no lease of another one, holds."""
        taken = [entry.status.record["spec"]["gpus"] for entry in entries if entry.status and entry.status.alive]
        left = list(self.gpus)
        for gpus in taken:
            if gpus in left:
                left.remove(gpus)
            elif left and None in left:
                left.remove(None)
        return [gpus for gpus in left if gpus is None or not leased(gpus)]


def entries_of(paths: Sequence[Path]) -> list[Entry]:
    """Return the blueprints that paths name (files, or folders with ``*.md``). Raises BadInput.

    Two blueprints with one result directory are refused: their runs would be one.
    """
    files: list[Path] = []
    for path in paths:
        files += sorted(path.expanduser().glob("*.md")) if path.expanduser().is_dir() else [path]
    entries: list[Entry] = []
    for file in files:
        blueprint = read_blueprint(file)
        if blueprint.result_dir is None:
            raise BadInput(f"{file} has no exp_result_dir", hint="scripts/blueprint.py lint BLUEPRINT")
        same = [entry for entry in entries if entry.run.path == blueprint.result_dir]
        if same:
            raise BadInput(
                f"{same[0].blueprint.source} and {file} have the same exp_result_dir", expected="one directory per run"
            )
        entries.append(Entry(blueprint, RunDir(blueprint.result_dir)))
    if not entries:
        raise BadInput(f"no blueprint in {', '.join(map(str, paths))}", expected="Markdown files")
    look(entries)
    return entries


def look(entries: Sequence[Entry]) -> None:
    """Find out the state of every run."""
    for entry in entries:
        entry.status = observe(entry.run) if entry.run.record.is_file() else None


def sweep(entries: list[Entry], slots: Slots, options: Options, *, seconds: float, retries: int, lock: Path) -> bool:
    """Start what fits and wait, for up to ``seconds`` or until nothing is left; tell whether something is left to do.

    Raises Refused if another sweep works on the same blueprints.
    """
    deadline = time.monotonic() + seconds
    alive = 0
    with locked(lock) as held:
        if held is None:
            raise Refused("another sweep works on these blueprints", hint="scripts/sweep.py status FOLDER")
        while True:
            look(entries)
            before, alive = alive, sum(bool(entry.status and entry.status.alive) for entry in entries)
            if alive < before:
                _ask_again(entries)
            for gpus in slots.free(entries):
                entry = next((one for one in entries if one.wants(retries)), None)
                if entry is not None:
                    _begin(entry, replace(options, gpus=gpus))
                    alive += bool(entry.status and entry.status.alive)
            left = any(entry.wants(retries) or (entry.status and entry.status.alive) for entry in entries)
            remaining = deadline - time.monotonic()
            if not left or remaining <= 0:
                return left
            time.sleep(min(LOOK_EVERY, remaining))


def _ask_again(entries: Sequence[Entry]) -> None:
    """Let runs that were refused try again: what they ran into may have gone with a run that ended."""
    for entry in entries:
        if entry.waits:
            entry.trouble, entry.waits = "", False


def _begin(entry: Entry, options: Options) -> None:
    """Start a run, or start it again; what refuses it is noted and does not stop the sweep."""
    try:
        if entry.status is None:
            entry.status = start_run(entry.blueprint, options)
        else:
            from skillpack.runs.attempts import note_attempt

            note = partial(note_attempt, entry.run, entry.status, [], "the same again", "the sweep retries")
            entry.status = restart_run(entry.run, entry.blueprint, options, note=note)
    except ScriptError as error:
        entry.trouble, entry.waits = error.message, isinstance(error, Refused)


def table(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return a row per blueprint: state, attempt, GPUs, steps, last reward, seconds."""
    from skillpack.runs.present import latest_metrics
    from skillpack.runs.progress import Progress

    rows = []
    for entry in entries:
        row: dict[str, Any] = {
            "blueprint": str(entry.blueprint.source),
            "dir": str(entry.run.path),
            "state": entry.state,
        }
        row |= {"reason": entry.trouble, "attempt": 0, "gpus": None, "step": None, "reward": None, "seconds": None}
        if entry.status:
            progress = Progress.of(entry.run, entry.status.record)
            progress.refresh(whole=not entry.status.alive)
            latest = latest_metrics(progress)
            row |= {
                "reason": entry.trouble or entry.status.reason,
                "attempt": entry.status.record["attempt"],
                "gpus": entry.status.record["spec"]["gpus"],
                "step": progress.main.last_step,
                "reward": latest.get("critic/rewards/mean", latest.get("critic/score/mean")),
                "seconds": entry.status.elapsed(),
            }
        rows.append(row)
    return rows
