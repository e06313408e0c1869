"""Runs a client script unmodified and notes its exceptions; executed in the client's own process.

    python runner.py EVENTS STACKS SHIM path|module TARGET [ARGUMENT ...]

``import ajet`` gives the package in SHIM. Each exception that ends a future, a thread or the script,
or that makes an executor try again, becomes a JSON line in EVENTS. SIGUSR1 writes the stacks of all
threads to STACKS. Nothing but the standard library is imported before the script's own imports.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import runpy
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType


class Notes:
    """Appends what happens to a file, each exception object once."""

    def __init__(self, path: str, roots: list[str], shim: str) -> None:
        self._stream = open(path, "a", encoding="utf-8")  # noqa: PTH123, SIM115
        self._roots = roots
        self._shim = shim
        self._lock = threading.Lock()
        self._seen: list[BaseException] = []

    def exception(self, error: BaseException, how: str) -> None:
        """Note an exception with the innermost line of the client's own code."""
        with self._lock:
            if any(error is one for one in self._seen[-64:]):
                return
            self._seen.append(error)
            del self._seen[:-64]
            frames = traceback.extract_tb(error.__traceback__)
            own = [frame for frame in frames if self._own(frame.filename)]
            where = own[-1] if own else frames[-1] if frames else None
            entry = {
                "time": time.time(),
                "type": type(error).__name__,
                "message": str(error)[:500],
                "how": how,
                "file": where.filename if where else "",
                "line": where.lineno if where else 0,
                "function": where.name if where else "",
                "code": (where.line or "") if where else "",
            }
            self._stream.write(json.dumps(entry) + "\n")
            self._stream.flush()

    def _own(self, path: str) -> bool:
        inside = any(path.startswith(root + os.sep) for root in self._roots)
        return inside and path != __file__ and not path.startswith(self._shim) and "site-packages" not in path


class FromLog(logging.Handler):
    """Takes the exceptions that AgentJet's own modules log: an episode that is tried again or given back."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(logging.WARNING)
        self._notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        """Note the record's exception, and print the record as if this handler were not there."""
        error = record.exc_info[1] if record.exc_info else getattr(record, "cause", None)
        if error is not None:
            self._notes.exception(error, "given back" if hasattr(record, "cause") else "tried again")
        if not logging.getLogger().handlers and logging.lastResort:
            logging.lastResort.handle(record)


def listen(notes: Notes) -> None:
    """Note exceptions wherever Python lets them end."""
    set_exception, excepthook, thread_hook = Future.set_exception, sys.excepthook, threading.excepthook

    def on_future(future: Future, error: BaseException) -> None:
        if error is not None:
            notes.exception(error, "future")
        set_exception(future, error)

    def on_script(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        notes.exception(error.with_traceback(trace), "ended the script")
        excepthook(kind, error, trace)

    def on_thread(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None:
            notes.exception(arguments.exc_value, "ended a thread")
        thread_hook(arguments)

    Future.set_exception = on_future  # type: ignore[method-assign, assignment]
    sys.excepthook = on_script
    threading.excepthook = on_thread
    logging.getLogger("ajet").addHandler(FromLog(notes))


def main() -> None:
    """Set the process up and run the script as ``__main__``."""
    events, stacks, shim, kind, target, *arguments = sys.argv[1:]
    folder = os.path.dirname(os.path.abspath(target)) if kind == "path" else str(Path.cwd())  # noqa: PTH100, PTH120
    sys.path[0:1] = [shim, folder]
    listen(Notes(events, [folder, str(Path.cwd())], shim))
    faulthandler.register(signal.SIGUSR1, open(stacks, "a", encoding="utf-8"), all_threads=True)  # noqa: PTH123, SIM115
    sys.argv = [target, *arguments]
    if kind == "module":
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(os.path.abspath(target), run_name="__main__")  # noqa: PTH100 (links stay)


if __name__ == "__main__":
    main()
