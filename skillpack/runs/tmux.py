"""A few tmux commands, each with a time limit. tmux is the window on a run, never the truth about it.

Targets are exact (``=name``): a bare ``-t ajet_math`` would also match ``ajet_math_2``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

from skillpack.script import Unavailable

SECONDS = 10.0
SLUG_LENGTH = 32


@dataclass(frozen=True)
class Tmux:
    """A tmux server: the user's usual one, or the one behind a socket name (``tmux -L``)."""

    socket: str | None = None

    @staticmethod
    def installed() -> bool:
        """Tell whether there is a tmux on PATH."""
        return shutil.which("tmux") is not None

    def _argv(self, *arguments: str) -> list[str]:
        return ["tmux", *(["-L", self.socket] if self.socket else []), *arguments]

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one tmux command. Raises Unavailable if tmux is missing or does not answer."""
        try:
            return subprocess.run(
                self._argv(*arguments), capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
            )
        except FileNotFoundError:
            raise Unavailable("tmux is not installed", hint="install tmux, or start with --no-tmux") from None
        except subprocess.TimeoutExpired:
            raise Unavailable(f"tmux did not answer within {SECONDS:.0f} s", hint="start with --no-tmux") from None

    def _do(self, *arguments: str) -> str:
        done = self.call(*arguments)
        if done.returncode:
            raise Unavailable(f"tmux {arguments[0]} failed: {done.stderr.strip()}", hint="start with --no-tmux")
        return done.stdout.strip()

    def has(self, session: str) -> bool:
        """Tell whether the session of exactly this name is there."""
        return self.call("has-session", "-t", f"={session}").returncode == 0

    def open_session(self, session: str, window: str, argv: list[str], variables: dict[str, str], folder: str) -> None:
        """Open a detached session whose first window runs ``argv`` in ``folder``.

        It is made empty and filled afterwards, so that the command line of a tmux server that
        this call brings up stays clear of the words that ``ajet --autokill`` looks for.
        """
        self._do("new-session", "-d", "-s", session, "-n", "run", "-x", "200", "-y", "50")
        self._do("set-option", "-t", f"={session}:", "remain-on-exit", "on")
        self._do("set-option", "-t", f"={session}:", "history-limit", "50000")
        for name, value in variables.items():
            self._do("set-environment", "-t", f"={session}", name, value)
        self._do("rename-window", "-t", f"={session}:", window)
        self._do("respawn-pane", "-k", "-c", _literal(folder), "-t", f"={session}:", *argv)

    def open_window(self, session: str, window: str, argv: list[str], folder: str) -> None:
        """Add a window to a session, behind the others and without going to it."""
        self._do("new-window", "-d", "-c", _literal(folder), "-t", f"={session}:", "-n", window, *argv)

    def close(self, session: str) -> None:
        """Close a session if it is there."""
        if self.has(session):
            self.call("kill-session", "-t", f"={session}")

    def attach_command(self, session: str) -> str:
        """Return the command by which a person looks through the window."""
        return " ".join(self._argv("attach", "-t", f"'={session}'"))


def _literal(text: str) -> str:
    """Keep tmux from expanding ``#{…}`` in an argument that it takes for a format."""
    return text.replace("#", "##")


def session_name(purpose: str, run_id: str) -> str:
    """Return ``ajet_<purpose>_<id>``: letters, digits, ``_`` and ``-`` alone, since tmux rewrites ``.`` and ``:``."""
    slug = re.sub(r"\W+", "-", purpose.casefold()).strip("-")[:SLUG_LENGTH].strip("-")
    return "_".join(part for part in ("ajet", slug, run_id[-6:]) if part)
