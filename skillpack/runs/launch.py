"""Bring up the supervisor of the run whose directory is the working directory.

Started as a file, ``python -I launch.py [LOG]``, and without the directory as an argument, for
the same reason for which the supervisor changes its title. With a LOG this process then becomes
the window's view of that log, and its death (Ctrl-C, a killed tmux server) touches nothing else.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

SECONDS = 20.0


def main() -> None:
    """Fork the supervisor into a session of its own; then follow the log, or leave."""
    folder = Path.cwd()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            _supervise(folder)
        os._exit(0)
    os.wait()
    if len(sys.argv) > 1:
        os.execvp("tail", ["tail", "-n", "+1", "-F", sys.argv[1]])


def _supervise(folder: Path) -> None:
    """Be the supervisor; what goes wrong in it is written to ``supervisor.log``. Never returns."""
    nothing = os.open(os.devnull, os.O_RDWR)
    trouble = os.open(folder / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for handle, target in ((nothing, 0), (trouble, 1), (trouble, 2)):
        os.dup2(handle, target)
    os.closerange(3, 256)
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    try:
        from skillpack.runs.handover import receive
        from skillpack.runs.supervisor import supervise

        supervise(folder, receive(folder / ".environment", SECONDS))
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
