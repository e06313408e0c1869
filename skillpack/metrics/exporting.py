"""Export the points of a run's keys, and notice what is not as it should be.

The server's answer is never taken on trust: an export can be refused, cut off, out of date, without
a column or in another order, and the SDK's own methods hand all of this on as an empty list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from skillpack.metrics import experiment as api
from skillpack.metrics.export_csv import Export, read_export
from skillpack.metrics.series import KeyStatus, Series
from skillpack.metrics.session import CallFailed, Session

EXPIRED = {403, 404, 410}
"""Statuses of an object store whose link has run out."""

LastPoints = dict[str, tuple[int, "float | None"]]
Progress = Callable[[int, int], None]


class Exporter:
    """Exports one run's keys, 16 to a file, and checks what comes."""

    def __init__(self, session: Session, run: api.Experiment, downloads: Any, workers: int, progress: Progress) -> None:
        """``downloads`` is a ``download_session``; ``workers`` exports run at a time."""
        self.session = session
        self.run = run
        self.workers = workers
        self.progress = progress
        self._downloads = downloads

    @property
    def path(self) -> str:
        """Say which way the points came."""
        route = self.session.route or api.HOUSE
        detail = f"{api.EXPORT_COLUMNS} keys per file" if route == api.HOUSE else "a file per key"
        return f"swanlab {self.session.sdk_version} client, {route} ({detail})"

    def fetch(self, keys: Sequence[str], status: dict[str, KeyStatus]) -> dict[str, Series]:
        """Return the series of ``keys``; those that failed or are empty are marked in ``status``."""
        parts = [keys[start : start + api.EXPORT_COLUMNS] for start in range(0, len(keys), api.EXPORT_COLUMNS)]
        self.progress(len(keys), 0)
        series: dict[str, Series] = {}

        def one(part: Sequence[str]) -> tuple[Export, dict[str, str], LastPoints | None]:
            export, failures = self._batch(part)
            last = api.last_points(self.session, self.run, part)
            self._retry_incomplete(export, failures, last)
            self.progress(0, len(part))
            return export, failures, last

        with ThreadPoolExecutor(max(1, min(self.workers, len(parts)))) as pool:
            for export, failures, last in pool.map(one, parts):
                series.update(export.series)
                self._judge(export, failures, last, status)
        return series

    def _batch(self, keys: Sequence[str]) -> tuple[Export, dict[str, str]]:
        """Export some keys; return what came and, per key, why it did not."""
        try:
            export = self._export(keys)
        except CallFailed as failure:
            if len(keys) == 1 or failure.passing or failure.status in (401, 403):
                return Export(), dict.fromkeys(keys, str(failure))
            return self._one_by_one(keys)  # a single bad key spoils a batch
        failures: dict[str, str] = {}
        if export.cut:
            failures = dict.fromkeys(export.series, export.cut)
        failures.update(export.unreadable)
        if export.without_column and len(keys) > 1:
            further, reasons = self._one_by_one(export.without_column)
            export.series.update(further.series)
            export.without_column = further.without_column
            failures.update(reasons)
        return export, failures

    def _one_by_one(self, keys: Sequence[str]) -> tuple[Export, dict[str, str]]:
        whole, failures = Export(), {}
        for key in keys:
            export, reasons = self._batch([key])
            whole.series.update(export.series)
            whole.without_column += export.without_column
            failures.update(reasons)
        return whole, failures

    def _export(self, keys: Sequence[str]) -> Export:
        """Export and download, with a new link where one has run out or the file is cut off."""
        attempt = 0
        while True:
            if self.session.route == api.COLUMN_CSV and len(keys) > 1:
                raise CallFailed("this server exports one key at a time")
            link = self._link(keys)
            try:
                export = read_export(self._downloads, link, self.run.name or self.run.cuid, keys)
                if not export.cut or attempt:
                    return export
                reason = export.cut
            except CallFailed as failure:
                if attempt >= self.session.retries.times or not (failure.passing or failure.status in EXPIRED):
                    raise
                if failure.status in EXPIRED and attempt:
                    raise  # not the link's age, then
                reason = str(failure)
            attempt += 1
            wait = self.session.retries.wait(attempt)
            self.session.note(f"{reason}; exporting again in {wait:.1f} s")
            time.sleep(wait)

    def _link(self, keys: Sequence[str]) -> str:
        if self.session.route != api.COLUMN_CSV:
            try:
                return api.export_link(self.session, self.run, keys)
            except CallFailed as failure:
                if failure.status not in api.GONE or len(keys) > 1:
                    raise
        link = api.column_link(self.session, self.run, keys[0])
        self.session.route = api.COLUMN_CSV
        return link

    def _retry_incomplete(self, export: Export, failures: dict[str, str], last: LastPoints | None) -> None:
        """Export keys again, once and alone, that end before the run's last step."""
        for key in [key for key in export.series if key not in failures and self._shortfall(export.series[key], last)]:
            again, reasons = self._batch([key])
            export.series.update(again.series)
            failures.update(reasons)

    def _shortfall(self, series: Series, last: LastPoints | None) -> str:
        """Say what is missing at the end of a series of a run that has ended."""
        if self.run.running or not last or series.key not in last:
            return ""
        step = last[series.key][0]
        if len(series) and series.steps[-1] >= step:
            return ""
        end = f"ends at step {series.steps[-1]}" if len(series) else "is empty"
        return f"incomplete: the export {end}, but the last logged step is {step}"

    def _judge(
        self,
        export: Export,
        failures: dict[str, str],
        last: LastPoints | None,
        status: dict[str, KeyStatus],
    ) -> None:
        for key in export.without_column:
            one = status[key]
            if last is not None and key not in last:
                one.state, one.why = "empty", "the key exists, but nothing was logged to it"
            else:
                one.state, one.why = "failed", "the export has no column for it"
        for key, series in export.series.items():
            one = status[key]
            one.verified = last is not None and key in last
            shortfall = self._shortfall(series, last)
            if shortfall and key not in failures:
                one.state, one.why = "failed", shortfall
        for key, why in failures.items():
            status[key].state, status[key].why = "failed", why
