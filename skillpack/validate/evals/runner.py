"""Run the cases of skills in parallel, each in scratch folders of its own."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillpack.validate.evals import confine, fixtures, judge, launch, supervisor
from skillpack.validate.evals.cases import FILE, Case, explicit_cases, implicit_cases
from skillpack.validate.evals.document import EvalsError
from skillpack.validate.evals.outside import Outside
from skillpack.validate.evals.scratch import RECORD, Scratch, changes, inventory, remove_tree, shim
from skillpack.validate.evals.supervised import Supervised


@dataclass(frozen=True)
class CaseResult:
    """How a case ended.

    ``seconds`` is how long its command took; ``why`` is empty if it is ok; ``file`` and ``line``
    say where in the skill the case is written down. ``command`` runs it again from the skill's
    folder; it is empty if the cases could not be read. ``advice`` is what could be better though
    nothing is wrong.
    """

    case: str
    command: str
    ok: bool
    exit_code: int | None
    seconds: float
    why: str
    file: str
    line: int
    advice: str = ""


def run_scripts(
    skill_dirs: Sequence[Path], *, python: Path | None = None, jobs: int | None = None
) -> dict[Path, list[CaseResult]]:
    """Run the cases of every skill and return their results, per skill in the order of its file.

    Every script gets two cases of its own (its help, an unknown flag) before those of
    ``evals/scripts.yaml``. ``python`` runs the scripts (default: this interpreter); ``jobs`` cases
    run at a time (default: as many as there are cores). A fault in a skill is a result, never an
    exception. Nothing that was started outlives the call.
    """
    results: dict[Path, list[CaseResult | None]] = {}
    waiting: list[tuple[Path, int, Case]] = []
    for skill in skill_dirs:
        cases, fault = _cases(skill.resolve())
        results[skill] = [None] * len(cases) + ([fault] if fault else [])
        waiting += [(skill, position, case) for position, case in enumerate(cases)]
    waiting.sort(key=lambda item: item[2].engine)  # the engine boots while the others run
    if waiting:
        with _Run(python or Path(sys.executable), waiting) as run:
            for skill, position, result in run.results(jobs or len(_cores())):
                results[skill][position] = result
    return {skill: [result for result in found if result is not None] for skill, found in results.items()}


def _cases(skill: Path) -> tuple[list[Case], CaseResult | None]:
    cases = implicit_cases(skill)
    try:
        return cases + explicit_cases(skill), None
    except EvalsError as error:
        file = FILE.as_posix()
        return cases, CaseResult(file, "", False, None, 0.0, str(error), file, error.line)


def _cores() -> Sequence[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return range(os.cpu_count() or 1)


class _Run:
    """One run over all cases: its scratch folder, its workers and the shared engine."""

    def __init__(self, python: Path, waiting: Sequence[tuple[Path, int, Case]]) -> None:
        self.python = python
        self.waiting = deque(waiting)
        self.engine: Future[str] = Future()
        self.stopped = threading.Event()
        self.supervisors: set[Supervised] = set()

    def __enter__(self) -> _Run:
        self.root = Path(tempfile.mkdtemp(prefix="skills-")).resolve()
        self.bin = shim(self.root / "bin", self.python)
        return self

    def __exit__(self, *_: object) -> None:
        remove_tree(self.root)

    def results(self, jobs: int) -> list[tuple[Path, int, CaseResult]]:
        """Run all that waits, ``jobs`` at a time. Ctrl-C ends what runs before it is passed on."""
        needs_engine = any(case.engine for _, _, case in self.waiting)
        with ThreadPoolExecutor(min(jobs, len(self.waiting))) as pool:
            workers = [pool.submit(self._work, number) for number in range(min(jobs, len(self.waiting)))]
            try:
                if needs_engine:
                    self._with_engine(workers)
                wait(workers)
            except BaseException:
                self._interrupt(workers)
                raise
        return [found for worker in workers for found in worker.result()]

    def _with_engine(self, workers: Sequence[Future[Any]]) -> None:
        scratch = Scratch(self.root / "engine")
        try:
            with fixtures.engine(scratch.work, scratch.environment()) as url:
                self.engine.set_result(url)
                wait(workers)
        except fixtures.FixtureError as error:
            self.engine.set_exception(error)

    def _interrupt(self, workers: Sequence[Future[Any]]) -> None:
        self.stopped.set()
        self.engine.cancel()
        while wait(workers, timeout=0.1).not_done:
            for running in list(self.supervisors):
                running.kill()

    def _work(self, number: int) -> list[tuple[Path, int, CaseResult]]:
        found: list[tuple[Path, int, CaseResult]] = []
        with self._supervisor() as runner:
            while self.waiting and not self.stopped.is_set():
                with suppress(IndexError):  # another worker has taken the last
                    skill, position, case = self.waiting.popleft()
                    scratch = Scratch(self.root / f"{number}-{len(found)}")
                    found.append((skill, position, self._case(case, runner, scratch)))
        return found

    @contextmanager
    def _supervisor(self) -> Iterator[Supervised]:
        runner = Supervised(self.root)
        self.supervisors.add(runner)
        try:
            yield runner
        finally:
            self.supervisors.discard(runner)
            runner.stop()

    def _case(self, case: Case, runner: Supervised, scratch: Scratch) -> CaseResult:
        script, *arguments = case.commands[-1]
        shown = shlex.join([*launch.words(Path("scripts", script), "python3"), *arguments])
        try:
            values = {"work": str(scratch.work), "home": str(scratch.home), "skill": str(case.skill)}
            values["python"] = sys.executable
            if case.engine:
                values["engine_url"] = self.engine.result()
            if case.program is None:
                return self._commands(case, runner, scratch, values, shown)
            beside = Scratch(scratch.root.with_name(f"{scratch.root.name}-fixture"))
            program, *arguments = case.program.run
            command = [*launch.words(Path(program), sys.executable), *(_fill(word, values) for word in arguments)]
            with fixtures.program(command, case.program.ready, beside.work, beside.environment()) as url:
                return self._commands(case, runner, scratch, {**values, "fixture_url": url}, shown)
        except (fixtures.FixtureError, CancelledError, ValueError, OSError) as error:
            return CaseResult(case.name, shown, False, None, 0.0, str(error), case.file, case.line)
        finally:
            scratch.remove()

    def _commands(
        self, case: Case, runner: Supervised, scratch: Scratch, values: Mapping[str, str], shown: str
    ) -> CaseResult:
        """Run a case's commands; judge the last, and one before it only if it fails."""
        scratch.lay({name: _fill(text, values) for name, text in case.files.items()})
        env = scratch.environment(*case.stubs, self.bin)
        if not (case.skill / RECORD).exists():
            env["AGENTJET_SKILLS_PYTHON"] = sys.executable
        env |= {name: _fill(value, values) for name, value in case.env.items()}
        if case.stdin is not None:
            scratch.stdin.write_text(_fill(case.stdin, values), encoding="utf-8")
        how = confine.method()
        before = inventory(case.skill) if how == "none" else {}
        outside = self._outside(case, scratch) if how == "bwrap" else None
        for left, command in zip(range(len(case.commands) - 1, -1, -1), case.commands, strict=True):
            order = self._order(case, scratch, [_fill(word, values) for word in command], env, outside)
            outcome = runner.run({**order, "more": left > 0})
            if outcome["exit_code"] != 0 and left:
                runner.stop()
                stderr = judge.read(scratch.stderr)
                text = judge.why([f"`{shlex.join(command)}`, run before, ended with {outcome['exit_code']}"], stderr)
                return self._result(case, shown, outcome, text)
        written = scratch.strays()
        if outside is not None:
            written += outside.written()
        if how == "none":
            written += [str(case.skill / path) for path in changes(before, inventory(case.skill))]
        seen = judge.Run(
            outcome, judge.read(scratch.stdout), judge.read(scratch.stderr), scratch.root, tuple(written), how != "none"
        )
        found = judge.problems(case, seen)
        text = judge.why(found, seen.stderr) if found else ""
        return replace(self._result(case, shown, outcome, text), advice="; ".join(judge.advice(case, seen)))

    def _result(self, case: Case, shown: str, outcome: supervisor.Outcome, why: str) -> CaseResult:
        return CaseResult(
            case.name, shown, not why, outcome["exit_code"], outcome["seconds"], why, case.file, case.line
        )

    def _outside(self, case: Case, scratch: Scratch) -> Outside:
        return Outside(scratch.outside, case.skill, [scratch.root, self.python, *case.stubs])

    def _order(
        self, case: Case, scratch: Scratch, command: Sequence[str], env: Mapping[str, str], outside: Outside | None
    ) -> supervisor.Order:
        argv = [*launch.words(case.skill / "scripts" / command[0], str(self.python)), *command[1:]]
        if outside is not None:
            argv = [*confine.bwrap([scratch.root], outside.bwrap()), *argv]
        return supervisor.Order(
            argv=argv,
            cwd=str(scratch.work),
            env=env,
            stdin=str(scratch.stdin) if case.stdin is not None else None,
            stdout=str(scratch.stdout),
            stderr=str(scratch.stderr),
            timeout=case.timeout,
            writable=[str(scratch.root)] if confine.method() == "landlock" else None,
            background=case.background,
            more=False,
        )


def _fill(text: str, values: Mapping[str, str]) -> str:
    """Put the values in; braces that name none of them stay, for JSON has them too."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
