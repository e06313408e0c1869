"""A client's view of the engine status, kept fresh by one thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from ajet.tuner_lib.experimental.engine_status import WEIGHT_SYNCING
from ajet.tuner_lib.experimental.swarm_http import SwarmHttp, SwarmServerError

log = logging.getLogger(__name__)

CANNOT_CONNECT = "ENGINE.CANNOT_CONNECT"

LONG_POLL_SECONDS = 25.0
POLL_SECONDS = 0.33
"""How often a server without long polls is asked (released clients: 0.33 to 1 s)."""

RETRY_SECONDS = 1.0
FAILURES_UNTIL_LOST = 3


class StatusWatch:
    """Follows ``/get_engine_status``: by long polls where the server has them, else by asking often.

    ``callbacks`` are called, in the watching thread, at each entry into WEIGHT_SYNCING.
    """

    def __init__(self, http: SwarmHttp) -> None:
        self.callbacks: list[Callable[[], None]] = []
        self._http = http
        self._status = CANNOT_CONNECT
        self._answer: dict[str, Any] = {}
        self._changed = threading.Condition()
        self._first = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="swarm-status", daemon=True)
        self._thread.start()

    @property
    def current(self) -> tuple[str, dict[str, Any]]:
        """The status and the server's whole answer; waits for the first answer, at most 15 s."""
        self._first.wait(15.0)
        with self._changed:
            return self._status, dict(self._answer)

    def wait_until(self, satisfied: Callable[[str, dict[str, Any]], bool], seconds: float | None = None) -> bool:
        """Return True as soon as ``satisfied(status, answer)`` is, False after ``seconds``.

        ``satisfied`` is called at each change and may raise, which ends the wait. Raises
        RuntimeError if the client is closed meanwhile.
        """
        self._first.wait(15.0)
        with self._changed:
            met = self._changed.wait_for(
                lambda: self._stopped.is_set() or satisfied(self._status, self._answer), seconds
            )
            if self._stopped.is_set():
                raise RuntimeError("this SwarmClient is closed")
            return met

    def refresh(self) -> None:
        """Ask now: for the moment after this client itself changed the status."""
        try:
            self._ask()
        except (SwarmServerError, httpx.HTTPError, ValueError):
            return

    def stop(self) -> None:
        """End the thread, which notices within a long poll, and all waits."""
        with self._changed:
            self._stopped.set()
            self._changed.notify_all()

    def _watch(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            try:
                answer = self._ask(long_poll=True)
                failures = 0
                if "revision" not in answer:
                    self._stopped.wait(POLL_SECONDS)
            except (SwarmServerError, httpx.HTTPError, ValueError, RuntimeError) as error:
                if self._stopped.is_set():
                    return
                failures += 1
                if failures >= FAILURES_UNTIL_LOST:
                    self._note({}, CANNOT_CONNECT)
                    log.debug("no status from %s: %s", self._http.server_url, error)
                self._first.set()
                self._stopped.wait(min(RETRY_SECONDS, 0.1 * failures))

    def _ask(self, *, long_poll: bool = False) -> dict[str, Any]:
        """Ask the server and note its answer; a long poll waits for a change, where the server can."""
        known = self._answer.get("revision")
        if long_poll and known is not None:
            answer = self._http.get(
                "/get_engine_status",
                timeout=LONG_POLL_SECONDS + 10,
                revision=known,
                wait_seconds=LONG_POLL_SECONDS,
            )
        else:
            answer = self._http.get("/get_engine_status")
        self._note(answer, known=known)
        return answer

    def _note(self, answer: dict[str, Any], status: str | None = None, *, known: int | None = None) -> None:
        """Take an answer over; ``known`` is the revision that was known when it was asked for.

        A server's revision only grows: an answer below ``known``, or without a revision, is another
        server's, which took this one's place.
        """
        status = status or str(answer.get("engine_status", CANNOT_CONNECT))
        with self._changed:
            if "revision" in answer and (known or 0) <= answer["revision"] < self._answer.get("revision", 0):
                return  # an answer that was overtaken by a later one
            entered_sync = status == WEIGHT_SYNCING and self._status != WEIGHT_SYNCING
            self._status, self._answer = status, answer
            self._changed.notify_all()
        self._first.set()
        if entered_sync:
            for callback in self.callbacks:
                try:
                    callback()
                except Exception:
                    log.exception("a callback on entering weight sync failed")


def pause(seconds: float) -> None:
    """Wait before asking a server again that offers nothing to wait on."""
    time.sleep(seconds)
