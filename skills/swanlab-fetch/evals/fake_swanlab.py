#!/usr/bin/env python3
"""A SwanLab on loopback that answers what the real SDK asks, with faults by switch.

Two listeners: the API, and an object store under another host name (``localhost``), as presigned
links lead away from the API. ``seen`` keeps what each was sent. Only the standard library is used.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from sample_runs import Run, sample_project

API_KEY = "Abc0123456789Def01234"
SID = "sid-0f9a7c51e2"


@dataclass
class Seen:
    """One request as it arrived; ``host`` is ``api`` or ``store``."""

    host: str
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Fault:
    """What to answer instead, from the ``after``-th matching request on and ``times`` times (0: always).

    ``answer`` is an HTTP status, or ``null`` (200 with a JSON null), ``drop`` (close the
    connection), ``slow`` (the body in eight parts, a tenth of a second apart), ``html`` (a login page),
    ``json:…`` (200 with that document) or ``redirect:…`` (302 to that address).
    """

    pattern: str
    answer: str
    times: int = 0
    after: int = 0
    retry_after: str = ""
    met: int = 0

    def applies(self, path: str) -> bool:
        """Tell whether this request meets the fault, and count it."""
        if not re.search(self.pattern, path):
            return False
        self.met += 1
        return self.met > self.after and (not self.times or self.met <= self.after + self.times)


@dataclass
class Switches:
    """Ways in which this server differs from a good one."""

    relative_links: bool = False
    expired_links: int = 0
    reorder_columns: bool = False
    omit_columns: tuple[str, ...] = ()
    omit_empty_columns: bool = False
    rename_experiment: str = ""
    truncate: float = 0.0
    cut_last_line: int = 0
    truncate_times: int = 0
    wrong_length: bool = False
    old_routes: bool = False
    list_answers: bool = False
    page_size: int = 0
    growing: bool = False
    session_days: float = 3650
    garbage_cell: str = ""
    no_stats: bool = False
    bytes_per_second: float = 0.0


class FakeSwanLab:
    """A started pair of API and object store; use as a context manager or call ``close``."""

    def __init__(self, projects: dict[str, list[Run]] | None = None, port: int = 0, **switches: Any) -> None:
        self.projects = sample_project() if projects is None else projects
        self.switch = Switches(**switches)
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.blobs: dict[str, bytes] = {}
        self.truncated = 0
        self.served: dict[str, int] = {}
        self.lock = threading.Lock()
        self._link_free = 0.0
        self._api = _listen(self, "api", port)
        self._store = _listen(self, "store", 0)
        self.url = f"http://127.0.0.1:{self._api.server_address[1]}"
        self.store_url = f"http://localhost:{self._store.server_address[1]}"

    def __enter__(self) -> FakeSwanLab:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop both listeners."""
        for server in (self._api, self._store):
            server.shutdown()
            server.server_close()

    def pace(self, sent: int, rate: float) -> None:
        """Wait as a link of ``rate`` bytes per second, shared by all downloads, would make one wait; 0 is no limit."""
        if not rate:
            return
        with self.lock:
            self._link_free = max(self._link_free, time.monotonic()) + sent / rate
            free = self._link_free
        time.sleep(max(0.0, free - time.monotonic()))

    def fail(self, pattern: str, answer: int | str, times: int = 0, after: int = 0, retry_after: str = "") -> None:
        """Add a fault for the paths that ``pattern`` (a regular expression) is found in."""
        self.faults.append(Fault(pattern, str(answer), times, after, retry_after))

    def run_url(self, slug: str = "main1234", project: str = "ada/agent") -> str:
        """Return the page address of a run, as SwanLab prints it."""
        return f"{self.url}/@{project}/runs/{slug}"

    def calls(self, pattern: str, host: str = "api") -> list[Seen]:
        """Return the requests to ``host`` whose path matches ``pattern``."""
        return [one for one in self.seen if one.host == host and re.search(pattern, one.path)]

    def run_by_id(self, wanted: str) -> Run | None:
        """Return a run of any project by cuid or slug."""
        return next((run for runs in self.projects.values() for run in runs if wanted in (run.cuid, run.slug)), None)

    def export(self, run: Run, keys: list[str], name: str) -> bytes:
        """Return the CSV that the real service would put into its object store."""
        switch = self.switch
        source = self.run_by_id(run.root[1]) if run.root else run
        assert source is not None
        if switch.growing:
            for points in source.series.values():
                step, value, stamp = points[-1]
                points.append((step + 1, value, stamp + 10_000))
        if switch.reorder_columns:
            keys = keys[::-1]
        keys = [key for key in keys if key not in switch.omit_columns]
        if switch.omit_empty_columns:
            keys = [key for key in keys if source.series.get(key)]
        if source.blob is not None:
            return source.blob(keys)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        prefix = switch.rename_experiment or name
        writer.writerow(["step", *(f"{prefix}-{key}_{part}" for key in keys for part in ("step", "timestamp"))])
        tables = [_numbered(source.series.get(key, [])) for key in keys]
        for step, occurrence in sorted({place for table in tables for place in table}):
            row: list[Any] = [step]
            for table in tables:
                value, stamp = table.get((step, occurrence), ("", ""))
                row += [switch.garbage_cell if switch.garbage_cell and step == 5 else value, stamp]
            writer.writerow(row)
        body = text.getvalue().encode()
        if (switch.truncate or switch.cut_last_line) and not 0 < switch.truncate_times <= self.truncated:
            self.truncated += 1
            body = body[: int(len(body) * (1 - switch.truncate)) - switch.cut_last_line]
        return body

    def latest(self, run: Run, key: str) -> tuple[int, Any] | None:
        """Return step and value of the last point of a key, or None."""
        source = self.run_by_id(run.root[1]) if run.root else run
        points = source.series.get(key) if source else None
        return max(points)[:2] if points else None


