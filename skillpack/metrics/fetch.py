"""Fetch the full-resolution curves of SwanLab runs and say for each key what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from skillpack.metrics import experiment as api
from skillpack.metrics.cache import Cache
from skillpack.metrics.credentials import find_key
from skillpack.metrics.export_csv import download_session
from skillpack.metrics.exporting import Exporter, LastPoints, Progress
from skillpack.metrics.select import Choice, choose, expected_states, is_pattern, requested
from skillpack.metrics.series import KeyStatus, RunMetrics, Series, iso
from skillpack.metrics.session import CallFailed, Note, Retries, Session
from skillpack.metrics.urls import Place, parse_place
from skillpack.metrics.window import Window, settle
from skillpack.script import NO, BadInput, ScriptError, Unavailable


class RunNotFetched(ScriptError):
    """The server refuses the run or does not know it (exit code 1)."""

    exit_code = NO


@dataclass
class Options:
    """How to fetch. ``note`` takes a line about a retry, ``progress`` how many keys more are to come and have come.

    ``media`` lists the run's media keys in ``meta``; ``host`` serves paths without one.
    """

    duplicates: Literal["first", "last"] = "first"
    cache: bool = True
    refresh: bool = False
    offline: bool = False
    workers: int = 4
    retries: Retries = field(default_factory=Retries)
    host: str | None = None
    media: bool = False
    cache_root: Path | None = None
    note: Note = lambda text: None
    progress: Progress = lambda to_come, done: None


def fetch_run(
    url: str, keys: str | Sequence[str] | None = None, *, window: Window | None = None, **options: Any
) -> RunMetrics:
    """Fetch one run.

    ``url`` is a run page in any shape, or ``user/project/run``. ``keys`` are names, aliases or
    patterns, as a list or as one string with commas; None means all of the run's own keys.
    ``window`` chooses the axis and a range; ``options`` are the fields of ``Options``.

    Returns the series with a state for each key: nothing is left out without being named there.
    Raises BadInput (no run address), Unavailable (no key, host or network) and RunNotFetched.
    """
    place = parse_place(url, host=options.get("host"))
    if place.run is None:
        raise BadInput(
            f"{place.url} is a project, not a run",
            expected="the address of one run",
            hint="fetch_runs([url]) for all of its runs",
        )
    return Fetcher(Options(**options)).run(place, keys, window or Window())


def fetch_runs(
    urls: Iterable[str],
    keys: str | Sequence[str] | None = None,
    *,
    window: Window | None = None,
    only: str = "*",
    most: int = 50,
    **options: Any,
) -> list[RunMetrics]:
    """Fetch many runs; a project's address stands for all of its runs whose name or id matches ``only``.

    A run that cannot be had is in the result with a single status that says why. Raises BadInput,
    also where a project has more than ``most`` matching runs, and Unavailable.
    """
    fetcher = Fetcher(Options(**options))
    places = fetcher.expand([parse_place(url, host=options.get("host")) for url in urls], only, most)
    return fetcher.runs(places, keys, window or Window())


class Fetcher:
    """Fetches runs with one set of options; logs in to each host once."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._sessions: dict[str, Session] = {}
        self._downloads = download_session() if not options.offline else None

    def session(self, origin: str) -> Session:
        """Return the session with an API origin. Raises Unavailable, also where the options forbid the network."""
        if self.options.offline:
            raise Unavailable(
                f"{origin} is not asked", expected="no --offline", hint="give runs, one by one, by address"
            )
        if origin not in self._sessions:
            self._sessions[origin] = Session(origin, find_key(origin), self.options.retries, self.options.note)
        return self._sessions[origin]

    def expand(self, places: Iterable[Place], only: str = "*", most: int = 50) -> list[Place]:
        """Replace projects by their runs. Raises BadInput, RunNotFetched and Unavailable."""
        found: list[Place] = []
        for place in places:
            if place.run is not None:
                found.append(place)
                continue
            every = self.list_runs(place)
            runs = [run for run in every if any(fnmatchcase(n, only) for n in (run.name, run.cuid, run.slug) if n)]
            if not runs:
                raise RunNotFetched(
                    f"{place.url} has {len(every)} runs" + (f", none of them matches {only!r}" if every else "")
                )
            if len(runs) > most:
                raise BadInput(
                    f"{place.url} has {len(runs)} runs" + (f" that match {only!r}" if only != "*" else ""),
                    expected=f"at most {most} runs at a time",
                    hint=f"--only 'PATTERN' for some of them, --most {len(runs)} for all",
                )
            found += [run.place for run in runs]
        return list(dict.fromkeys(found))

    def list_runs(self, place: Place) -> list[api.Experiment]:
        """Return a project's runs. Raises RunNotFetched and Unavailable."""
        session = self.session(place.api)
        try:
            return api.list_experiments(session, place)
        except CallFailed as failure:
            raise _refusal(place, failure) from None

    def runs(self, places: Sequence[Place], keys: str | Sequence[str] | None, window: Window) -> list[RunMetrics]:
        """Fetch runs side by side, in the order given; see ``fetch_runs``."""
        if len(places) == 1:
            return [self._run_or_reason(places[0], keys, window)]
        for origin in {place.api for place in places if not self.options.offline}:
            self.session(origin)
        with ThreadPoolExecutor(self.options.workers) as pool:
            return list(pool.map(lambda place: self._run_or_reason(place, keys, window, workers=1), places))

    def run(
        self, place: Place, keys: str | Sequence[str] | None, window: Window, *, workers: int | None = None
    ) -> RunMetrics:
        """Fetch one run; see ``fetch_run``."""
        run, available, listing = self._find(place)
        asked = requested(keys, available or [], window.key)
        choices = choose(asked, available) if available is not None else [Choice(name, [name]) for name in asked or []]
        status = expected_states(choices)
        self._recognize_media(run, status)
        if available is None:
            self._judge_unlisted(status, asked, listing)
        wanted = [key for key, one in status.items() if one.state == "ok"]
        series = self._cached(run, wanted)
        from_cache = len(series)
        missing = [key for key in wanted if key not in series]
        path = "cache"
        if missing and self.options.offline:
            for key in missing:
                status[key].state, status[key].why = "failed", "not in the cache, and --offline forbids fetching it"
        elif missing:
            exporter = Exporter(
                self.session(place.api), run, self._downloads, workers or self.options.workers, self.options.progress
            )
            series.update(exporter.fetch(missing, status))
            path = exporter.path
            self._keep(run, available or missing, [series[key] for key in missing if status[key].ok])
        metrics = RunMetrics({key: series[key] for key in status if key in series}, status, {}, window.x)
        settle(metrics, window, self.options.duplicates)
        metrics.meta = self._meta(run, choices, metrics, path, from_cache, window)
        if self.options.media and not self.options.offline:
            metrics.meta["media_keys"] = self._media_keys(run)
        return metrics

    def keys(self, place: Place) -> tuple[api.Experiment, list[str], list[str], LastPoints]:
        """Return a run, its scalar keys, its media keys and the last point of each scalar key that has one.

        Raises RunNotFetched, also where the list cannot be read to its end, and Unavailable.
        """
        session = self.session(place.api)
        try:
            run = api.find_experiment(session, place)
            scalar = api.list_keys(session, run)
        except CallFailed as failure:
            raise _refusal(place, failure) from None
        last: LastPoints = {}
        for start in range(0, len(scalar), api.EXPORT_COLUMNS):
            last.update(api.last_points(session, run, scalar[start : start + api.EXPORT_COLUMNS]) or {})
        return run, scalar, self._media_keys(run), last

    def _find(self, place: Place) -> tuple[api.Experiment, list[str] | None, str]:
        """Return the run, its keys (None: they cannot be listed) and why not."""
        if self.options.offline:
            known = self._cache(place).remembered(place)
            if known is None:
                raise Unavailable(f"{place.url} is not in the cache", hint="fetch it once without --offline")
            return *known, ""
        session = self.session(place.api)
        try:
            run = api.find_experiment(session, place)
        except CallFailed as failure:
            raise _refusal(place, failure) from None
        try:
            return run, api.list_keys(session, run), ""
        except CallFailed as failure:
            return run, None, str(failure)

    def _media_keys(self, run: api.Experiment) -> list[str]:
        """Return the run's media keys; that they cannot be listed is worth a note only."""
        try:
            return api.list_keys(self.session(run.place.api), run, "media")
        except CallFailed as failure:
            self.options.note(f"media keys not listed: {failure}")
            return []

    def _recognize_media(self, run: api.Experiment, status: dict[str, KeyStatus]) -> None:
        """Say so where a name that is no scalar key is one of images, audio, text or tables."""
        missing = [one for one in status.values() if one.state == "missing" and not is_pattern(one.key)]
        if not missing or self.options.offline:
            return
        media = self._media_keys(run)  # where they cannot be had it stays "missing", which is true too
        for one in missing:
            if one.key in media:
                one.state, one.why = "failed", "a media key (images, audio, text, tables): it has no curve"
                one.did_you_mean = []

    @staticmethod
    def _judge_unlisted(status: dict[str, KeyStatus], asked: Sequence[str] | None, listing: str) -> None:
        """Where keys cannot be listed, exact names are tried all the same; the rest has failed."""
        why = f"the run's keys cannot be listed: {listing}"
        if asked is None:
            status["*"] = KeyStatus("*", "failed", "*", why)
        for key, one in status.items():
            if is_pattern(key):
                one.state, one.why = "failed", why

    def _cache(self, place: Place) -> Cache:
        return Cache(place, self.options.cache_root)

    def _cached(self, run: api.Experiment, keys: Iterable[str]) -> dict[str, Series]:
        options = self.options
        if not options.offline and (options.refresh or not options.cache):
            return {}
        cache = self._cache(run.place)
        loaded = {key: cache.load(run, key, any_state=options.offline) for key in keys}
        return {key: series for key, series in loaded.items() if series is not None}

    def _keep(self, run: api.Experiment, keys: Sequence[str], series: Sequence[Series]) -> None:
        if self.options.cache:
            self._cache(run.place).store(run, keys, series)

    def _run_or_reason(
        self, place: Place, keys: str | Sequence[str] | None, window: Window, workers: int | None = None
    ) -> RunMetrics:
        try:
            return self.run(place, keys, window, workers=workers)
        except RunNotFetched as error:
            reason = KeyStatus("*", "failed", "*", error.message)
            return RunMetrics({}, {"*": reason}, {"url": place.url, "run_id": place.run, "error": error.message})

    def _meta(
        self,
        run: api.Experiment,
        choices: Sequence[Choice],
        metrics: RunMetrics,
        path: str,
        from_cache: int,
        window: Window,
    ) -> dict[str, Any]:
        session = self._sessions.get(run.place.api)
        return {
            "url": run.place.url,
            "run_id": run.cuid,
            "name": run.name,
            "state": run.state,
            "running": run.running,
            "project": f"{run.place.user}/{run.place.project}",
            "created": iso(run.created),
            "finished": run.finished,
            "clone_of": run.root[1] if run.root else None,
            "config": run.config,
            "sdk": f"swanlab {session.sdk_version}" if session else None,
            "path": path,
            "sampled": False,
            "points": sum(len(series) for series in metrics.series.values()),
            "steps": len(metrics.steps),
            "from_cache": from_cache,
            "duplicates_kept": self.options.duplicates,
            "x": window.x,
            "window": window.document(),
            "aliases": {choice.asked: choice.keys[0] for choice in choices if choice.alias},
            "fetched": datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z"),
        }


def _refusal(place: Place, failure: CallFailed) -> ScriptError:
    """Tell a server that cannot be used from one that refuses this run."""
    if failure.passing or failure.status == 401:
        return Unavailable(f"{place.api} does not answer: {failure}", hint="try again later")
    if failure.status == 404:
        return RunNotFetched(
            f"{place.url} is not found ({failure})",
            expected="an address whose run exists and that this key may see",
            hint="open it in the browser; a blank in a run id is written %20",
        )
    return RunNotFetched(f"{place.url} cannot be read: {failure}")
