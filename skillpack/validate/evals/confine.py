"""Keep a script's writes inside its scratch folder.

By bubblewrap where it works (with stand-ins for some places, see ``outside``), else by Landlock (a
Linux kernel feature that needs no privileges, https://docs.kernel.org/userspace-api/landlock.html).
Where there is neither, nothing is refused, and the caller compares what lies in the skill before
and after.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from skillpack.validate.evals.outside import Outside

Method = Literal["bwrap", "landlock", "none"]

ALWAYS_WRITABLE = ("/dev", "/proc")
"""Devices (null, terminals, shared memory) and a process's own settings: no files of anybody's."""

UNSEEN = {
    "bwrap": "",
    "landlock": "a refused write is named only if the script complains of it, and one to /dev/shm is not refused",
    "none": "only writes into the skill's own folder are named, and nothing is refused",
}
"""What each way misses that bubblewrap sees."""

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
RULE_PATH_BENEATH = 1
PR_SET_NO_NEW_PRIVS = 38

WRITE_FILE, REMOVE_DIR, REMOVE_FILE = 1 << 1, 1 << 4, 1 << 5
MAKE_ANYTHING = sum(1 << bit for bit in range(6, 13))
REFER, TRUNCATE = 1 << 13, 1 << 14
"""Access rights of ``linux/landlock.h``; REFER came with version 2 of the interface, TRUNCATE with 3."""


@lru_cache
def method() -> Method:
    """Return the best way that works here."""
    if shutil.which("bwrap") and _bwrap_works():
        return "bwrap"
    return "landlock" if _landlock_version() >= 2 else "none"


def _bwrap_works() -> bool:
    """Tell whether bubblewrap can put stand-ins into their places; in a container it often may not."""
    with tempfile.TemporaryDirectory(prefix="skills-") as folder:
        skill = Path(folder).resolve() / "skill"
        skill.mkdir()
        words = bwrap([skill], Outside(skill.with_name("outside"), skill, [skill]).bwrap())
        trial = subprocess.run([*words, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return trial.returncode == 0


def bwrap(writable: Iterable[Path], more: Sequence[str] = ()) -> list[str]:
    """Return the words that go before a command so that it can write below ``writable`` only.

    ``more`` are further words for bubblewrap, which come before.
    """
    binds = [word for path in writable for word in ("--bind", str(path), str(path))]
    return ["bwrap", "--die-with-parent", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", *more, *binds, "--"]


def restrict_self(writable: Sequence[str]) -> None:
    """Refuse this process, and all it will start, any write that is not below ``writable``. Raises OSError."""
    rights = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_ANYTHING | REFER
    if _landlock_version() >= 3:
        rights |= TRUNCATE
    wanted = struct.pack("=Q", rights)
    ruleset = _syscall(CREATE_RULESET, wanted, ctypes.c_size_t(len(wanted)), 0)
    try:
        for path in (*writable, *ALWAYS_WRITABLE):
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                _syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, struct.pack("=Qi", rights, folder), 0)
            finally:
                os.close(folder)
        ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _syscall(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


@lru_cache
def _landlock_version() -> int:
    if sys.platform != "linux":
        return 0
    try:
        return _syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    except OSError:
        return 0


def _syscall(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