def _numbered(points: list[Any]) -> dict[tuple[int, int], tuple[Any, int]]:
    """Index points by step and by how often the step came before: a step that was logged twice has two rows."""
    met: dict[int, int] = {}
    table = {}
    for step, value, stamp in points:
        table[step, met.get(step, 0)] = (value, stamp)
        met[step] = met.get(step, 0) + 1
    return table


Answer = tuple[int, Any]


def answer_api(server: FakeSwanLab, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
    """Return status and JSON for one call of the API."""
    switch = server.switch
    if match := re.fullmatch(r"/project/([^/]+/[^/]+)/runs/shows", path):
        runs = server.projects.get(match[1])
        return (404, _error("no such project")) if runs is None else (200, [run.describe() for run in runs])
    if match := re.fullmatch(r"/project/([^/]+/[^/]+)/runs/([^/]+)", path):
        run = next((r for r in server.projects.get(match[1], []) if match[2] in (r.cuid, r.slug)), None)
        return (200, run.describe()) if run else (404, _error("experiment not found"))
    if match := re.fullmatch(r"/project/([^/]+/[^/]+)/runs", path):
        if match[1] not in server.projects:
            return 404, _error("no such project")
        return 200, _page([run.describe() for run in server.projects[match[1]]], query, switch.page_size)
    if match := re.fullmatch(r"/project/([^/]+/[^/]+)", path):
        if match[1] not in server.projects:
            return 404, _error("no such project")
        return 200, {"cuid": f"project-{match[1].replace('/', '-')}", "name": match[1].split("/")[1], "path": match[1]}
    if match := re.fullmatch(r"/experiment/([^/]+)/column/csv", path):
        run = server.run_by_id(match[1])
        if run is None or query["key"] not in run.series:
            return 404, _error("column not found")
        link = {"url": _put(server, server.export(run, [query["key"]], run.name))}
        return 200, [link] if switch.list_answers else link
    if match := re.fullmatch(r"/experiment/([^/]+)/column", path):
        run = server.run_by_id(match[1])
        if run is None:
            return 404, _error("experiment not found")
        columns = [{"key": k, "name": k, "type": "FLOAT", "class": _class(k)} for k in [*run.series, *run.listed_only]]
        columns += [{"key": k, "name": k, "type": "IMAGE", "class": "CUSTOM"} for k in run.media]
        if "class" in query:
            columns = [column for column in columns if column["class"] == query["class"]]
        return 200, _page(columns, query, switch.page_size)
    if switch.old_routes:
        return 404, _error("Cannot " + method + " /api" + path)
    return answer_house(server, path, body)


def answer_house(server: FakeSwanLab, path: str, body: Any) -> Answer:
    """Return status and JSON for the calls that came with SDK 0.9."""
    if path == "/files/presigned/get":
        return 200, {"urls": [_link(server, key) for key in body["paths"]]}
    if path in ("/house/metrics/scalar/keys", "/house/metrics/media/keys"):
        reference = body["experiments"][0]
        run = server.run_by_id(reference["experimentId"])
        if run is None:
            return 404, _error("experiment not found")
        keys = [*run.series, *run.listed_only] if "scalar" in path else run.media
        start = int(body.get("cursor") or 0)
        size = server.switch.page_size or int(body.get("limit") or 2000)
        more = start + size < len(keys)
        return 200, {
            "keys": keys[start : start + size],
            "hasMore": more,
            "nextCursor": str(start + size) if more else "",
        }
    if path == "/house/metrics/scalar/export":
        columns = body["columns"]
        if len(columns) > 16:
            return 400, _error("at most 16 columns")
        run = server.run_by_id(columns[0]["experimentId"])
        if run is None:
            return 404, _error("experiment not found")
        blob = server.export(run, [column["key"] for column in columns], columns[0]["experimentName"])
        return 200, {"cosKey": _put(server, blob, key_only=True)}
    if path in ("/house/metrics/scalar/value", "/house/metrics/scalar") and not server.switch.no_stats:
        entries = []
        for column in body["columns"]:
            run = server.run_by_id(column["experimentId"])
            last = server.latest(run, column["key"]) if run else None
            if last is None:
                continue
            point = {"index": last[0], "data": last[1]}
            entries.append({"key": column["key"], "latest": point, "min": point, "max": point, "metrics": [point]})
        return 200, entries
    if path == "/house/metrics/summaries" and not server.switch.no_stats:
        experiments = body["experiments"] if isinstance(body, dict) else body
        answer: dict[str, Any] = {}
        for one in experiments:
            run = server.run_by_id(one["experimentId"])
            table = {}
            for key in run.series if run else ():
                step, value = server.latest(run, key) or (0, None)  # type: ignore[arg-type]
                table[key] = {"step": step, "value": value}
            answer[one["experimentId"]] = table or None
        return 200, answer
    return 404, _error("Cannot POST /api" + path)


def _class(key: str) -> str:
    return "SYSTEM" if key.startswith("__swanlab__") else "CUSTOM"


def _error(message: str) -> dict[str, str]:
    return {"code": "Fake_Error", "message": message}


def _page(items: list[Any], query: dict[str, str], forced: int) -> dict[str, Any]:
    size = forced or int(query.get("size", 20))
    page = int(query.get("page", 1))
    pages = max(1, -(-len(items) // size))
    return {"list": items[(page - 1) * size : page * size], "size": size, "pages": pages, "total": len(items)}


def _put(server: FakeSwanLab, blob: bytes, key_only: bool = False) -> str:
    with server.lock:
        key = f"exports/csv/{len(server.blobs):06d}.csv"
        server.blobs[key] = blob
    return key if key_only else _link(server, key)


def _link(server: FakeSwanLab, key: str) -> str:
    path = f"/{key}?X-Amz-Expires=300&X-Amz-Signature=5ec4e7"
    return path if server.switch.relative_links else server.store_url + path


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeSwanLab
    role: str

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: ``seen`` is the log."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw) if raw else None
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.fake.lock:
            self.fake.seen.append(Seen(self.role, self.command, self.path, headers, body))
            fault = next((fault for fault in self.fake.faults if fault.applies(self.path)), None)
        slow = fault is not None and fault.answer == "slow"
        if fault is not None and not slow:
            self._misbehave(fault)
        elif self.role == "store" or url.path.startswith("/exports/"):
            self._serve_blob(url.path.lstrip("/"), slow)
        elif not url.path.startswith("/api/"):
            self._send(200, b"<!doctype html><title>SwanLab</title>", "text/html")
        elif url.path == "/api/login/api_key":
            self._login()
        elif f"sid={SID}" not in self.headers.get("Cookie", ""):
            self._send_json(401, _error("not logged in"))
        else:
            query = {name: values[-1] for name, values in parse_qs(url.query).items()}
            path = unquote(url.path.removeprefix("/api"))
            self._send_json(*answer_api(self.fake, self.command, path, query, body))

    def _misbehave(self, fault: Fault) -> None:
        if fault.answer == "drop":
            self.close_connection = True
        elif fault.answer == "null":
            self._send_json(200, None)
        elif fault.answer.startswith("redirect:"):
            self._send(302, b"", "text/plain", {"Location": fault.answer.removeprefix("redirect:")})
        elif fault.answer.startswith("json:"):
            self._send_json(200, json.loads(fault.answer.removeprefix("json:")))
        elif fault.answer == "html":
            self._send(200, b"<!doctype html><title>Sign in</title>", "text/html")
        else:
            extra = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            self._send(int(fault.answer), json.dumps(_error("told to fail")).encode(), "application/json", extra)

    def _login(self) -> None:
        if self.headers.get("authorization") != API_KEY:
            return self._send_json(401, _error("api key is wrong"))
        expires = time.time() + self.fake.switch.session_days * 86400
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(min(expires, 4102444800))) + ".000Z"
        user = {"username": "ada", "name": "Ada"}
        return self._send_json(200, {"sid": SID, "expiredAt": stamp, "userInfo": user})

    def _serve_blob(self, key: str, slow: bool) -> None:
        blob = self.fake.blobs.get(key)
        with self.fake.lock:
            self.fake.served[key] = self.fake.served.get(key, 0) + 1
            expired = len(self.fake.served) <= self.fake.switch.expired_links
        if blob is None or expired:
            return self._send(403, b"<Error><Code>AccessDenied</Code></Error>", "application/xml")
        length = len(blob) + (1000 if self.fake.switch.wrong_length else 0)
        self._head(200, "text/csv", {"Content-Length": str(length)})
        rate = len(blob) / 0.8 if slow else self.fake.switch.bytes_per_second
        piece = max(1, len(blob) // 8) if slow else 1 << 18
        for start in range(0, len(blob), piece if rate else len(blob)):
            part = blob[start : start + piece] if rate else blob
            self.wfile.write(part)
            self.fake.pace(len(part), rate)
        if self.fake.switch.wrong_length:
            self.close_connection = True
        return None

    def _send_json(self, status: int, document: Any) -> None:
        self._send(status, json.dumps(document, ensure_ascii=False).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str, extra: dict[str, str] | None = None) -> None:
        self._head(status, kind, {"Content-Length": str(len(body)), "traceid": "trace-0001", **(extra or {})})
        self.wfile.write(body)

    def _head(self, status: int, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.end_headers()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that went away."""


def _listen(fake: FakeSwanLab, role: str, port: int) -> ThreadingHTTPServer:
    handler = type("Handler", (_Handler,), {"fake": fake, "role": role})
    server = _Server(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), name=f"fake-swanlab-{role}", daemon=True).start()
    return server


def main() -> None:
    """Serve the sample project until stopped; faults are given as ``--fail PATTERN=ANSWER``."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--fail", action="append", default=[], metavar="PATTERN=ANSWER")
    parser.add_argument("--switch", action="append", default=[], metavar="NAME=JSON", help="a field of Switches")
    options = parser.parse_args()
    switches = {name: json.loads(value) for name, value in (one.split("=", 1) for one in options.switch)}
    with FakeSwanLab(port=options.port, **switches) as server:
        for one in options.fail:
            pattern, answer = one.rsplit("=", 1)
            server.fail(pattern, answer)
        print(f"listening on {server.url}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
