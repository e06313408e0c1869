"""The calls of SwanLab's API that a fetch needs, for new servers and old private ones.

Paths and bodies are those that the SDK (0.7.20 to 0.10.3) sends. A list that cannot be read to its
end raises: a part of it would be taken for the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from skillpack.metrics.credentials import without_secrets
from skillpack.metrics.session import CallFailed, Session
from skillpack.metrics.urls import Place

EXPORT_COLUMNS = 16
"""Columns that one export call takes at most."""
PAGE = 100
GONE = {404, 405, 501}
"""Statuses by which an old server says that it has no such route."""
HOUSE, COLUMN_CSV = "scalar/export", "column/csv"
"""The two full-resolution routes: batches of keys (servers since 2026), a file per key (before)."""


@dataclass
class Experiment:
    """A run as the server describes it; times are in ms, ``root`` are project and run id of a clone's origin."""

    place: Place
    cuid: str
    slug: str = ""
    name: str = ""
    state: str = ""
    created: int | None = None
    finished: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    root: tuple[str, str] | None = None
    project_id: str = ""

    @property
    def running(self) -> bool:
        """Whether more points may come."""
        return self.state.upper() == "RUNNING"

    @property
    def created_s(self) -> int:
        """Creation in seconds, the lower bound that House queries demand."""
        return (self.created or 0) // 1000


def find_experiment(session: Session, place: Place) -> Experiment:
    """Return the run at ``place``. Raises CallFailed (status 404: no such run)."""
    assert place.run is not None
    document = session.get(f"/project/{place.user}/{place.project}/runs/{quote(place.run, safe='')}")
    if not isinstance(document, dict) or not document.get("cuid"):
        raise CallFailed(f"the server's answer for run {place.run} is empty")
    return _experiment(place, document)


def list_experiments(session: Session, place: Place) -> list[Experiment]:
    """Return all runs of a project, as the server orders them. Raises CallFailed."""
    base = f"/project/{place.user}/{place.project}/runs"
    try:
        documents = list(_pages(session, base, {}))
    except CallFailed as failure:
        if failure.status not in GONE:
            raise
        documents = _flat(session.post(f"{base}/shows", {"filters": []}))
    found = [document for document in documents if isinstance(document, dict) and document.get("cuid")]
    return [_experiment(place.with_run(str(one.get("slug") or one["cuid"])), one) for one in found]


def list_keys(session: Session, run: Experiment, kind: str = "scalar") -> list[str]:
    """Return the run's keys of a kind (``scalar`` or ``media``), system keys included. Raises CallFailed."""
    project, experiment = run.root or (_project_id(session, run), run.cuid)
    reference = {"projectId": project, "experimentId": experiment, "createdAt": run.created_s}
    keys: list[str] = []
    cursor = ""
    try:
        while True:
            body = {"experiments": [reference], "limit": 2000, "cursor": cursor}
            page = session.post(f"/house/metrics/{kind}/keys", body)
            if not isinstance(page, dict):
                raise CallFailed(f"the list of {kind} keys is empty at cursor {cursor!r}: {page!r}")
            keys += [key for key in _items(page.get("keys")) if isinstance(key, str)]
            following = page.get("nextCursor") or ""
            if not page.get("hasMore"):
                return list(dict.fromkeys(keys))
            if not following or following == cursor:
                raise CallFailed(f"the list of {kind} keys breaks off after {len(keys)}")
            cursor = following
    except CallFailed as failure:
        if failure.status not in GONE:
            raise
    columns = list(_pages(session, f"/experiment/{run.cuid}/column", {}))
    if not columns and run.root:
        columns = list(_pages(session, f"/experiment/{run.root[1]}/column", {}))
    fitting = [column for column in columns if (column.get("type") in SCALAR_TYPES) == (kind == "scalar")]
    return list(dict.fromkeys(column["key"] for column in fitting if isinstance(column.get("key"), str)))


SCALAR_TYPES = {"FLOAT", "SCALAR", None, ""}


def last_points(session: Session, run: Experiment, keys: Sequence[str]) -> dict[str, tuple[int, float | None]] | None:
    """Return step and value of each key's last point (a key without points has none), or None if not told.

    It is what the exported series are checked against, so a server that lacks it is no failure.
    """
    try:
        body = {
            "projectId": _project_id(session, run),
            "xType": "step",
            "range": [0, 0],
            "columns": [_column(run, key) for key in keys],
            "num": 1500,
        }
        entries = session.post("/house/metrics/scalar/value", body)
    except CallFailed:
        return None
    if not isinstance(entries, list):
        return None
    latest = {}
    for entry in entries:
        point = entry.get("latest") if isinstance(entry, dict) else None
        if isinstance(point, dict) and isinstance(point.get("index"), int) and isinstance(entry.get("key"), str):
            latest[entry["key"]] = (point["index"], _number(point.get("data")))
    return latest


def export_link(session: Session, run: Experiment, keys: Sequence[str]) -> str:
    """Have up to 16 keys exported in one CSV file; return its link, which lives for some minutes. Raises CallFailed."""
    columns = [{"experimentName": run.name or run.cuid, **_column(run, key)} for key in keys]
    answer = session.post("/house/metrics/scalar/export", {"projectId": _project_id(session, run), "columns": columns})
    key = answer.get("cosKey") if isinstance(answer, dict) else None
    if not key:
        raise CallFailed("the export answers without a file")
    links = session.post("/files/presigned/get", {"paths": [key]})
    urls = _items(links.get("urls") if isinstance(links, dict) else None)
    return _absolute(session, urls[0] if urls else "")


def column_link(session: Session, run: Experiment, key: str) -> str:
    """Have one key exported by the route of old servers; return the file's link. Raises CallFailed."""
    try:
        answer = session.get(f"/experiment/{run.cuid}/column/csv", {"key": key})
    except CallFailed as failure:
        if not run.root or failure.status not in GONE:
            raise
        answer = session.get(f"/experiment/{run.root[1]}/column/csv", {"key": key})
    if isinstance(answer, list):
        answer = answer[0] if answer else None
    if isinstance(answer, dict) and isinstance(answer.get("data"), dict):
        answer = answer["data"]
    return _absolute(session, answer.get("url") if isinstance(answer, dict) else None)


def _items(value: Any) -> list[Any]:
    """Return a list as it is, and nothing for null or what should have been a list."""
    return value if isinstance(value, list) else []


def _absolute(session: Session, link: Any) -> str:
    """Complete a link that self-hosted servers give without their origin."""
    if not link or not isinstance(link, str):
        raise CallFailed("the server gives no download link")
    whole = urljoin(session.api + "/", link)
    if urlsplit(whole).scheme not in ("http", "https"):
        raise CallFailed(f"the download link is no web address but {urlsplit(whole).scheme}:")
    return whole


def _column(run: Experiment, key: str) -> dict[str, Any]:
    column: dict[str, Any] = {"experimentId": run.cuid, "key": key, "createdAt": run.created_s}
    if run.root:
        column["rootProId"], column["rootExpId"] = run.root
    return column


def _project_id(session: Session, run: Experiment) -> str:
    if not run.project_id:
        document = session.get(f"/project/{run.place.user}/{run.place.project}")
        run.project_id = str(document.get("cuid") or "") if isinstance(document, dict) else ""
    return run.project_id


def _pages(session: Session, path: str, params: dict[str, Any]) -> Iterable[dict[str, Any]]:
    page, seen = 1, 0
    while True:
        answer = session.get(path, {**params, "page": page, "size": PAGE})
        if not isinstance(answer, dict) or not isinstance(answer.get("list"), list):
            if answer is None and page == 1:
                return
            raise CallFailed(f"{path}: page {page} has no list")
        yield from (item for item in answer["list"] if isinstance(item, dict))
        seen += len(answer["list"])
        if page >= (_number(answer.get("pages")) or 1) or not answer["list"]:
            total = int(_number(answer.get("total")) or seen)
            if seen < total:
                raise CallFailed(f"{path}: {seen} of {total} entries came")
            return
        page += 1


def _flat(documents: Any) -> list[Any]:
    """Flatten the runs of a project that is grouped in its web view."""
    if isinstance(documents, dict):
        documents = list(documents.values())
    if not isinstance(documents, list):
        return []
    return [one for item in documents for one in (_flat(item) if _is_group(item) else [item])]


def _is_group(item: Any) -> bool:
    return isinstance(item, list) or (isinstance(item, dict) and "cuid" not in item)


def _experiment(place: Place, document: dict[str, Any]) -> Experiment:
    root = (document.get("rootProId"), document.get("rootExpId"))
    profile = document.get("profile")
    config = profile.get("config") if isinstance(profile, dict) else None
    finished = document.get("finishedAt")
    return Experiment(
        place=place,
        cuid=str(document["cuid"]),
        slug=str(document.get("slug") or ""),
        name=str(document.get("name") or ""),
        state=str(document.get("state") or ""),
        created=_milliseconds(document.get("createdAt")),
        finished=str(finished) if finished else None,
        config=without_secrets(unwrapped(config if isinstance(config, dict) else {})),
        root=(str(root[0]), str(root[1])) if all(root) else None,
        project_id=str(document.get("project_id") or ""),
    )


def unwrapped(config: Any) -> Any:
    """Take the values out of SwanLab's ``{"value", "desc", "sort"}`` wrapping, at any depth."""
    if isinstance(config, dict):
        if "value" in config and config.keys() <= {"value", "desc", "sort"}:
            return unwrapped(config["value"])
        return {str(key): unwrapped(value) for key, value in config.items()}
    if isinstance(config, list):
        return [unwrapped(item) for item in config]
    return config


def _milliseconds(moment: Any) -> int | None:
    """Read a time given as ISO 8601, in seconds or in milliseconds."""
    if isinstance(moment, (int, float)) or (isinstance(moment, str) and moment.isdigit()):
        number = float(moment)
        return int(number * 1000 if number < 1e11 else number)
    try:
        parsed = datetime.fromisoformat(str(moment).replace("Z", "+00:00"))
    except ValueError:
        return None
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)).timestamp() * 1000)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
